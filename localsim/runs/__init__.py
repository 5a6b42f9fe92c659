"""Planning, scheduling, recording and scoring of a run.

This room may import `evaluators`, `machine` and the rooms below them.
"""
