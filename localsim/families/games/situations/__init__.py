"""Situations: people settle something by proposals, and what is right follows from private facts of all sides."""
