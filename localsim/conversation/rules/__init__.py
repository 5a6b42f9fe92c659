"""What can be done in a conversation, and whose turn it is: moves, phases, lines, the rules, and who reads what."""
