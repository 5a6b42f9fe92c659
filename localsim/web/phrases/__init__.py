"""What pupils, participants and the projector read: one table of phrases, a file for each language."""
