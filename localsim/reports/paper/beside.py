"""Our conditions beside the paper's: Markdown tables, JSON, and the values that the figures draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from localsim.annotation.agreement import agreement
from localsim.annotation.selection import Selection
from localsim.reports.compose.beside import noted
from localsim.reports.paper import ours, published
from localsim.reports.paper.differences import differences
from localsim.reports.paper.published import MARKS, PANELS, Published
from localsim.reports.validity.judges import rates_between
from localsim.stats import Estimate
from localsim.store.conditions import Condition, names_of
from localsim.store.database import Store

Row = dict[str, Any]
Pair = tuple[Condition, Condition]
_PREFERRED = ("script", "mindreaders", "agents-ft", "agents-ft-agents", "agents-ft-clean")
"""The first condition of a pair whose naturalness is compared, where both are in it."""


def tables(store: Store, conditions: Sequence[Condition]) -> list[str]:
    """Return the paper's tables and figures beside ours as lines of Markdown.

    A condition stands in the paper's column of its label or mode: agents, mindreaders, script, agents-ft. Others have
    columns of their own.
    """
    return markdown(as_json(store, conditions))


def as_json(store: Store, conditions: Sequence[Condition]) -> Row:
    """Return panels with their rows, the differences of task, and the conditions by name.

    Each row has by (the paper's model, or our instrument), ours (True or False), what, values: name of a condition ->
    value, low, high, n and how (printed, figure, rebuilt or measured), and differs: names of the differences.
    """
    names = column_names(conditions)
    found = ours.read(store, conditions)
    apart = differences(store, conditions, ours.judges_of(found))
    measured = ours.rows(found)
    counts = {names[each]: bars for each, bars in ours.histogram(found).items()}
    panels = []
    for panel in PANELS:
        differs = [name for name in panel.differs if name in apart]
        rows = [_published(each) for each in published.ROWS if each.panel == panel.key]
        rows += [_ours(each, names, differs) for each in measured if each.panel == panel.key]
        if panel.key == "naturalness":
            rows += [row | {"differs": differs} for row in _natural(store, conditions, names)]
        made = {"key": panel.key, "heading": panel.heading, "places": panel.places, "share": panel.share, "rows": rows}
        panels.append(made | ({"counts": counts} if panel.key == "histogram" else {}))
    described = {names[each]: {**vars(each), "label": names[each]} for each in conditions}
    told = {name: {"paper": paper, "here": here} for name, (paper, here) in apart.items()}
    return {"panels": panels, "differences": told, "conditions": described}


def column_names(conditions: Sequence[Condition]) -> dict[Condition, str]:
    """Return the names of columns: the label, or the mode with its grants if no other condition has this name.

    Conditions of constructed controls are marked, and do not stand in a column of the paper.
    """
    shortest = names_of(conditions)
    plain = [each.label or each.name for each in conditions]
    return {
        each: noted(name if plain.count(name) == 1 else shortest[each], each.model)
        for each, name in zip(conditions, plain, strict=True)
    }


def _published(row: Published) -> Row:
    values = {
        name: {"value": value, "low": None, "high": None, "n": None, "how": row.source_of(name)}
        for name, value in row.values.items()
    }
    about = {"by": f"paper, {row.model}", "ours": False, "what": row.what, "place": row.place, "remark": row.remark}
    return about | {"values": values, "differs": []}


def _ours(row: ours.Ours, names: Mapping[Condition, str], differs: Sequence[str]) -> Row:
    values = {names[each]: _measured(estimate) for each, estimate in row.values.items()}
    judged = row.by != "rules"
    kept = [name for name in differs if not (name == "scale" and judged)]
    about = {"by": f"here, {row.by}", "ours": True, "what": row.what, "place": "", "remark": ""}
    return about | {"values": values, "differs": kept, "share": not judged and row.panel in ("goal", "deals")}


def _measured(estimate: Estimate) -> Row:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": estimate.n, "how": "measured"}


# ---- naturalness ---------------------------------------------------------------------------------------------------


def natural_pairs(conditions: Sequence[Condition], names: Mapping[Condition, str]) -> list[Pair]:
    """Return the pairs of conditions whose naturalness is compared: every two, in the paper's order."""

    def place(condition: Condition) -> int:
        name = names[condition]
        return _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED) + (name == "agents")

    ordered = sorted(conditions, key=place)
    return [(one, other) for number, one in enumerate(ordered) for other in ordered[number + 1 :]]


