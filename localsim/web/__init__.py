"""Pages for people: view runs, annotate episodes, play a role. They load nothing from a network."""
