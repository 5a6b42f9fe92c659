"""Reading of conversations of people from files in public formats; `read.read_talks` is the entry."""
