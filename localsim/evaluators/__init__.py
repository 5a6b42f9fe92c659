"""The scores of completed episodes: one protocol (`base`), one loop (`evaluate`), and localsim's own evaluators.

This room may import `leakage` and the rooms below it.
"""
