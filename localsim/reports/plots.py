"""Figures of a run as SVG and PNG, for papers and slides. The only module that imports matplotlib (extra `plots`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from localsim.errors import InvalidInput
from localsim.families import family_of
from localsim.reports.report import report
from localsim.store.database import Store

Row = dict[str, Any]

COLOURS = {"script": "#c65a00", "agents": "#1d4f91", "mindreaders": "#2a9d8f"}
LINES = {"script": "-", "agents": "--", "mindreaders": ":"}
"""Modes differ in line as well as in colour."""
ESTIMATES = ("success_rate", "words_per_turn", "disclosed_rate", "omniscient_leaks")


def figures(store: Store, run_id: str, folder: Path, forms: tuple[str, ...] = ("svg", "png")) -> list[Path]:
    """Write every figure that the run has data for; return the files. Raises InvalidInput without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError as error:
        raise InvalidInput("figures need matplotlib", hint='pip install "localsim[plots]"') from error
    # Without dates and with text as text, the same data gives the same file, and words stay searchable.
    matplotlib.rcParams |= {"svg.hashsalt": "localsim", "svg.fonttype": "none", "font.size": 11}
    data = report(store, run_id)
    comparison, measures = data["comparison"], {measure["key"]: measure for measure in data["measures"]}
    drawn: list[tuple[str, Any]] = []
    for family in dict.fromkeys(row["family"] for row in comparison):
        rows = [row for row in comparison if row["family"] == family]
        drawn += [
            (f"{family}_{key}", _bars(measures[key], rows))
            for key in _drawn(family)
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


def _drawn(family: str) -> list[str]:
    """The measures that are drawn: those of the family's figure, and some that every family has."""
    return list(dict.fromkeys([*family_of(family).figure, *ESTIMATES]))


def _bars(measure: Row, rows: list[Row]) -> Any:
    """An estimate by mode with its 95% interval."""
    key, heading, kind = measure["key"], measure["heading"], measure["kind"]
    shown = [row for row in rows if row[key] is not None]
    figure, axes = _axes(height=0.6 * len(shown) + 1.3)
    several = len({row["model"] for row in shown}) > 1
    for place, row in enumerate(shown):
        low, high = row[f"{key}_low"], row[f"{key}_high"]
        error = None if low is None else [[max(0.0, row[key] - low)], [max(0.0, high - row[key])]]
        axes.barh(place, row[key], xerr=error, color=COLOURS[row["mode"]], capsize=3, height=0.62)
    labels = [f"{row['mode']}{' ' + row['model'] if several else ''}\n{row['completed']} talks" for row in shown]
    axes.set_yticks(range(len(shown)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, None if kind == "number" else 1)
    axes.set_xlabel(f"{heading} ({shown[0]['family'].replace('_', ' ')}), 95% intervals")
    return figure


def _course(curve: Row) -> Any:
    """A curve of `reports.curves`, each mode in its own line."""
    figure, axes = _axes()
    for series in curve["series"]:
        xs, ys = zip(*series["points"], strict=True)
        mode, side = series["mode"], series["side"]
        style = {"color": COLOURS[mode], "linestyle": LINES[mode], "label": f"{mode} {side}".strip(), "linewidth": 2}
        if curve["steps"]:
            axes.step(xs, ys, where="post", **style)
        else:
            axes.plot(xs, ys, marker="s" if side else "o", **style)
    axes.set(xlim=(0, 1), xlabel="position in the conversation (0 start, 1 end)", ylabel=curve["meaning"])
    axes.set_ylim(0, 1 if curve["steps"] else None)
    axes.legend(frameon=False)
    return figure
