"""Axes, colours and files of figures. The only module that imports matplotlib (extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from localsim import paths

T = TypeVar("T")

COLOURS = {
    "script": "#a84c00",
    "iterative": "#8a6d00",
    "agents": "#1d4f91",
    "mindreaders": "#1b6f65",
    "people": "#6d3aa0",
}
LINES = {"script": "-", "iterative": (0, (5, 1)), "agents": "--", "mindreaders": ":", "people": "-."}
"""Line styles by mode, so that modes differ not only in colour."""
SIDES = ("-", "--", "-.", ":")
"""Line styles by side, where a curve has a line for each; modes differ in their marks then."""
MARKS = {"script": "v", "iterative": ">", "agents": "o", "mindreaders": "s", "people": "D"}
"""One mark for each mode, as `runs.words.MARKS`."""
SHADES = ((0.0, ""), (0.36, "white"), (0.4, "black"), (0.2, "white"), (0.2, "black"))
"""How far the colour of a mode goes to white or black for its first condition and further ones; report.css.j2 has the
same."""
PAPER = "#8d8d8d"
"""Colour of the paper's values."""


def ready() -> None:
    """Set matplotlib up. Raises InvalidInput if it is not installed."""
    with paths.needing("figures need", "plots"):
        import matplotlib
    matplotlib.use("Agg")
    # Without dates the same data gives the same file; text stored as text can be searched.
    matplotlib.rcParams |= {"svg.hashsalt": "localsim", "svg.fonttype": "none", "font.size": 11}
    # TrueType fonts: many publishers refuse Type 3, which matplotlib would write.
    matplotlib.rcParams |= {"pdf.fonttype": 42, "ps.fonttype": 42}


def axes(height: float = 3.2) -> tuple[Any, Any]:
    """Return a new figure and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, height), layout="constrained")
    drawn = figure.add_subplot()
    drawn.spines[["top", "right"]].set_visible(False)
    return figure, drawn


def grid(heights: Sequence[float], columns: int = 2, width: float = 8.4) -> tuple[Any, Any]:
    """Return a new figure and its axes by row and column; `heights` are those of the rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, sum(heights) + 0.4), layout="constrained")
    drawn = figure.subplots(len(heights), columns, squeeze=False, height_ratios=list(heights))
    for one in drawn.flat:
        one.spines[["top", "right"]].set_visible(False)
    return figure, drawn


def percent() -> Any:
    """Return what writes the ticks of an axis of shares, from 0 to 1, as percentages."""
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(1.0)


def numbered(modes: Mapping[T, str]) -> dict[T, int]:
    """Return condition -> number of its colour, given condition -> mode, for all figures of one report.

    Conditions are counted from 0 in each mode: all have the colour of their mode, in shades.
    """
    found: dict[T, int] = {}
    for condition, mode in modes.items():
        found[condition] = sum(modes[each] == mode for each in found)
    return found


def colour_of(mode: str, twin: int = 0) -> str:
    """Return the colour of a condition; `twin` is its number of `numbered`."""
    share, towards = SHADES[twin % len(SHADES)]
    end = 255 if towards == "white" else 0
    parts = (int(COLOURS[mode][place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part + share * (end - part)):02x}" for part in parts)


_UNDATED: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Formats that hold the time of writing: without it, the same data give the same file."""


def save(drawn: Sequence[tuple[str, Any]], folder: Path, forms: Sequence[str]) -> list[Path]:
    """Write figures, given with their names, in each format; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in drawn:
        for form in forms:
            file = folder / f"{name}.{form}"
            figure.savefig(file, dpi=160, metadata=_UNDATED.get(form))
            files.append(file)
    return files
