"""The paper's table and figures (arXiv 2403.05020) beside ours, with the differences of task named.

from localsim.reports.paper import compared, figures, markdown
data = compared(store, conditions)
lines, files = markdown(data), figures(data, folder)
"""

from localsim.reports.paper.beside import compared, figures, markdown

__all__ = ["compared", "figures", "markdown"]
