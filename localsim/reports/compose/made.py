"""How the run of a report was made, and the commands that repeat it, as a section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from localsim import paths
from localsim.models.registry import labelled
from localsim.reports.document import Report, Run, Section, Table
from localsim.runs.plan import command_of, outcomes_of

LEVELS = {
    "exact": "the same seed gives the same text on the same file and build, whatever -j says",
    "stable": "the same seeds and the same schedule; text may differ between machines",
    "fast": "the same seeds; text may differ from run to run",
}
"""What each level of reproducibility promises."""
_INTERVALS = (
    "95%: Student’s t over scenarios, so that episodes of one scenario count as one draw; inside the possible range, "
    "with one more scenario counted at each end of it; none for a single scenario"
)
_RULES = "Rules, not a model, read endings and names from the text."


def made(data: Report) -> Section:
    """Return how the run was made: models, episodes, seeds, outcomes, versions, instruments, and its commands."""
    run, played = data.run, "sampling" in data.run.plan
    rows = [*(("model", f"{labelled(name)}: {_identity(each)}") for name, each in run.models.items())]
    rows += [("episodes", _episodes(data))]
    rows += [*_settings(run)] if played else []
    rows += [
        ("versions", ", ".join(f"{name} {version}" for name, version in run.versions.items())),
        ("tokens", f"{run.tokens_generated:,} generated, {run.tokens_evaluated:,} evaluated"),
        ("reading of endings", _reading(data.parser_accuracy)),
        ("intervals", _INTERVALS),
    ]
    commands = [
        command_of({**run.plan, "parallel": run.parallel}, list(map(_portable, run.scenarios))),
        f"localsim report {run.run_id} -o report.html",
    ]
    return Section(
        "How this was made, and how to repeat it",
        [Table("How this was made", ["part", "what it was"], rows, words=2)],
        [_unnamed(run)] if played and not run.scenarios else [],
        key="made",
        commands=commands,
    )


def _identity(model: Mapping[str, Any]) -> str:
    kind = model.get("kind")
    if kind == "people":
        return f"people, from {model.get('source')}, sha256 {model.get('sha256', '')[:12]}"
    if kind == "scripted":
        return "a script, not a language model"
    if kind == "remote":
        return f"remote, {model.get('model')} at {model.get('url')}; weights and seeds there are not verified"
    known = f"{model.get('file') or '–'}, sha256 {(model.get('sha256') or 'unknown')[:12]}"
    return f"{known}, {model['build']}" if model.get("build") else known


def _episodes(data: Report) -> str:
    own = [row for row in data.comparison if not row.other]
    completed, failed = sum(row.completed for row in own), sum(row.failed for row in own)
    rest = data.run.episodes_planned - completed - failed
    told = f"{data.run.episodes_planned} planned, {completed} completed, {failed} failed"
    return told + (f", {rest} missing or interrupted" if rest > 0 else "") + f"; run {data.run.status}"


def _settings(run: Run) -> Iterator[tuple[str, str]]:
    """Yield what the plan of a simulation states."""
    yield "outcomes", outcomes_of(run.plan).sentence()
    yield "seed", f"{run.seed}; every episode’s seed derives from it and is the same in every mode"
    promised = f": {LEVELS[run.repro]}" if run.repro in LEVELS else ""
    yield "repro", f"{run.repro}{promised}; {run.parallel} episodes side by side"
    words = {True: "on", False: "off"}
    sampling = (
        f"{key.replace('_', ' ')} {words[value] if isinstance(value, bool) else value}"
        for key, value in run.plan["sampling"].items()
    )
    yield "sampling", f"{', '.join(sampling)}; equal in every mode"


def _reading(accuracy: Mapping[str, Any] | None) -> str:
    if not accuracy:
        return (
            f"{_RULES} Their accuracy has not been measured for this installation: the error that they add to success, "
            "deal and mention figures is unknown, and the intervals do not contain it."
        )
    source = ", ".join(filter(None, (accuracy.get("file"), accuracy.get("date"))))
    shares = (
        f"{name.replace('_', ' ')} {part['right'] / part['n']:.0%} ({part['right']} of {part['n']})"
        for name, part in accuracy["measures"].items()
        if part["n"]
    )
    told = f"On {accuracy.get('n')} labelled conversations" + (f" ({source})" if source else "")
    return f"{_RULES} {told} the rules were right in: {', '.join(shares)}."


def _portable(path: str) -> str:
    """Return what names a scenario on another machine: its id if it ships, else the name of its file."""
    file = PurePath(path)
    if not file.is_absolute():
        return path
    return file.stem if (paths.bundled("scenarios") / file.name).is_file() else file.name


def _unnamed(run: Run) -> str:
    """Return which scenarios the command cannot name."""
    hashes = run.plan["scenarios"]
    many = "scenario" if len(hashes) == 1 else "scenarios"
    known = ", ".join(each[:12] for each in hashes)
    return f"SCENARIO... stands for the {len(hashes)} {many} of the run, sha256 of their content {known}."
