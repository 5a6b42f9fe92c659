"""Runs that begin in the browser: one scenario in three modes, shown side by side while it is written."""
