"""What is played, who knows what and what may be said next: pure values and generators, without files or models."""
