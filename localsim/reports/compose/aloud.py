"""One paragraph about runs of several models on the same scenarios, to be read aloud.

It says what differed between agents who know their own side and mindreaders who see both, by how much, how sure that
is, and which models are constructed controls. All models are compared on the scenarios that each of them completed in
both modes, so the levels, the differences and the tests of the paragraph are about the same conversations.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from localsim import stats
from localsim.conversation.measures import Measure
from localsim.conversation.wording.wordings import counted
from localsim.families import family_of, in_order, title_of
from localsim.models.registry import constructed, taught
from localsim.reports.comparison import Unit, compare, completed
from localsim.reports.compose.alone import report
from localsim.reports.document import Aloud, Report
from localsim.reports.validity.findings import LEVEL, NIL, Answer, Bar, Finding
from localsim.reports.validity.headline import INFORMATION, LENGTH, SUCCESS, headline
from localsim.reports.validity.robustness import sign_turns
from localsim.runs.plan import CONTRASTS
from localsim.store.conditions import Condition
from localsim.store.database import Store

Units = dict[str, set[Unit]]
"""Family -> scenarios and seeds."""
GAIN = {SUCCESS: 1, LENGTH: -1}
"""Measures whose better direction is known: more success, fewer turns. Only they can show a gain."""
MEANING = "A gain is more success, or fewer turns."
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


class Told(NamedTuple):
    """What seeing the other side changed for one model in one family, on the shared scenarios."""

    model: str
    """The name of the model in the paragraph."""
    answer: Answer
    found: Finding

    @property
    def about(self) -> Measure:
        """The measure."""
        return self.answer.about

    @property
    def title(self) -> str:
        """The heading of the family."""
        return title_of(family_of(self.answer.family))

    @property
    def bar(self) -> Bar:
        """The finding as a line of a picture."""
        return Bar(self.title, self.model, self.about.heading, self.found)


def with_paragraph(store: Store, data: Report, conditions: Sequence[Condition]) -> Report:
    """Return a report with `aloud`: the paragraph about its own run and others.

    A run counts if its agents and its mindreaders are among the conditions, they share a scenario and seed with the
    runs before it, and it has a model that these lack. Without such a run the report is returned as it is.
    """
    own = data.run.run_id
    names = stats.grouped((each.run_id, each.name) for each in conditions)
    both = [run_id for run_id in names if run_id != own and {*CONTRASTS[INFORMATION]} <= {*names[run_id]}]
    shared, reports, repeated = _units(store, own), [data], []
    known = {_identity(data, model) for model in _models(data)}
    for run_id in both:
        common = _common(shared, _units(store, run_id))
        if not common:
            continue
        other = report(store, run_id)
        fresh = {_identity(other, model) for model in _models(other)} - known
        if not fresh:
            repeated += _models(other)
            continue
        shared, known = common, known | fresh
        reports.append(other)
    if len(reports) == 1:
        return data
    about = [_among(store, each, shared) for each in reports]
    runs = [each.run.run_id for each in reports[1:]]
    bars = [each.bar for each in _told(about, shared) if each.found.levels and each.found.verdict != "withheld"]
    said = paragraph(about, shared, repeated), conclusions(about, shared)
    return replace(data, aloud=Aloud(runs, *said, bars))


def _units(store: Store, run_id: str) -> Units:
    """Return the scenarios and seeds that a run completed in both modes.

    Where a role has a model of its own, the models of a run play different scenarios: the units of all count.
    """
    pairs: dict[str, dict[str, Units]] = defaultdict(dict)
    for condition, units in completed(store, [run_id]).items():
        if condition.name in CONTRASTS[INFORMATION]:
            pairs[condition.model][condition.name] = units
    found: Units = defaultdict(set)
    for own in pairs.values():
        if len(own) == len(CONTRASTS[INFORMATION]):
            for family, both in _common(*own.values()).items():
                found[family] |= both
    return dict(found)


def _common(first: Units, *others: Units) -> Units:
    """Return the units that all have; a family without any is left out."""
    found = {family: own.intersection(*(each.get(family, set()) for each in others)) for family, own in first.items()}
    return {family: units for family, units in found.items() if units}


def _among(store: Store, data: Report, shared: Units) -> Report:
    """Return a report whose headline is about the shared units alone."""
    run_id = data.run.run_id
    if _units(store, run_id) == shared:
        return data
    among = set().union(*shared.values())
    turns = partial(sign_turns, data.robustness)
    return replace(data, headline=headline(data, compare(store, run_id, among=among), turns))


def _models(data: Report) -> list[str]:
    return list(dict.fromkeys(row.model for row in data.comparison if row.mode in CONTRASTS[INFORMATION]))


def _identity(data: Report, model: str) -> str:
    """Return a text that is the same for the same model under two names: the checksum of its weights if it is known."""
    known = data.run.models
    return json.dumps([known.get(part, {}).get("sha256") or part for part in model.split("|")])


def paragraph(reports: Sequence[Report], shared: Mapping[str, Iterable[Unit]], repeated: Sequence[str] = ()) -> str:
    """Return the paragraph about the runs of these reports, whose headlines are about the shared units.

    `repeated` are models of further runs that are left out, because the reports have them.
    """
    told, claims = list(_told(reports, shared)), _claims(reports)
    if not told and claims:
        return " ".join([*claims, "So these runs have no conclusion."])
    if not told:
        return (
            "These runs cannot tell how much seeing the other side changes: this needs agents and mindreaders on the "
            "same scenarios."
        )
    models = list(dict.fromkeys(each.model for each in told))
    script = any(row.mode == "script" for data in reports for row in data.comparison)
    sentences = [*_opening(told, len(models), script), *claims]
    sentences += [f"Another run of {_name(model)} is left out: it is the same model." for model in repeated]
    for model in models:
        own = [each for each in told if each.model == model]
        sentences += [*_origin(own[0]), *(sentence for each in own for sentence in _finding(each))]
        sentences += _conclusion(own)
    return " ".join([*sentences, *_certainty(told)])


def conclusions(reports: Sequence[Report], shared: Mapping[str, Iterable[Unit]]) -> list[str]:
    """Return what the paragraph concludes about each model, each sentence to be read without those before it.

    What the first report says of its own talks is left out.
    """
    told = list(_told(reports, shared))
    found = _claims(reports[1:])
    for model in dict.fromkeys(each.model for each in told):
        by_outcome = stats.grouped((_outcome(each), each) for each in told if each.model == model)
        found += [_concluded(by_outcome[outcome], outcome) for outcome in _OUTCOMES if outcome in by_outcome]
    return found + [sentence for each in told for sentence in _apart(each)]


def _apart(told: Told) -> Iterator[str]:
    """Yield what success differs by if a reader sees it in a table, and no amount says so."""
    success = told.answer.success
    if success is None or told.about.key == SUCCESS or success.verdict == "withheld" or not success.levels:
        return
    by_success = not _direction(told) and _direction_of_success(told)
    if not by_success and abs(success.difference) >= _SEEN:
        text = _success(told.found, success).removeprefix("Its success")
        yield f"In {told.title}, the success of {told.model}{text}"


_SEEN = 0.1
"""A difference of success that a conclusion names, whatever its test says."""


_OUTCOMES = ("gain", "loss", "change", "exploratory", "none", "untold")


def _concluded(own: Sequence[Told], outcome: str) -> str:
    """Return what one model has in families with the same outcome, with the amounts."""
    model, amounts = own[0].model, " and ".join(map(_amounts, own))
    built = any(constructed(part) for part in own[0].answer.model.split("|"))
    if outcome == "gain":
        return f"{model} gained from seeing the other side{', as it was built to' if built else ''}: {amounts}."
    if outcome == "loss":
        against = ", the opposite of what it was built for" if built else ""
        return f"{model} did worse with the other side in view{against}: {amounts}."
    if outcome == "change":
        return f"Seeing the other side changed {model}, but that is not known to be a gain: {amounts}."
    if outcome == "exploratory":
        return f"What seeing the other side changed for {model} is exploratory, not declared before the run: {amounts}."
    if outcome == "none":
        although = ", although it was built to have one" if built else ""
        return f"No gain from seeing the other side was found for {model}{although}: {amounts}."
    return f"Whether {model} gains from seeing the other side cannot be told: {amounts}."


def _amounts(told: Told) -> str:
    """Return what changed in a family and its interval, or why that is not told; success, if only that shows it."""
    found, success = told.found, told.answer.success
    if found.verdict == "withheld":
        return f"in {told.title}, it depends on the wording of the prompts"
    size = _signed(told, found.difference) if abs(found.difference) > NIL else "no difference"
    change = f"{size} in {told.title}"
    if success and not _direction(told) and _direction_of_success(told):
        first, second = _texts(success.levels, 100, 0)
        return f"success {first}% as agents and {second}% as mindreaders in {told.title}"
    over = counted(found.scenarios, "scenario")
    if found.too_few:
        return f"{change} ({over} that all completed {'is' if found.scenarios == 1 else 'are'} too few)"
    if found.interval is None:
        return f"{change} ({over})"
    low, high = sorted(found.interval, key=abs)
    if found.verdict in ("found", "exploratory"):
        factor, decimals = (100, 0) if told.about.kind == "share" else (1, 1)
        least, most = (_size(factor * abs(end), decimals) for end in (low, high))
        return f"{change} (95% interval {least} to {most})"
    doubt = f"; this {found.doubt}" if found.doubt else ""
    return f"{change} (95% interval {_signed(told, found.interval[0])} to {_signed(told, found.interval[1])}{doubt})"


def _told(reports: Sequence[Report], shared: Mapping[str, Iterable[Unit]]) -> Iterator[Told]:
    """Yield what reports tell about information, for each model once, families in the order of a report."""
    seen: set[str] = set()
    called = Counter(model for data in reports for model in _models(data))
    for data in reports:
        fresh = [model for model in _models(data) if _identity(data, model) not in seen]
        for model in fresh:
            name = f"{_name(model)} (run {data.run.run_id})" if called[model] > 1 else _name(model)
            own = [each for each in data.headline.families if each.model == model]
            for family in in_order(shared):
                found = [(each, each.findings.get(INFORMATION)) for each in own if each.family == family]
                yield from (Told(name, each, one) for each, one in found if one)
        seen.update(_identity(data, model) for model in fresh)


def _claims(reports: Sequence[Report]) -> list[str]:
    """Return sentences about the models whose talks do not play: nothing else is told about them."""
    return [claim for data in reports for claim in data.playing.claims()]


# ---- sentences -----------------------------------------------------------------------------------------------------


def _opening(told: Sequence[Told], models: int, script: bool) -> Iterator[str]:
    """Yield the design: models, scenarios, and the modes in one clause each."""
    counts = stats.grouped((each.title, each.found.scenarios) for each in told)
    scenarios = {title: max(found) for title, found in counts.items()}
    played = " and ".join(f"{_number(count)} of {title}" for title, count in scenarios.items())
    who = f"{_number(models)} models" if models != 1 else "one model"
    many = "scenario" if sum(scenarios.values()) == 1 else "scenarios"
    yield f"{who.capitalize()} played the same {many}, {played}, each in two ways."
    if any(len(set(found)) > 1 for found in counts.values()):
        yield "Not every model played all of them."
    yield "As agents, each speaker knows only its own side."
    yield "As mindreaders, each speaker also sees the other side."
    if script:
        yield "As a script, one model writes both sides; scripts do not count here."
    yield MEANING


def _origin(told: Told) -> Iterator[str]:
    """Yield what is known about a model's lessons; each of several models that play together has a sentence."""
    for part in dict.fromkeys(told.answer.model.split("|")):
        if found := constructed(part):
            yield f"{part} is constructed for this comparison: it was {found}."
        elif found := taught(part):
            yield f"{part} was {found}."
        elif part.startswith("scripted:"):
            yield f"{part} is a program with fixed rules, not a language model."
        else:
            yield f"How {part} was taught is not known here."


