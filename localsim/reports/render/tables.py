"""The tables of a report as files for papers: LaTeX for booktabs, and CSV in which numbers are numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from localsim.errors import writing
from localsim.reports.document import Cell, Count, Report, Section, Table
from localsim.reports.results import Number
from localsim.reports.sections import for_document

_SPECIAL = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", '"': "\\textquotedbl{}", "−": "$-$"},
}
"""Characters that LaTeX reads as commands, or that its usual fonts lack."""


def write(data: Report, folder: Path) -> list[Path]:
    """Write each table of a report as NAME.tex and NAME.csv; return the files. Raises InvalidInput."""
    return write_sections(for_document(data), folder)


def write_sections(sections: Iterable[Section], folder: Path) -> list[Path]:
    """Write each table of sections as NAME.tex and NAME.csv; return the files. Raises InvalidInput."""
    files = []
    for name, title, table in _named(sections):
        for ending, text in (("tex", as_latex(table, title, f"tab:{name}")), ("csv", as_csv(table))):
            file = folder / f"{name}.{ending}"
            with writing(file):
                folder.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8", newline="")
            files.append(file)
    return files


def _named(sections: Iterable[Section]) -> Iterator[tuple[str, str, Table]]:
    """Yield the file name without its ending, the caption, and the table; names are told apart by numbers."""
    taken: dict[str, int] = {}
    for section in sections:
        for table in section.tables:
            title = f"{section.title}: {table.title}" if table.title not in ("", section.title) else section.title
            name = re.sub(r"\W+", "_", section.title.casefold()).strip("_")[:60] or "table"
            taken[name] = taken.get(name, 0) + 1
            yield name if taken[name] == 1 else f"{name}_{taken[name]}", title, table


def as_latex(table: Table, caption: str, label: str) -> str:
    """Return a table environment; its notes stand below the rules."""
    words = max(table.words, 1)
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_latex(caption)}}}\\label{{{label}}}",
        f"\\begin{{tabular}}{{{'l' * words}{'r' * (len(table.heads) - words)}}}",
        "\\toprule",
        _line(table.heads),
        "\\midrule",
        *map(_line, table.rows),
        "\\bottomrule",
        "\\end{tabular}",
        *(f"\\par\\smallskip\\footnotesize {_latex(note)}" for note in table.notes),
        "\\end{table}",
    ]
    return "% needs \\usepackage{booktabs}\n" + "\n".join(lines) + "\n"


def _line(cells: Sequence[Cell]) -> str:
    texts = [str(cell) for cell in cells]
    texts = [re.sub(r"-(?=\d)", "−", text) if _NUMBERS.fullmatch(text) else text for text in texts]
    line = " & ".join(map(_latex, texts))
    return ("{}" if line.startswith("[") else "") + line + " \\\\"


_NUMBERS = re.compile(r"[-+\d.,%\[\] ]+")


def _latex(text: str) -> str:
    return "".join(_SPECIAL.get(char, char) for char in " ".join(text.split()))


def as_csv(table: Table) -> str:
    """Return rows with a column for each value, and beside it the ends of its interval if any has one."""
    spread = [
        any(isinstance(row[place], Number) and row[place].interval for row in table.rows)  # type: ignore[union-attr]
        for place in range(len(table.heads))
    ]
    rows: list[list[str | float | int | None]] = [[]]
    for head, wide in zip(table.heads, spread, strict=True):
        name = str(head)
        rows[0] += [name, f"{name} low", f"{name} high"] if wide else [name]
    for row in table.rows:
        rows.append([])
        for cell, wide in zip(row, spread, strict=True):
            rows[-1] += _values(cell) if wide else _values(cell)[:1]
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(map(harmless, rows))
    return written.getvalue()


def harmless(row: Iterable[Any]) -> list[Any]:
    """Return the cells of a row for CSV: a text that a spreadsheet would run as a formula gets a quote in front."""
    return [f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell for cell in row]


_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]*%?$)")


def _values(cell: Cell) -> list[str | float | int | None]:
    """Return a value and the ends of its interval."""
    if isinstance(cell, Number):
        return [cell.value, cell.low, cell.high]
    if isinstance(cell, Count):
        return [cell.completed, None, None]
    text = str(cell)
    if re.fullmatch(r"[-+]?\d+(\.\d+)?", text):
        return [float(text) if "." in text else int(text), None, None]
    return ["" if text == "-" else text, None, None]
