"""The page of a study: sections of tables, and last the answer, each sentence of it from a finding; as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace

from localsim.conversation.wording.wordings import counted
from localsim.families import family_of, in_order, title_of
from localsim.families.base import SUCCESS
from localsim.reports.comparison import Compared
from localsim.reports.document import Section, Table
from localsim.reports.render.markdown import table
from localsim.reports.results import shown
from localsim.reports.validity.findings import Difference, Finding, Headline, effects, finding
from localsim.reports.validity.head import measure_table
from localsim.reports.validity.instruments import sentences as errors
from localsim.reports.validity.judges import sentence as rate_sentence
from localsim.stats import text_of
from localsim.study.design import Study
from localsim.study.differences import BOTH, CAUSES, EVERY, Contrast, Premium
from localsim.study.lessons import Lesson
from localsim.study.results import Results


def as_markdown(
    study: Study, versions: str, models: Sequence[Results], answers: Sequence[Section], beside: Sequence[str] = ()
) -> str:
    """Return the page; `beside` are lines of the paper's tables and figures beside ours."""
    lines = ["# Study", "", f"{_size(study)} Versions: localsim {versions}. {_END}"]
    if said := [sentence for model in models for sentence in model.playing.sentences()]:
        lines += ["", *(f"**{sentence}**  " for sentence in said)]
    for model in models:
        several = len(models) > 1
        lines += ["", f"## {model.model}"] if several else []
        for section in sections(model):
            lines += _lines(section, "###" if several else "##")
    if len(models) > 1:
        lines += _lines(_side_by_side(models))
    lines += ["", "## Beside the paper", "", *beside]
    lines += _lines(Section("How to read the tables", [], [_READ, *errors(models[0].instruments)]))
    lines += ["", "## Answer"]
    for part in answers:
        lines += ["", f"**{part.title}**", "", *(f"- {sentence}" for sentence in part.lines)]
    return "\n".join(lines) + "\n"


_END = "The answer in sentences is at the end of this page."


def _lines(section: Section, head: str = "##") -> Iterator[str]:
    """Yield a section in Markdown: tables with their titles and notes, sentences, and warnings."""
    yield from ("", f"{head} {section.title}")
    for each in section.tables:
        yield from ("", f"*{each.title}*") if each.title else ()
        yield from ("", *table(each))
        yield from ("", *(f"- {note}" for note in each.notes)) if each.notes else ()
    yield from ("", *(f"- {line}" for line in section.lines)) if section.lines else ()
    yield from ("", *(f"> {warning}  " for warning in section.warnings)) if section.warnings else ()


def _size(study: Study) -> str:
    size = study.size
    return (
        f"{size.scenarios} searches, {size.scenarios} bargains and {size.situations} situations; "
        f"{counted(size.episodes, 'episode')} of each scenario and condition, seed {study.seed}. "
        "All conditions play the same scenarios with the same seeds. "
        + (f"The lessons are from {size.learnt} other searches and as many bargains." if study.arms else "")
    )


def sections(model: Results) -> Iterator[Section]:
    """Yield the sections about one model."""
    yield _conditions(model)
    if model.lessons:
        yield _lessons(model.lessons)
    yield _goals(model)
    if model.judged:
        yield Section("Goals that a judge scores", [], model.judged.sentences())
    yield Section("Null and gain", [_premiums(model.premiums)])
    for family in dict.fromkeys(row.family for row in model.rows):
        yield Section(title_of(family_of(family)), [*_of_family(model, family)])
    # The arms: success by task first, then the other measures over all tasks.
    arms = (row for row in model.arms if row.task == EVERY or row.measure.key == SUCCESS.key)
    if model.arms:
        yield Section("Contrasts of the arms", [pair_table((f"{row.family}, {row.task}", row) for row in arms)])
    yield Section("Modes, pair by pair", [pair_table((row.family, row) for row in model.modes)])
    if model.twin:
        yield Section(f"Modes of {model.twin.title}", [pair_table((row.family, row) for row in model.twin.modes)])
    yield _naturalness(model)