def _finding(told: Told) -> Iterator[str]:
    """Yield both levels, the difference with its interval, and success if that is not the measure.

    Neither a level nor a difference is told if the report withholds the difference.
    """
    if told.found.verdict == "withheld":
        yield (
            f"In {told.title}, the direction of the difference depends on the wording of the prompts, so nothing is "
            f"told about {told.model}."
        )
        return
    factor, decimals, unit = 100, 0, f"% {told.about.heading}"
    if told.about.kind != "share":
        factor, decimals, unit = 1, 1, f" {told.about.heading}"
    elif told.about.key == SUCCESS:
        unit = "% of its conversations"
    first, second = (text + unit for text in _texts(told.found.levels, factor, decimals))
    did = {SUCCESS: "succeeded in", LENGTH: "took"}.get(told.about.key, "had")
    yield f"In {told.title}, {told.model} {did} {first} as agents and {second} as mindreaders."
    yield from _verdict(told)
    if told.about.key != SUCCESS and told.answer.success:
        yield _success(told.found, told.answer.success)


def _success(found: Finding, success: Finding) -> str:
    """Return both levels of success, and what its test says."""
    if success.verdict == "withheld":
        return "Whether its success rose or fell depends on the wording of the prompts, so it is not told."
    first, second = _texts(success.levels, 100, 0)
    if first == second:
        return f"Its success was the same, {first}%."
    sure = f"that difference {success.doubt or 'may be chance'}"
    if success.verdict == "found":
        sure = "that difference was found" + (", too" if found.verdict == "found" else "")
    elif success.verdict == "exploratory":
        sure = "that difference is exploratory, because it was not declared before the run"
    return f"Its success was {first}% as agents and {second}% as mindreaders; {sure}."


