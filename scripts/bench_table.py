"""The engine's benchmark as a table and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Format the results as one table."""
    lines = ["| | " + " | ".join(result["workload"] for result in results) + " |", "|---|" + "---|" * len(results)]
    rates = ("wrapper", "engine -j 1", "engine", "server", "limit", "ideal")
    for name in rates:
        if name in results[0]["rates"]:
            cells = (f"{result['rates'][name]:.1f}" for result in results)
            lines.append(f"| {name}, tokens/s | " + " | ".join(cells) + " |")
    for name in results[0]["ratios"]:
        cells = (f"{result['ratios'][name]:.2f}" for result in results)
        lines.append(f"| **engine / {name}** | " + " | ".join(cells) + " |")
    for name, form in (
        ("evaluated_per_generated", ".2f"),
        ("python_share", ".1%"),
        ("sampling_share", ".1%"),
        ("shared_tokens", ".0f"),
        ("tokens a reply", ".1f"),
        ("server, evaluated per generated", ".2f"),
    ):
        if name not in results[0]["rates"]:
            continue
        cells = (format(result["rates"][name], form) for result in results)
        lines.append(f"| {name.replace('_', ' ')} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(results: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Draw bars of tokens a second for each workload."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    for place, result in enumerate(results, start=1):
        axes = figure.add_subplot(1, len(results), place)
        names = [name for name in ("wrapper", "engine -j 1", "server", "engine", "limit") if name in result["rates"]]
        rates = [result["rates"][name] for name in names]
        colours = ["#1d4f91" if name.startswith("engine") else "#a9b1bb" for name in names]
        bars = axes.barh(names, rates, color=colours)
        axes.bar_label(bars, fmt="%.0f", padding=3)
        axes.invert_yaxis()
        axes.set_title(result["workload"])
        axes.set_xlabel("generated tokens a second")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})
