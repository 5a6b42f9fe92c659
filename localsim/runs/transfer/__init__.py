"""Runs and other tools: files come in, runs go out, and a run travels as one archive that can be played again."""