def _verdict(told: Told) -> Iterator[str]:
    found = told.found
    over = counted(found.scenarios, "scenario")
    if found.too_few:
        are = "scenarios are" if found.scenarios != 1 else "scenario is"
        least = next(count for count in itertools.count(1) if stats.least_p(count) <= LEVEL)
        count = _number(found.scenarios).capitalize()
        yield f"{count} {are} too few to tell any difference: at least {_number(least)} are needed."
    elif found.verdict in ("found", "exploratory") and found.interval:
        low, high = (_signed(told, end) for end in sorted(found.interval, key=abs))
        yield f"That is {_signed(told, found.difference)} (95% interval {low} to {high}; {over})."
        if found.verdict == "exploratory":
            yield "This is exploratory, because it was not declared before the run: it is no finding."
    elif found.alike:
        same = _signed(told, found.difference)
        yield f"All {found.scenarios} scenarios differ by the same amount, {same}, so no interval can be computed."
    elif found.interval is None:
        yield f"No difference was found ({over}). All scenarios differ alike, so what was missed cannot be computed."
    else:
        low, high = (_signed(told, end) for end in found.interval)
        most = _amount(told, max(map(abs, found.interval)))
        but = "" if found.interval[0] <= 0 <= found.interval[1] else ", although the 95% interval leaves out zero"
        yield f"No difference was found{but} (95% interval {low} to {high}; {over})."
        if found.doubt:
            yield f"The difference {found.doubt}."
        yield f"A difference of up to {most} could have been missed."