_WRITER = "one writer sees all"


def _conditions(model: Results) -> Section:
    seen, rows = {"script": _WRITER, "iterative": f"{_WRITER}, turn by turn", "mindreaders": "all sides"}, []
    for each in model.conditions:
        made = f"fine-tuned on {model.lessons[each.label].taught_on}" if each.label in model.lessons else "as it is"
        made = model.twin.title if model.twin and each.constructed else made
        rows.append([each.label, seen.get(each.mode, "its own side"), made])
    runs = ", ".join(f"{stage} {run}" for stage, run in model.runs.items())
    found = Table("", ["condition", "each agent sees", "model"], rows)
    return Section("Conditions", [found], [f"model: {model.identity}", f"runs: {runs}"], model.warnings)


def _lessons(lessons: Mapping[str, Lesson]) -> Section:
    """Return what each arm was taught on, whole and by task."""
    rows, parts = [], []
    without: dict[str, str] = {}
    for name, lesson in lessons.items():
        loss = "-" if lesson.loss is None else f"{lesson.loss:.3f}"
        trained = [f"{lesson.total('tokens')} tokens, {lesson.total('targets')} targets", loss]
        trained = ["nothing", f"left out: {lesson.left_out}"] if lesson.left_out else trained
        episodes = f"{lesson.episodes} of {lesson.candidates}"
        rows.append([name, lesson.taught_on, episodes, str(lesson.available), *trained])
        parts += [(family, task, name, *counts) for family, task, *counts in map(astuple, lesson.tasks)]
        without |= lesson.without
    parts.sort(key=lambda part: part[:2])
    tasks = [[f"{family}, {task}", *map(str, rest)] for family, task, *rest in parts]
    heads = ["arm", "taught on", "episodes", "tokens to train on", "trained on", "validation loss"]
    counted = ["family, task", "arm", "chats", "scenarios", "also of agents-ft", "tokens", "targets"]
    left_out = [f"{task} is left out of the lessons of all arms: {reason}." for task, reason in without.items()]
    return Section("Lessons of the arms", [Table("", heads, rows), Table("", counted, tasks)], [*left_out, _LESSONS])


_LESSONS = (
    "All arms have the same base, recipe, number format and seed, and the same number of tokens and of targets of each "
    "task. *Tokens* are all tokens of the chats, prompts included; *targets* are the agent's own words, on which alone "
    "it is trained. In each task, the arm with the fewest tokens decides the tokens, then the one with the fewest "
    "targets the targets; the size of the study limits the tokens. All arms take the scenarios in one order; a tenth "
    "of them is held out, the same ones for all. *Without untold facts* means that no instrument found a use of "
    "anything untold; uses that no instrument sees remain. A validation loss is about chats of the same arm, so it "
    "does not compare arms."
)


def _goals(model: Results) -> Section:
    """Return success of every condition, those of the twin included, by family and task."""
    columns = {(row.family, row.task): row.scenarios for row in model.rows}
    heads = [f"{family}, {task} ({scenarios} scenarios)" for (family, task), scenarios in columns.items()]
    cells = {(row.condition, row.family, row.task): row.success for row in model.rows}
    names = dict.fromkeys(row.condition for row in model.rows)
    rows = [[name, *(cells.get((name, *column), "-") for column in columns)] for name in names]
    note = "Rules read success from the text of each conversation: no model judges it. Brackets: 95% over scenarios."
    return Section("Goals that the text proves", [Table("", ["condition", *heads], rows, [note])])


def _premiums(premiums: Iterable[Premium]) -> Table:
    """Return how much seeing every side, and one author for both, changed the model and its twin."""
    heads = ["family", "measure", "changed by", "model", "scenarios", "difference", "p", "less than", "verdict"]
    rows = []
    for each in premiums:
        equal = each.equivalence
        less = "-" if equal.p_holm is None else f"{equal.margin:g}: p = {equal.p_holm:.3f}"
        named = [each.family, each.measure.heading, each.contrast, each.who, str(each.test.scenarios)]
        rows.append([*named, _difference(each), _p(each), less, each.verdict])
    return Table("", heads, rows, [_PREMIUM])


