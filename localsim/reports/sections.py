"""The sections of a report that all renderers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from localsim import paths
from localsim.annotation import agreement, leak_judges
from localsim.conversation.grants import condition_name
from localsim.conversation.wording.wordings import counted
from localsim.families import family_of, in_order, title_of
from localsim.models.registry import labelled
from localsim.reports.compose.alone import foremost
from localsim.reports.document import Cell, Report, Run, Section, Table
from localsim.reports.evidence import interviews, rubrics
from localsim.reports.figures import references
from localsim.reports.measures import INTERVALS
from localsim.reports.results import shown
from localsim.reports.validity import correction, head, instruments, judges, robustness
from localsim.runs.plan import command_of, outcomes_of
from localsim.runs.telling import of_people


def for_terminal(data: Report) -> Iterator[Section]:
    """Yield the sections that a terminal shows: without quotations, tables of errors, and the card."""
    yield from (*heads(data), *asked(data), *measures(data, published=False), sources(data))
    yield from (*variants(data), *opinions(data), *beside(data, ""), *aloud(data))


def for_document(data: Report) -> Iterator[Section]:
    """Yield the sections of a document."""
    yield from (*heads(data), *asked(data), *measures(data, published=True), *leaks(data), *aloud(data))
    yield from (*beside(data, "Conditions of other runs"), *errors(data), *variants(data), *opinions(data), made(data))


def on_page(data: Report) -> Iterator[Section]:
    """Yield the sections that a page shows behind its charts and talks."""
    yield from (*errors(data), *variants(data), *asked(data), *opinions(data), made(data))


def heads(data: Report) -> Iterator[Section]:
    """Yield a section for each head table: success, leaks and length of talk, with the warnings about them."""
    for each in head.tables(data):
        title = f"{data.title_of(each.family)}, {each.name}"
        yield Section(title, [each.table], each.same, [*each.notes, *each.closing])


def measures(data: Report, *, published: bool) -> Iterator[Section]:
    """Yield a section with all measures of each family; `published`: with the paper's values."""
    for family in dict.fromkeys(row.family for row in data.comparison):
        rows = [row for row in data.comparison if row.family == family]
        models = {row.model for row in rows}
        title = f"All measures of {title_of(family_of(family))}"
        title += "" if len(models) > 1 else f" ({labelled(*models)})"
        table = head.measure_table(rows, shown(data.measures, rows), data.references, published=published)
        yield Section(title, [table], references.sentences(data.references, family))


def games(data: Report) -> Iterator[Table]:
    """Yield a table for each family with references: its own measures beside random and best play."""
    for family in in_order(each.family for each in data.references):
        rows = [row for row in data.comparison if row.family == family and not row.other]
        keys = {measure.key for measure in family_of(family).measures}
        own = [measure for measure in shown(data.measures, rows) if measure.key in keys]
        table = head.measure_table(rows, own, data.references, published=False)
        title = f"{title_of(family_of(family))}: measures beside {references.heading(data.references, family)} play"
        yield replace(table, title=title, notes=references.sentences(data.references, family))


def asked(data: Report) -> Iterator[Section]:
    """Yield a section for each table of what was asked: those of interviews, then those of judges."""
    for table in (*interviews.tables(data.interviews), *judged(data)):
        yield Section(table.title, [table], folded=False)


def judged(data: Report) -> Iterator[Table]:
    """Yield the tables of judges: by rubric, then their choices; none if no judge was asked."""
    yield from rubrics.rubric_tables(data.rubrics)
    yield from rubrics.choice_tables(data.choices)


def variants(data: Report) -> Iterator[Section]:
    """Yield the section on the variants of the prompts; none for a run without any."""
    if data.robustness:
        tables = (robustness.contrast_table(data.robustness), robustness.share_table(data.robustness))
        yield Section(
            "Variants of the prompts",
            [table for table in tables if table.rows],
            robustness.sentences(data.robustness),
        )