def _conclusion(own: Sequence[Told]) -> Iterator[str]:
    """Yield whether a gain was found for a model in each family, and whether it was built to have one."""
    model = own[0].model
    built = any(constructed(part) for part in own[0].answer.model.split("|"))
    titles = stats.grouped((_outcome(each), each.title) for each in own)
    where = {outcome: " and ".join(found) for outcome, found in titles.items()}
    by_success = [each.title for each in own if _outcome(each) in ("gain", "loss") and not _direction(each)]
    if "gain" in where:
        fits = ", and that is what it was built for" if built else ""
        yield f"So {model} gained from seeing the other side in {where['gain']}{fits}."
    if "loss" in where:
        against = "the opposite of what it was built for" if built else "the opposite of a gain"
        yield f"So {model} did worse with the other side in view in {where['loss']}: {against}."
    if by_success:
        yield f"In {' and '.join(by_success)}, only success shows it."
    if "change" in where:
        yield f"So seeing the other side changed {model} in {where['change']}, but that is not known to be a gain."
    if "none" in where:
        although = ", although it was built to have one" if built else ""
        yield f"So no gain from seeing the other side was found for {model} in {where['none']}{although}."
    if "exploratory" in where:
        yield f"So what it changed for {model} in {where['exploratory']} is exploratory."
    if "untold" in where:
        yield f"So nothing can be said about a gain of {model} in {where['untold']}."


