"""Games of groups: verdicts, hidden roles, reviews and joint plans."""
