"""Games in which something hidden is found: by questions, by guesses, or on the way through a maze."""
