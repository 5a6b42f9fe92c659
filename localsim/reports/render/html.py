"""The report of a run as one HTML page, the answer first, without scripts or downloads.

Figures, tables and example conversations are folded behind the head of each family; a link to a folded part opens it,
because browsers open `details` around the target of a link. `render` is pure. The template escapes all text of models
and files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import jinja2
from markupsafe import Markup

from localsim.families import Family, family_of, in_order, title_of
from localsim.families.base import SUCCESS
from localsim.models.registry import labelled
from localsim.reports import sections
from localsim.reports.card import sections as card_sections
from localsim.reports.compose.alone import foremost
from localsim.reports.compose.beside import with_colours
from localsim.reports.conversation import MarkedTurn, hits_in, marked_turns, marks, playing, remark_on
from localsim.reports.document import Report
from localsim.reports.figures.references import beside, heading
from localsim.reports.figures.references import sentences as sentences_on
from localsim.reports.measures import INVENTED, interval_of, shown
from localsim.reports.validity import head
from localsim.reports.validity.typical import RULE, Example
from localsim.runs import words
from localsim.runs.plan import command_of
from localsim.runs.telling import of_people
from localsim.store.episodes import StoredEpisode

Row = dict[str, Any]

NONE = "–"
"""Printed for a value that has no meaning."""


def render(data: Report, back: str = "") -> str:
    """Return one self-contained HTML page; `back` is the address of a page that it leads back to."""
    data = with_colours(data)
    comparison = data.comparison
    names = in_order(row["family"] for row in comparison)
    told = head.notes(data)
    simulated = [row for row in comparison if "people_run" not in row and "other_run" not in row]
    completed, failed = (sum(row[key] for row in simulated) for key in ("completed", "failed"))
    accuracy = data.parser_accuracy
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("localsim.reports.render"),
        autoescape=True,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html.j2").render(
        run=data.run,
        started=_date(data.run["started_utc"]),
        modes=len({row["mode"] for row in comparison if row["completed"]}),
        answer=head.answer(data),
        back=back,
        not_playing=playing.RULE if data.playing.withheld else "",
        aloud=data.aloud.paragraph if data.aloud else "",
        rule=RULE,
        labelled=labelled,
        invented=INVENTED,
        words=words,
        legend=_legend(comparison),
        warnings=told["general"],
        beside=told["beside"],
        families=[_family(name, data) | {"heads": heads} for name, heads in _heads(data, names).items()],
        counts={"completed": completed, "failed": failed, "rest": data.run["episodes_planned"] - completed - failed},
        resumable=failed < data.run["episodes_planned"] and not of_people(data.run["repro"], data.run["models"]),
        accuracy=accuracy,
        parsed=_parsed(accuracy) if accuracy else [],
        sections=[
            each
            for part in (sections.errors, sections.variants, sections.asked, sections.opinions)
            for each in part(data)
        ],
        commands=_commands(data.run),
        card=card_sections(data.card) if data.card else [],
    )


def _legend(rows: Iterable[Row]) -> list[Row]:
    """Return the conditions of a report in the order of their rows, each once, with mode, twin, name, see, model.

    `first` is True for those that the top of the page explains: modes, and what was granted in the report's own run.
    """
    found: dict[tuple[str, int], Row] = {}
    for row in rows:
        more = {"name": name_of(row), "model": labelled(row["model"], whole=False), "run": row.get("other_run", "")}
        more |= {"see": row.get("see") or "", "first": not row["twin"] or bool(row.get("see") and not more["run"])}
        found.setdefault((row["mode"], row["twin"]), {**row, **more})
    return list(found.values())


def _coloured(data: Report, family: str) -> list[Row]:
    """Return the leaks of a family with the number of their condition's colour."""
    keys = ("mode", "see", "model")
    colours = {tuple(row.get(key) or "" for key in keys): row["twin"] for row in reversed(data.comparison)}
    leaks = _of(family, data.leaks)
    return [{**leak, "twin": colours.get(tuple(leak.get(key) or "" for key in keys), 0)} for leak in leaks]


def _printable(value: Any) -> Any:
    """Return a value as the template prints it: – for a missing one, and only characters that HTML allows."""
    if value is None:
        return NONE
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]", "\ufffd", value)


