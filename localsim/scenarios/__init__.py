"""Scenario files: reading them with every problem at its place, and finding them by name."""
