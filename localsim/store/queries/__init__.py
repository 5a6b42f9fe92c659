"""The queries of localsim, one module for each room that uses them.

Each function opens the database for one query and closes it. Rows are dictionaries with the columns that the
docstring names; a missing value is None. The only SQL outside `store` is what a person types.
"""

SEARCHED = "SELECT DISTINCT episode_id FROM scores WHERE evaluator = 'leakage' AND value IS NOT NULL"
"""The episodes that were searched for leaks; a search that failed leaves a score without a value."""
PEOPLE = "(r.repro = 'imported' OR contains(r.models_json, '\"kind\": \"human\"'))"
"""True for a row r of `runs` whose talks people held or took part in, so that nothing can resume it."""


def condition_sql(mode: str = "mode", see: str = "see") -> str:
    """Return the SQL of a condition's name, such as agents+goal, from the columns of its mode and its grants."""
    return f"{mode} || CASE WHEN {see} <> '' THEN '+' || {see} ELSE '' END"