def _date(text: str) -> str:
    date = datetime.fromisoformat(text)
    return f"{date.day} {date:%B %Y, %H:%M} UTC"


# ---- a family ------------------------------------------------------------------------------------------------------


def _of(family: str, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["family"] == family]


def _family(name: str, data: Report) -> Row:
    """Return what the page says about a family, except its head tables."""
    family, rows, leaks = family_of(name), _of(name, data.comparison), _coloured(data, name)
    told = {each.about["key"] for each in data.headline.families if each.family == name}
    terms = shown(data.measures, rows)
    played = data.references
    referred = {each["key"]: _signed(texts) for each in terms if (texts := beside(played, each, rows))}
    columns, same = head.constants(terms, rows, {SUCCESS.key, *referred} | told)
    models = list(dict.fromkeys(row["model"] for row in rows))
    by_key = {measure["key"]: _own_meaning(measure, family) for measure in columns}

    def panels(keys: Sequence[str]) -> list[Row]:
        return [_panel(by_key[key], rows, len(models) > 1) for key in keys if key in by_key]

    curves = [_curve(curve) for curve in _of(name, data.curves) if _rises(curve)]
    figures = {
        "outcomes": panels(family.figure),
        "style": panels(_keys(columns, "style", family)),
        "secrets": panels(_keys(columns, "secrets", family)),
        "curves": curves,
    }
    return {
        **figures,
        "charts": sum(map(len, figures.values())) if any(row["completed"] for row in rows) else 0,
        "terms": [_own_meaning(measure, family) for measure in terms],
        "known": [measure["key"] for measure in terms],
        "id": re.sub(r"\W", "-", name),
        "name": name,
        "title": title_of(family),
        "about": family.about,
        "completed": sum(row["completed"] for row in rows),
        "left_out": head.left_out(data, name),
        "same": same,
        "notes": [*head.unjudged(data, name), *head.of_family(data, name)],
        "unsearched": head.unsearched(data, name),
        "leaks": foremost(leaks),
        "leaks_total": len(leaks),
        "models": [labelled(model, whole=len(models) == 1) for model in models],
        "columns": columns,
        "rows": [{**row, "name": name_of(row), "model": labelled(row["model"], whole=False)} for row in rows],
        "lines": [
            (measure, [_cell(row, measure) for row in rows], referred.get(measure["key"], [])) for measure in columns
        ],
        "referred": heading(played, name),
        "references": sentences_on(played, name),
        "examples": [_example(example, rows) for example in data.talks if example.family == name],
    }


def _own_meaning(measure: Row, family: Family) -> Row:
    """Return a measure with the meaning that the family gives it: several families have a measure of the same key."""
    own = next((each.meaning for each in family.measures if each.key == measure["key"]), measure["meaning"])
    return {**measure, "meaning": own}


def _heads(data: Report, names: Iterable[str]) -> dict[str, list[Row]]:
    """Return family -> head tables; the warnings about a model stand at its first table, later ones link to them."""
    found: dict[str, list[Row]] = {name: [] for name in names}
    places: dict[str, str] = {}
    for table in head.tables(data, lambda measure, row: _cell(row, measure)):
        if table["notes"]:
            places[table["model"]] = f"model-{len(places)}"
        more: Row = {"name": labelled(table["model"], whole=False), "place": places.get(table["model"], "")}
        columns = [{**row, "name": name_of(row)} for row in table["rows"]]
        for line in table["lines"]:
            line["cells"] = _signed(line["cells"]) if line["reference"] else line["cells"]
        more |= {"referred": any(line["reference"] for line in table["lines"])}
        found[table["family"]].append({**table, **more, "columns": columns})
    return found


def _rises(curve: Row) -> bool:
    """Return True if some point of a curve is not 0."""
    return any(y for series in curve["series"] for _, y in series["points"])


def _keys(measures: Iterable[Row], figure: str, family: Family) -> list[str]:
    return [each["key"] for each in measures if each["figure"] == figure and each["key"] not in family.figure]


