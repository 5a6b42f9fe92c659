"""Minds: steps between what an agent sees and its line. A step sees its agent's `Observation` and nothing else."""
