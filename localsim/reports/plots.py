"""Figures of a run as SVG and PNG, for papers and slides. The only module that imports matplotlib (extra `plots`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from localsim.conversation.episode import MODES
from localsim.errors import InvalidInput
from localsim.reports.report import COLUMNS, report
from localsim.store.database import Store

Row = dict[str, Any]

COLOURS = {"script": "#c65a00", "agents": "#1d4f91", "mindreaders": "#2a9d8f"}
LINES = {"script": "-", "agents": "--", "mindreaders": ":"}
"""Modes differ in line as well as in colour."""
ESTIMATES = ("success_rate", "deal_rate", "words_per_turn", "disclosed_rate", "omniscient_leaks")


def figures(store: Store, run_id: str, folder: Path, forms: tuple[str, ...] = ("svg", "png")) -> list[Path]:
    """Write every figure that the run has data for; return the files. Raises InvalidInput without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError as error:
        raise InvalidInput("figures need matplotlib", hint='pip install "localsim[plots]"') from error
    # Without dates and with text as text, the same data gives the same file, and words stay searchable.
    matplotlib.rcParams |= {"svg.hashsalt": "localsim", "svg.fonttype": "none", "font.size": 11}
    comparison = report(store, run_id)["comparison"]
    drawn: list[tuple[str, Any]] = []
    for family in dict.fromkeys(row["family"] for row in comparison):
        rows = [row for row in comparison if row["family"] == family]
        drawn += [
            (f"{family}_{key}", _bars(key, rows)) for key in ESTIMATES if any(row[key] is not None for row in rows)
        ]
    drawn += [(name, figure) for name, draw in CURVES.items() if (figure := draw(store, run_id)) is not None]
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


def _bars(key: str, rows: list[Row]) -> Any:
    """An estimate by mode with its 95% interval."""
    heading, kind = next((heading, kind) for name, heading, kind in COLUMNS if name == key)
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
    axes.set_xlim(0, 1 if kind == "share" else None)
    axes.set_xlabel(f"{heading} ({shown[0]['family'].replace('_', ' ')}), 95% intervals")
    return figure


def _first_mentions(store: Store, run_id: str) -> Any:
    """Share of talks in which the friend in common has been named by a position (the paper's figures 10 and 12)."""
    return _curve(
        store,
        run_id,
        "SELECT mode, value AS position FROM v_scores WHERE run_id = ? AND newest AND name = 'first_mention'",
        "SELECT mode, count(*) AS n FROM v_scores WHERE run_id = ? AND newest AND name = 'named' GROUP BY mode",
        "share of talks that have named the friend",
    )


def _disclosures(store: Store, run_id: str) -> Any:
    """Share of private facts that are out by a position."""
    return _curve(
        store,
        run_id,
        "SELECT mode, position FROM v_leaks WHERE run_id = ?",
        "SELECT mode, sum(value) AS n FROM v_scores WHERE run_id = ? AND newest AND name = 'private_facts' GROUP BY 1",
        "share of private facts that are out",
    )


def _curve(store: Store, run_id: str, positions: str, totals: str, label: str) -> Any:
    total = {row["mode"]: row["n"] for row in store.rows(totals, [run_id]) if row["n"]}
    if not total:
        return None
    found: dict[str, list[float]] = {mode: [] for mode in total}
    for row in store.rows(positions, [run_id]):
        found[row["mode"]].append(row["position"])
    figure, axes = _axes()
    for mode in sorted(total, key=MODES.index):
        steps = sorted(found[mode])
        shares = [number / total[mode] for number in range(1, len(steps) + 1)]
        ends = [0.0, *steps, 1.0], [0.0, *shares, shares[-1] if shares else 0.0]
        axes.step(*ends, where="post", color=COLOURS[mode], linestyle=LINES[mode], label=mode, linewidth=2)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="position in the talk (0 start, 1 end)", ylabel=label)
    axes.legend(frameon=False)
    return figure


CURVES: dict[str, Callable[[Store, str], Any]] = {"first_mention": _first_mentions, "disclosure_curve": _disclosures}
