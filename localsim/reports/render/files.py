"""A report as a file: the form follows from its name."""

from __future__ import annotations

from pathlib import Path

from localsim.errors import writing
from localsim.reports.document import Report
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown


def is_page(file: str | Path) -> bool:
    """True if a report in this file is a page; Markdown has a name that ends in .md."""
    return not str(file).endswith(".md")


def write(report: Report, file: Path) -> None:
    """Write a report. Raises InvalidInput where that cannot be done."""
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(report) if is_page(file) else as_markdown(report), encoding="utf-8")
