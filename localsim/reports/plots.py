"""Figures of a run as SVG and PNG, for papers and slides. The only module that imports matplotlib (extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localsim.errors import InvalidInput, suggest
from localsim.families import family_of
from localsim.reports.report import report
from localsim.reports.validity.people import with_people
from localsim.store.database import Store

Row = dict[str, Any]

COLOURS = {"script": "#c65a00", "agents": "#1d4f91", "mindreaders": "#2a9d8f", "people": "#6b4c9a"}
LINES = {"script": "-", "agents": "--", "mindreaders": ":", "people": "-."}
"""Line styles by mode, so that modes differ not only in colour."""


def figures(
    store: Store,
    run_id: str,
    folder: Path,
    forms: Sequence[str] = ("svg", "png"),
    measures: Sequence[str] = (),
    people: Sequence[str] = (),
) -> list[Path]:
    """Write the figures of a run and return the files; `measures` are keys to draw besides those of the report.

    `people` are runs of imported conversations to draw beside it.

    Raises InvalidInput without matplotlib, or for a measure that the run does not have.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError as error:
        raise InvalidInput("figures need matplotlib", hint='pip install "localsim[plots]"') from error
    # Without dates the same data gives the same file; text stored as text can be searched.
    matplotlib.rcParams |= {"svg.hashsalt": "localsim", "svg.fonttype": "none", "font.size": 11}
    data = with_people(store, report(store, run_id), people)
    comparison, known = data["comparison"], {measure["key"]: measure for measure in data["measures"]}
    for key in measures:
        if key not in known:
            raise InvalidInput(f"no measure {key!r}", hint=suggest(key, known) or f"measures: {', '.join(known)}")
    drawn: list[tuple[str, Any]] = []
    for family in dict.fromkeys(row["family"] for row in comparison):
        rows = [row for row in comparison if row["family"] == family]
        drawn += [
            (f"{family}_{key}", _bars(known[key], rows))
            for key in dict.fromkeys([*_drawn(family, data["measures"]), *measures])
            if any(row[key] is not None for row in rows)
        ]
    drawn += [(f"{curve['family']}_{curve['name']}_curve", _course(curve)) for curve in data["curves"]]
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in drawn:
        for form in forms:
            file = folder / f"{name}.{form}"
            figure.savefig(file, dpi=160, metadata={"Date": None} if form == "svg" else None)
            files.append(file)
    return files


def _axes(width: float = 5.2, height: float = 3.2) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _drawn(family: str, measures: Sequence[Row]) -> list[str]:
    """Return the measures to draw: those of the family's figure, and those of every family's figures."""
    return [*family_of(family).figure, *(measure["key"] for measure in measures if measure["figure"])]


def _bars(measure: Row, rows: list[Row]) -> Any:
    """Draw an estimate by mode with its 95% interval."""
    key, heading, kind = measure["key"], measure["heading"], measure["kind"]
    shown = [row for row in rows if row[key] is not None]
    figure, axes = _axes(height=0.6 * len(shown) + 1.3)
    several = len({row["model"] for row in shown}) > 1
    for place, row in enumerate(shown):
        low, high = row[f"{key}_low"], row[f"{key}_high"]
        error = None if low is None else [[max(0.0, row[key] - low)], [max(0.0, high - row[key])]]
        axes.barh(place, row[key], xerr=error, color=COLOURS[row["mode"]], capsize=3, height=0.62)
    labels = [
        f"{row['mode']}{' ' + row['model'] if several else ''}\n{row['completed']} conversations" for row in shown
    ]
    axes.set_yticks(range(len(shown)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, None if kind == "number" else 1)
    axes.set_xlabel(f"{heading} ({shown[0]['family'].replace('_', ' ')}), 95% intervals")
    return figure


def _course(curve: Row) -> Any:
    """Draw a curve of `reports.curves`, with one line for each mode."""
    figure, axes = _axes()
    for series in curve["series"]:
        xs, ys = zip(*series["points"], strict=True)
        mode, side = series["mode"], series["side"]
        style = {"color": COLOURS[mode], "linestyle": LINES[mode], "label": f"{mode} {side}".strip(), "linewidth": 2}
        if curve["steps"]:
            axes.step(xs, ys, where="post", **style)
        else:
            axes.plot(xs, ys, marker="s" if side else "o", **style)
    along = "turns" if curve["axis"] == "turns" else "position in the conversation (0 start, 1 end)"
    axes.set(xlim=(0, curve["end"]), xlabel=along, ylabel=curve["meaning"])
    axes.set_ylim(0, 1 if curve["steps"] else None)
    axes.legend(frameon=False)
    return figure