_PREMIUM = (
    "*information*: each agent sees every side (mindreaders minus agents); *authorship*: one author for both sides "
    "(script minus mindreaders). *Change*: the test over scenarios finds one (p <= .05); it is a gain where success "
    "rises, or turns get fewer at equal success. *Null*: no change is found, and a second test finds that it is less "
    "than the margin (p <= .05). *Not told*: neither. *N scenarios cannot exclude it*: neither, and the second test "
    f"can find nothing with so few scenarios. *{BOTH}*: the twin's difference minus the model's, scenario by scenario. "
    "Success and turns by information are primary. The change of success in one run, of the model or of its twin, is "
    "the declared outcome of this run: its p are uncorrected, as in the tables of modes. The p of the other primary "
    "rows are corrected together (Holm), and so are those of all other rows; the p of the second test likewise."
)


def _of_family(model: Results, family: str) -> Iterator[Table]:
    """Yield the table of all tasks, and the goals of each task; success has a table of its own."""
    rows = [row for row in model.rows if row.family == family]
    measures = [each for each in model.measures if each.key != SUCCESS.key]
    for task in dict.fromkeys(row.task for row in rows):
        own = [row for row in rows if row.task == task]
        if found := shown((each for each in measures if task == EVERY or each.group == "goals"), own):
            title = f"{task}, {max(row.scenarios for row in own)} scenarios"
            title += "" if task == EVERY else ": other goals"
            # The paper's numbers are about other tasks: they have a section of their own, which names the differences.
            yield replace(measure_table(own, found, published=False), title=title)


def _naturalness(model: Results) -> Section:
    """Return what the judge and people chose, and the command that asks people."""
    judge = f"judged by {model.judge}" if model.judge else "not judged by a model"
    lines = [f"Blind pairs of conversations on the same scenario and seed, {judge}."]
    lines += [f"{rate_sentence(rate)}." for rate in model.naturalness]
    lines += model.people or ["No person has judged these pairs."]
    lines.append(f"`{model.ask_people}` asks people; their answers are shown here when the study is repeated.")
    return Section("Naturalness", [], lines)


def pair_table(rows: Iterable[tuple[str, Compared | Contrast]]) -> Table:
    """Return paired differences as a table, each with the name of its family or task."""
    cells = []
    for about, row in rows:
        p = "by construction" if row.by_construction else _p(row)
        cells.append([about, row.measure.heading, row.first, row.second, str(row.test.n), _difference(row), p])
    return Table("", ["family", "measure", "first", "second", "pairs", "difference", "p"], cells)


def _difference(row: Difference) -> str:
    return text_of(row.test.difference, row.test.low, row.test.high, "+.2f")


def _p(row: Difference) -> str:
    return "-" if row.p is None else f"{row.p:.3f}" + ("" if row.secondary else f" ({row.role})")


def _side_by_side(models: Sequence[Results]) -> Section:
    """Return success of every condition and family, one column for each model."""
    cells = {
        (f"{row.family}, {row.task}", row.condition, model.model): row.success for model in models for row in model.rows
    }
    names = [model.model for model in models]
    places = dict.fromkeys(key[:2] for key in cells)
    rows = [[*place, *(cells.get((*place, name), "-") for name in names)] for place in places]
    return Section("The models side by side", [Table("", ["family, task", "condition", *names], rows)])


_READ = (
    "Intervals are 95%, over scenarios. Differences are second minus first on the same scenario and seed; p flips the "
    "signs of scenarios. In the tables of modes, the primary outcome was declared before the runs, and all others are "
    "exploratory; no p is corrected there. In the table of the arms, success over all tasks is primary: its p are "
    "corrected together, and those of all other rows together."
)


