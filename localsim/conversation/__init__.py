"""Scenarios, views, prompts, turns and modes as pure values and generators, without files or models.

Of localsim this room imports only `errors`.
"""
