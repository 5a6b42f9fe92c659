"""Experiments with people: consent, forms, talks with ratings, debrief.

`places` orders the conditions, `roster` holds the state as values, `lab` lets the talks run, and `pages` show it.
"""
