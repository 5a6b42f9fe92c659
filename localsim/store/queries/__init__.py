"""Every question that localsim itself asks the database, one module for each room that asks.

A function opens the database for one question and lets it go. Rows are dictionaries with the columns that the
docstring names; a missing value is None. The only SQL outside `store` is what a person types.
"""