def leaks(data: Report) -> Iterator[Section]:
    """Yield the section that quotes the private facts that came out; none if all was searched and nothing came out."""
    quoted, unsearched = foremost(data.leaks), head.unsearched(data)
    rows = [
        [
            condition_name(leak.mode, leak.see),
            *(leak.fact, leak.speaker, leak.text, str(leak.turn + 1)),
            "had not been told" if leak.kind == "omniscient" else "too early" if leak.early else "",
        ]
        for leak in quoted
    ]
    told = [f"{len(quoted)} of {len(data.leaks)} first disclosures."]
    tables = [Table("", ["mode", "fact", "by", "words", "turn", ""], rows, told)] if rows else []
    if tables or unsearched:
        yield Section("Private facts that came out", tables, unsearched)


def aloud(data: Report) -> Iterator[Section]:
    """Yield the paragraph about several runs, if there is one."""
    if data.aloud:
        yield Section("To read aloud", paragraph=data.aloud.paragraph)


def beside(data: Report, title: str) -> Iterator[Section]:
    """Yield a section that says which conditions of other runs are shown, if there are any."""
    if found := head.notes(data).beside:
        yield Section(title, lines=found)


def sources(data: Report) -> Section:
    """Return where the numbers come from, in sentences: intervals, errors of instruments, what leaks rely on."""
    told = [INTERVALS] if data.comparison else []
    told += [*instruments.sentences(data.instruments, short=True), *data.leak_sources]
    told += leak_judges.sentences(data.leak_judges)
    return Section("", lines=[*told, *correction.sentences(data.corrections, data.run.run_id)])


def errors(data: Report) -> Iterator[Section]:
    """Yield the section on the errors of the instruments, and on what relies on them, if they read anything."""
    if data.instruments and any(row.completed for row in data.comparison):
        heads = ["instrument", "question", "labels by", "raters", "their agreement", "right", "n"]
        rows: list[list[Cell]] = [
            [
                *(each.instrument, f"{each.error}: {each.meaning}"),
                *(each.labelled_by, each.raters, each.agreement),
                *(each.share, str(each.n or instruments.NOT_RECORDED)),
            ]
            for each in data.instruments
        ]
        tables = [Table(_LABELLED, heads, rows, words=5), *_corrected(data.corrections)]
        rest = [row for row in data.corrections if row.corrected.value is None]
        lines = [*data.leak_sources, *leak_judges.sentences(data.leak_judges)]
        lines += correction.sentences(rest, data.run.run_id)
        yield Section("Errors of the instruments", tables, lines)


_LABELLED = (
    "These instruments read the conversations. They make errors, and the intervals of the comparison do not contain "
    "them. Share of right answers on labelled conversations, with its 95% interval; items of one conversation count as "
    "independent there. The labels were not used to make the instrument, unless the column of labels says so."
)


def _corrected(rows: Sequence[correction.Correction]) -> Iterator[Table]:
    """Yield the table of leak rates corrected for the errors of their instrument, if there are any."""
    lines: list[list[Cell]] = []
    for row in rows:
        corrected = "not corrected" if row.corrected.value is None else row.corrected
        lines.append([row.mode, row.family, row.heading, row.labels, row.naive, corrected])
    title = (
        "Shares of all private facts, as the instrument finds them and corrected by labelled episodes (arXiv "
        "2306.04746), each scenario being one draw."
    )
    if lines:
        yield Table(title, ["mode", "family", "rate", "labels", "instrument", "corrected"], lines, words=4)


def opinions(data: Report) -> Iterator[Section]:
    """Yield the section on what judges and raters said; none if nobody was asked."""
    raters = agreement.sentences(data.annotations) if data.annotations.raters else []
    told = [*map(str, data.judges), *(f"{judges.sentence(rate)}." for rate in data.naturalness), *raters]
    if told:
        yield Section("What judges and raters said", lines=told)


# ---- how the run was made --------------------------------------------------------------------------------------------


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
        [_unnamed(run.plan["scenarios"])] if played and not run.scenarios else [],
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
    broken = data.run.status == "finished" and of_people(data.run.repro, data.run.models)
    told += f", {rest} {'broken off' if broken else 'missing or interrupted'}" if rest > 0 else ""
    return f"{told}; run {data.run.status}"


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


def _unnamed(hashes: Sequence[str]) -> str:
    """Return which scenarios the command cannot name."""
    known = ", ".join(each[:12] for each in hashes)
    return f"SCENARIO... stands for the {counted(len(hashes), 'scenario')} of the run, sha256 of their content {known}."