def _natural(store: Store, conditions: Sequence[Condition], names: Mapping[Condition, str]) -> list[Row]:
    """Return the choices of judges and of raters; each value belongs to the first condition of a pair."""
    pairs = natural_pairs(conditions, names)
    rows = []
    for rate in rates_between(store, pairs) if pairs else ():
        one, other = (names[Condition(**rate[f"{side}_condition"])] for side in ("first", "second"))
        remark = f"{rate['decided']} pairs, orders agree in {rate['orders_agree']:.0%}"
        remark += f"; {rate['warning']}" if rate["warning"] else ""
        rows.append(_choice(f"judge {rate['judge']}", one, other, rate, rate["decided"], remark))
    runs = tuple(dict.fromkeys(each.run_id for each in conditions))
    chosen = Selection(runs, frozenset(conditions), frozenset(frozenset(pair) for pair in pairs))
    found = (agreement(store, chosen, names=names)["pairs"] if runs else None) or {"rates": [], "kinds": {}}
    order = {(names[one], names[other]) for one, other in pairs}
    for rate in found["rates"]:
        turned = rate if (rate["first"], rate["second"]) in order else _turned(rate)
        kinds = " and ".join(f"{n} {kind}" for kind, n in found["kinds"].items())
        remark = f"{kinds}; {rate['decided']} judgements on {rate['scenarios']} scenarios; {rate['ties']} ties"
        rows.append(_choice("raters", turned["first"], turned["second"], turned, rate["decided"], remark))
    return rows


def _turned(rate: Row) -> Row:
    """Return the preference of raters for the second of two conditions."""
    shares = {"first_chosen": rate["first_chosen"], "low": rate["high"], "high": rate["low"]}
    flipped = {name: None if value is None else 1 - value for name, value in shares.items()}
    return {**rate, "first": rate["second"], "second": rate["first"], **flipped}


def _choice(by: str, one: str, other: str, rate: Row, n: int, remark: str) -> Row:
    value = {"value": rate["first_chosen"], "low": rate["low"], "high": rate["high"], "n": n, "how": "measured"}
    about = {"by": f"here, {by}", "ours": True, "what": f"{one} over {other}", "place": "", "remark": remark}
    return about | {"values": {one: value} if value["value"] is not None else {}, "share": True}


# ---- Markdown ------------------------------------------------------------------------------------------------------


def markdown(data: Row) -> list[str]:
    """Return the content of `as_json` as lines of Markdown."""
    lines = []
    for panel in data["panels"]:
        lines += [f"### {panel['heading']} (paper: {panel['places']})", "", *_table(panel), ""]
        if panel.get("counts"):
            lines += [*_bars(panel["counts"]), ""]
    lines += [
        "† read off a bar without a label. ‡ rebuilt: the paper's Table 2 prints its columns in another order than its "
        "text says. No number of Figure 3 is in the sources used here. Brackets: 95% intervals over scenarios. The "
        "paper's values are references, not targets.",
        "",
        "| differs in | paper | here |",
        "|---|---|---|",
        *(f"| {name} | {_cell(each['paper'])} | {_cell(each['here'])} |" for name, each in data["differences"].items()),
    ]
    return lines


def _table(panel: Row) -> list[str]:
    rows = panel["rows"]
    if panel["key"] == "dimensions" and not any(row["ours"] for row in rows):
        rows = [row for row in rows if "," not in row["what"]]  # the parts are for comparison with ours
    given = {name for row in rows for name in row["values"]}
    names = [name for name in published.CONDITIONS if name in given]
    names += sorted(given - set(names))
    heads = ["", "", *names, "where, and remarks", "differs in"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        share = panel["share"] or row.get("share", False)
        cells = [_number(row["values"][name], share) if name in row["values"] else "" for name in names]
        place = "; ".join(part for part in (row["place"], row["remark"]) if part)
        lines.append(
            "| " + " | ".join([_cell(row["by"]), row["what"], *cells, place, ", ".join(row["differs"])]) + " |"
        )
    return lines


def _number(value: Row, share: bool) -> str:
    form = ".0%" if share else ".2f"
    mark = MARKS.get(value["how"], "")
    low, high = value["low"], value["high"]
    ends = "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"
    return f"{value['value']:{form}}{mark}{ends}"


def _bars(counts: Mapping[str, Sequence[int]]) -> list[str]:
    bins = next(iter(counts.values()))
    heads = [f"{number / len(bins):.1f}" for number in range(len(bins))]
    lines = [f"| first named from | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    return lines + [f"| {name}, conversations | {' | '.join(map(str, bars))} |" for name, bars in counts.items()]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


# ---- figures -------------------------------------------------------------------------------------------------------


def figures(
    store: Store, conditions: Sequence[Condition], folder: Path, forms: Iterable[str] = ("svg", "png")
) -> list[Path]:
    """Write each panel as a figure, the paper's values left and ours right, and return the files.

    Raises InvalidInput without matplotlib.
    """
    from localsim.reports.figures.draw import ready, save
    from localsim.reports.paper.drawings import drawn

    ready()
    data = as_json(store, conditions)
    return save([(f"paper_{name}", figure) for name, figure in drawn(data)], folder, tuple(forms))
