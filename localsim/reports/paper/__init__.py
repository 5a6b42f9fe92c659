"""The paper's table and figures (arXiv 2403.05020) beside ours, with the differences of task named.

from localsim.reports.paper import figures, tables
lines = tables(store, conditions)
files = figures(store, conditions, folder)
"""

from localsim.reports.paper.beside import compared, figures, tables

__all__ = ["compared", "figures", "tables"]