def _cell(row: Row, measure: Row) -> Row:
    kind, interval = measure["kind"], interval_of(measure, row)
    if head.gap(measure, row) == head.NOT_SEARCHED:
        return {"value": head.NOT_SEARCHED, "interval": None}
    alike = row.get(f"{measure['key']}_alike")
    beside = f"in all {alike}" if alike else interval and _interval(*interval, kind)
    return {"value": _number(row[measure["key"]], kind), "interval": beside}


def _signed(texts: Iterable[str]) -> list[str]:
    """Return values of references with the signs of this page: a minus, and – for a missing one."""
    parts = ([NONE if part == "-" else part.replace("-", "−") for part in text.split(" / ")] for text in texts)
    return [" / ".join(each) for each in parts]


def _interval(low: float, high: float, kind: str) -> str:
    link = " to " if low < 0 else "–"
    return f"{_number(low, kind).rstrip('%')}{link}{_number(high, kind)}"


def _number(value: float | None, kind: str, digits: int = 2) -> str:
    if value is None:
        return NONE
    return (f"{value:.0%}" if kind == "share" else f"{value:.{digits}f}").replace("-", "−")


# ---- figures -------------------------------------------------------------------------------------------------------


def name_of(row: Row) -> str:
    """Return the name of a row's condition."""
    return str(row.get("condition") or row["mode"])


def _panel(measure: Row, rows: list[Row], several_models: bool) -> Row:
    """Return one measure with a bar for each mode; positions are parts of the axis, from 0 to 1.

    The axis begins at 0, or below it if an estimate or an interval does; bars begin at `zero`.
    """
    key, kind = measure["key"], measure["kind"]
    names = {name_of(row) for row in rows}
    paper = {name: value for name, value in measure["published"].items() if name in names}
    position = kind == "position"
    digits = 2 if position else 1
    top = _axis_end(rows, key, paper.values()) if kind == "number" else 1.0
    bottom = _axis_start(rows, key, top)
    span = top - bottom
    bars = []
    for row in rows:
        value, low, high = row[key], row[f"{key}_low"], row[f"{key}_high"]
        bars.append(
            {
                "mode": row["mode"],
                "name": name_of(row),
                "twin": row["twin"],
                "model": labelled(row["model"], whole=False) if several_models else "",
                "text": _number(value, kind, digits),
                "n": row[f"{key}_n"] if position else None,
                "interval": None if low is None else [_number(end, kind, digits) for end in (low, high)],
                "at": None if value is None else max(0.0, min(1.0, (value - bottom) / span)),
                "low": None if low is None else max(0.0, (low - bottom) / span),
                "high": None if high is None else min(1.0, (high - bottom) / span),
                "cut": high is not None and high > top,
                "paper": (paper[name_of(row)] - bottom) / span if name_of(row) in paper else None,
            }
        )
    ends = ("start", "middle", "end") if position else [_tick(bottom + span * part, kind) for part in (0, 0.5, 1)]
    if bottom:  # the axis is named at its ends and at 0 then
        ends = (ends[0], "", ends[2])
    return {
        "key": key,
        "heading": measure["heading"],
        "meaning": measure["meaning"],
        "bars": bars,
        "zero": -bottom / span,
        "ticks": ends,
        "paper": [(mode, _number(value, kind, digits)) for mode, value in paper.items()],
    }


WIDTH, HEIGHT, LEFT = 270, 150, 40
"""Size of the drawing area of a curve, and the space for its axis, in pixels."""


def _curve(curve: Row) -> Row:
    """Return a curve with its points as an SVG path: x along its axis, y from 0 to a round number above all points."""
    top = max(1.0, math.ceil(max(y for series in curve["series"] for _, y in series["points"]) * 4) / 4)
    drawn = []
    for series in curve["series"]:
        places = [(LEFT + x / curve["end"] * WIDTH, HEIGHT * (1 - y / top) + 8) for x, y in series["points"]]
        path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
        for x, y in places[1:]:
            path += f"H{x:.1f}V{y:.1f}" if curve["steps"] else f"L{x:.1f} {y:.1f}"
        drawn.append(
            {"name": series["mode"], "twin": 0, **series, "path": path, "dots": [] if curve["steps"] else places}
        )
    return {**curve, "series": drawn, "top": top}