def _outcome(told: Told) -> str:
    """Return gain, loss, change (a difference that is neither), exploratory (not declared), none (not found) or untold
    (no test could tell).
    """
    found = told.found
    if found.verdict == "withheld":
        return "untold"
    directions = {_direction(told), _direction_of_success(told)} - {0}
    if len(directions) > 1 or (found.alike and found.p is not None and found.p <= LEVEL):
        return "change"
    if directions:
        return "gain" if directions == {1} else "loss"
    if found.verdict == "found":
        return "change"
    if found.verdict == "exploratory":
        return "exploratory"
    return "untold" if found.too_few or found.alike else "none"


def _direction(told: Told) -> int:
    """Return 1 if the measure was found to be better with the other side in view, -1 if worse, 0 if neither."""
    better = GAIN.get(told.about.key, 0) * told.found.difference
    return (better > 0) - (better < 0) if told.found.verdict == "found" else 0


def _direction_of_success(told: Told) -> int:
    """Return the same of success, where it is not the measure."""
    success = told.answer.success
    if told.about.key == SUCCESS or not success or success.verdict != "found":
        return 0
    return 1 if success.difference > 0 else -1


def _certainty(told: Sequence[Told]) -> Iterator[str]:
    known = [each for each in told if each.found.verdict != "withheld"]
    tests = sum(not each.found.too_few for each in known)
    if known and not tests:
        yield "More scenarios are needed: localsim design computes how many."
    if not tests:
        return
    yield f"{f'Each of the {_number(tests)} tests' if tests > 1 else 'The test'} counts a scenario once."
    yield "Where there is no difference, a test finds one in at most one case of twenty."
    yield "A 95% interval holds the true difference in about 19 of 20 studies."
    if any(_outcome(each) == "none" for each in told):
        yield "To find no difference is not to show that there is none."


# ---- words ---------------------------------------------------------------------------------------------------------


def _name(model: str) -> str:
    """Return the name of a model as it is read aloud: A with B if two models play."""
    return " with ".join(dict.fromkeys(model.split("|")))


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _texts(levels: Sequence[float], factor: int, decimals: int) -> tuple[str, str]:
    """Return two values as numbers; they get more decimals until they differ, if they do."""
    first, second = (factor * level for level in levels)
    if abs(second - first) < NIL:
        return f"{first:.{decimals}f}", f"{first:.{decimals}f}"
    while True:
        texts = f"{first:.{decimals}f}", f"{second:.{decimals}f}"
        if texts[0] != texts[1] and float(f"{second - first:.{decimals}f}"):
            return texts
        decimals += 1


def _amount(told: Told, value: float) -> str:
    """Return the size of a difference with its unit."""
    if told.about.kind == "share":
        return f"{_size(100 * abs(value), 0)} percentage points"
    return f"{_size(abs(value), 1)} {told.about.heading}"


def _size(value: float, decimals: int) -> str:
    """Return a number; it gets more decimals until it is not 0, if it is not."""
    while value > NIL and not float(f"{value:.{decimals}f}"):
        decimals += 1
    return f"{value:.{decimals}f}"


def _signed(told: Told, value: float) -> str:
    """Return a difference in words, such as "4.1 turns fewer"."""
    less = "fewer" if told.about.key == LENGTH else "less"
    return f"{_amount(told, value)} {'more' if value > 0 else less}"
