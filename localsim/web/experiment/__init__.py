"""Experiments with people: consent, forms, talks with ratings, debrief.

`roster` orders the places and holds the state as values, `lab` lets the talks run, and `pages` show it.
"""
