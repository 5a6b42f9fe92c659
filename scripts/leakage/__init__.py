"""Training and measuring of the leakage detector; scripts/train_leakage.py has the commands."""
