"""Games of people in the browser: seats, turns and the reveal."""