def _axis_end(rows: Iterable[Row], key: str, paper: Iterable[float]) -> float:
    """Return a round number above every value and interval; an interval is cut at twice the largest value."""
    values = [row[key] for row in rows if row[key] is not None]
    highs = [row[f"{key}_high"] for row in rows if row[f"{key}_high"] is not None]
    most = max(*values, *paper, min(max([*highs, 0.0]), 2 * max(values)), 1.0)
    step = 10.0 ** math.floor(math.log10(most))
    return next(step * part for part in (1, 2, 4, 6, 8, 10) if step * part >= most)


def _axis_start(rows: Iterable[Row], key: str, top: float) -> float:
    """Return 0, or a fourth, half or the whole of the axis below it if an estimate or an interval is there."""
    ends = [row[name] for row in rows for name in (key, f"{key}_low") if row[name] is not None]
    least = min([*ends, 0.0])
    return next((-part * top for part in (0, 0.25, 0.5) if least >= -part * top), -top)


def _tick(value: float, kind: str) -> str:
    return (f"{value:.0%}" if kind == "share" else f"{value:g}").replace("-", "−")


# ---- example conversations -----------------------------------------------------------------------------------------


def _example(example: Example, rows: Sequence[Row]) -> Row:
    scenario = example.episodes[0].scenario
    colours = marks.colours(scenario.names)
    return {
        "title": scenario.title,
        "setting": scenario.setting,
        "seed": example.episodes[0].seed,
        "models": list(dict.fromkeys(episode.model for episode in example.episodes)),
        "people": [(agent, colours[agent.name]) for agent in scenario.agents],
        "leaks": any(episode.leaks for episode in example.episodes),
        "hits": any(hits_in(episode) for episode in example.episodes),
        "talks": [{**_conversation(each), "twin": _colour(each, rows)} for each in example.episodes],
    }


def _colour(episode: StoredEpisode, rows: Sequence[Row]) -> int:
    """Return the number of the colour of an episode's condition, which is a row of the report."""
    own = [row for row in rows if (row["mode"], row.get("see") or "") == (episode.mode, episode.see)]
    alike = [row for row in own if row["model"] == episode.model]
    there = [row for row in alike if row.get("other_run") == episode.run_id]
    return next((row["twin"] for row in (*there, *alike, *own)), 0)


def _conversation(episode: StoredEpisode) -> Row:
    return {
        "mode": episode.mode,
        "name": episode.condition,
        "model": labelled(episode.model),
        "stop_reason": episode.stop_reason,
        "acts": len(episode.transcript.acts),
        "success": next((score for score in episode.scores if score["name"] == "success"), None),
        "remarks": family_of(episode.scenario.family).remarks(
            {score["name"]: score["value"] for score in episode.scores if score["value"] is not None}
        ),
        "turns": [
            {
                **turn.row,
                "colour": turn.colour,
                "parts": [(part, mark.kind if mark else "") for part, mark in turn.parts],
                "notes": _notes(turn),
                "hit": turn.hit,
            }
            for turn in marked_turns(episode)
        ],
    }


def _notes(turn: MarkedTurn) -> list[tuple[str, str, str]]:
    """Return (speaker, remark, fact or term) for leaks; without a leak, for first mentions of others' facts."""
    speaker = turn.row["speaker"]
    if turn.leaks:
        return [(speaker, remark_on(leak), leak["fact"]) for leak in turn.leaks if remark_on(leak)]
    return [(speaker, "does not hold this fact", term) for term in turn.strange]


# ---- how it was made -----------------------------------------------------------------------------------------------


def _parsed(accuracy: Row) -> list[Row]:
    parts = accuracy["measures"]
    return [
        {"name": name.replace("_", " "), **part, "rate": f"{part['right'] / part['n']:.0%}"}
        for name, part in parts.items()
        if isinstance(part, dict) and part.get("n")
    ]


def _commands(run: Row) -> list[str]:
    """Return the commands that repeat this run and its report."""
    made = command_of({**run["plan"], "parallel": run["parallel"]}, run.get("scenarios") or [])
    return [made, f"localsim report {run['run_id']} -o report.html"]
