"""What can be done in a conversation, and whose turn it is: moves, phases, the form of lines, the rules, and who reads what."""