# ---- the answer ------------------------------------------------------------------------------------------------------


def answer(model: Results, *, several: bool) -> list[Section]:
    """Return the answer about one model in parts; `several` names the model."""
    lead = f"{model.model}: " if several else ""
    parts = {
        "Talks that do not play": model.playing.sentences(),
        "Seeing every side, and one author for both": _modes(model.headline),
        "Null and gain": [*_premiums_told(model)],
        "Learning from scripts, and its controls": [*_arms(model)],
        "Naturalness": [*_choices(model)],
    }
    if model.twin:
        parts[f"The same by {model.twin.title}"] = _modes(model.twin.headline)
    return [Section(lead + about, [], said) for about, said in parts.items() if said]


def _modes(headline: Headline) -> list[str]:
    """Return what a report says of the differences between modes, without its advice on further runs."""
    said = [sentence for each in headline.families for sentence in each.sentences]
    return said or list(headline.sentences)


def _concluded(model: Results, rows: Iterable[Difference]) -> list[str]:
    """Return the families of rows in which the talks of all conditions play, in order."""
    withheld = {family for family, _ in model.playing.withheld}
    return [family for family in in_order(row.family for row in rows) if family not in withheld]


def _premiums_told(model: Results) -> Iterator[str]:
    """Yield for each family how much seeing every side changed the model, its twin, and the twin more than the model.

    Without a twin there is only the null, which the modes do not tell: that a change is small.
    """
    primary = [row for row in model.premiums if row.primary]
    for family in _concluded(model, primary):
        title = title_of(family_of(family))
        for key in dict.fromkeys(row.measure.key for row in primary):
            own = [row for row in primary if (row.family, row.measure.key) == (family, key)]
            if model.twin and own:
                built = "what was built into the twin"
                causes = {built if row.who == BOTH else f"seeing every side as {row.who}": finding(row) for row in own}
                yield _compared(title, causes, own[0])
            yield from (f"{title}: {_excluded(row)}." for row in own if row.verdict == "null")


def _excluded(row: Premium) -> str:
    margin, heading = row.equivalence.margin, row.measure.heading
    size = f"{100 * margin:.0f} points" if row.measure.kind == "share" else f"{margin:g}"
    if row.who == BOTH:
        return f"the change of {heading} of twin and model differs by less than {size}"
    return f"a change of {heading} of {row.who} by {size} or more is excluded"


def _arms(model: Results) -> Iterator[str]:
    """Yield for each family success of the arms against agents, and of the paper's arm against its controls."""
    found = [row for row in model.arms if row.primary]
    for family in _concluded(model, found):
        title = title_of(family_of(family))
        against: dict[str, Finding] = {}
        lessons: dict[str, Finding] = {}
        for row in (row for row in found if row.family == family):
            cause = CAUSES[row.first, row.second]
            if row.first == "agents":
                against[cause] = finding(row)
            else:
                lessons[f"{cause} ({row.second} against {row.first})"] = finding(row)
        for where, causes in (("against agents", against), ("in the lessons", lessons)):
            if causes:
                yield _compared(f"{title}, {where}", causes, found[0])
    for name, lesson in model.lessons.items():
        if lesson.left_out:
            yield f"{name} was not taught: {lesson.left_out}."


def _compared(title: str, causes: Mapping[str, Finding], row: Difference) -> str:
    return f"{title}: {effects(causes, row.measure.heading)}"


def _choices(model: Results) -> Iterator[str]:
    """Yield the choices of the judge where both orders agree often enough, then those of people."""
    warned: dict[str, list[str]] = {}
    for rate in model.naturalness:
        if rate.warning:
            warned.setdefault(rate.warning, []).append(f"{rate.first} and {rate.second}")
        else:
            yield f"{rate_sentence(rate)}."
    for warning, pairs in warned.items():
        yield f"Of {', '.join(pairs)}, the judge {model.judge} {warning}."
    yield from model.people
