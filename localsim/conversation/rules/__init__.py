"""What can be done in a conversation, and whose turn it is: moves, phases, the form of lines, and the rules."""
