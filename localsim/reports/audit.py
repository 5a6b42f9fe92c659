"""The isolation audit, which searches stored prompts for text that their viewer must not see.

The audit reads the database, and uses its own table of views instead of `observe`, so that it can find an error there.
It compares in two ways, and each of them is enough for a violation:

- exactly: a withheld text is in the prompt, in whole words;
- loosely: a withheld text, one of its sentences or any RUN consecutive words of a sentence are in the prompt. Case,
  white space, punctuation within a sentence, accents, invisible characters and compatibility forms of Unicode (NFKC) do
  not count. Ends of sentences do, because the words around them belong to different texts of a prompt.

A text is granted if it is part of a text that the viewer was given, knows itself (a friend on both lists) or heard, or
of the fixed wording of the prompts.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from localsim.conversation import prompts
from localsim.conversation.episode import AgentView, Observation
from localsim.conversation.grants import Grant, condition_name, parse
from localsim.conversation.scenario import WRITER, Agent, Fact, LoadedScenario, Scenario, canonical_hash
from localsim.conversation.transcript import Transcript
from localsim.conversation.wording.sight import SENTENCES
from localsim.conversation.wording.variants import variant_of
from localsim.store.database import Store
from localsim.store.episodes import contents_of, stored_scenarios
from localsim.store.queries import runs as queries

RUN = 4
"""This many consecutive words of a withheld sentence count as a part of it."""
_SENTENCE = 3
"""A sentence of fewer words is searched only as part of its text."""
_SHORTEST = 3
"""Shorter strings (an age, a small number) occur in prompts by chance."""

_OMNISCIENT = ("script", "iterative", "mindreaders")
_ACQUAINTED = {"age", "gender", "pronouns", "occupation", "public_info"}
_CLOSE = {*_ACQUAINTED, "personality_and_values", "decision_making_style"}
_SEEN_BY_OTHERS = {
    "stranger": set[str](),
    "know_by_name": set[str](),
    "acquaintance": _ACQUAINTED,
    "friend": _CLOSE,
    "romantic": _CLOSE,
    "family": _CLOSE,
}


@dataclass(frozen=True)
class Violation:
    """A text in a prompt that its viewer was not granted."""

    episode_id: str
    generation: int
    turn: int
    viewer: str
    mode: str
    """The condition: the mode, and what was granted."""
    what: str
    """Source of the text, such as "secret of Bo" or "answer key"."""
    text: str


@dataclass(frozen=True)
class Audit:
    """The result of an audit."""

    prompts_checked: int
    violations: tuple[Violation, ...]

    def as_json(self) -> dict[str, Any]:
        """The object that `audit --json` prints."""
        return {
            "prompts_checked": self.prompts_checked,
            "violations": len(self.violations),
            "details": [asdict(item) for item in self.violations],
        }


def audit_run(store: Store, run_id: str) -> Audit:
    """Check every stored prompt of a run."""
    scenarios = stored_scenarios(store, run_id)
    spoken: dict[str, list[dict[str, Any]]] = {}
    for row in queries.spoken_texts(store, run_id):
        spoken.setdefault(row["episode_id"], []).append(row)
    checked = 0
    violations: list[Violation] = []
    prompts: dict[tuple[str, int], str] = {}
    generations = queries.prompts_of_run(store, run_id)
    hashes = {content_hash for row in generations for _, content_hash in json.loads(row["messages_json"])}
    contents = contents_of(store, [*hashes, *(row["prefill_hash"] for row in generations)])
    for row in generations:
        before = prompts.get((row["episode_id"], row["parent"]), "") if row["parent"] is not None else ""
        own = [contents[content_hash] for _, content_hash in json.loads(row["messages_json"])]
        prompt = _APART.join([before, *own])
        prompts[row["episode_id"], row["generation"]] = prompt
        heard = [turn["text"] for turn in spoken.get(row["episode_id"], []) if turn["turn"] < row["turn"]]
        loaded = scenarios[row["scenario_hash"]]
        checked += 1
        whole = f"{prompt}{_APART}{contents[row['prefill_hash']]}"
        condition = condition_name(row["mode"], row["see"])
        place = (row["episode_id"], row["generation"], row["turn"], row["speaker"], condition)
        found = held(whole, loaded, row["mode"], row["speaker"], heard, row["variant"], row["see"])
        violations += [Violation(*place, what, text[:120]) for what, text in found]
    return Audit(checked, tuple(violations))


def held(
    prompt: str, loaded: LoadedScenario, mode: str, viewer: str, heard: list[str], variant: int = 0, see: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) for each withheld text that is in a prompt, whole or in part."""
    exact = _visible(prompt)
    loose = _words(prompt)
    if not _plain(prompt):  # invisible characters may be in words, or between them
        loose += _END + _words(_visible(prompt, in_place=" "))
    heard_exactly = "\n".join(_heard(text)[0] for text in heard)
    heard_loosely = _END.join(_heard(text)[1] for text in heard)
    for check in _checks(loaded, _View(loaded.scenario, mode, viewer, see), variant):
        pattern = check.exact
        if (pattern is not None and pattern.search(exact) and not pattern.search(heard_exactly)) or any(
            part in loose and part not in heard_loosely for part in check.parts
        ):
            yield check.what, check.text


@dataclass(frozen=True)
class _Check:
    """A withheld text, and the parts to search in a prompt; granted parts are left out."""

    what: str
    text: str
    exact: re.Pattern[str] | None
    parts: tuple[str, ...]


@dataclass(frozen=True)
class _View:
    """A viewer in a condition, and the audit's own table of what it may see."""

    scenario: Scenario
    mode: str
    viewer: str
    see: str

    @property
    def granted(self) -> Grant:
        """Items of each other agent that were granted to the viewer."""
        names = self.scenario.names
        return parse(self.see).of(self.viewer, names) if self.see and self.viewer in names else Grant()

    @property
    def sees_all(self) -> bool:
        """True if every side is open to the viewer."""
        return self.mode in _OMNISCIENT or (self.mode == "agents" and parse(self.see).open_to_all(self.scenario.names))

    def may_see(self, agent: Agent, what: str, fact: str = "") -> bool:
        """Return True if the viewer may see an item of an agent; `fact` is the id of a fact."""
        if self.sees_all or agent.name == self.viewer:
            return True
        if what in ("goal", "secret"):
            return getattr(self.granted, what) is True
        if fact:
            order = sorted(agent.facts, key=lambda each: canonical_hash([self.scenario.id, agent.name, each.id]))
            return fact in [each.id for each in order[: self.granted.facts]]
        return self.granted.profile or what in _SEEN_BY_OTHERS[self.scenario.level(self.viewer, agent.name)]


def _checks(loaded: LoadedScenario, view: _View, variant: int) -> tuple[_Check, ...]:
    key = (loaded.hash, view.mode, view.viewer, view.see, variant)
    if key not in _known:
        if len(_known) >= _KNOWN_AT_MOST:
            _known.clear()
        _known[key] = tuple(_new_checks(loaded, view, variant))
    return _known[key]


_KNOWN_AT_MOST = 1000
_known: dict[tuple[str, str, str, str, int], tuple[_Check, ...]] = {}


def _new_checks(loaded: LoadedScenario, view: _View, variant: int) -> Iterator[_Check]:
    age = variant_of(variant).words.age
    granted = [*_granted(view, age)]
    granted_exactly = "\n".join(map(_visible, granted))
    granted_loosely = _END.join(map(_words, [*granted, *_framing(view, variant)]))
    for what, text in _withheld(loaded, view, age):
        exact = _pattern(_visible(text)) if len(text) >= _SHORTEST else None
        if exact is not None and exact.search(granted_exactly):
            exact = None
        parts = tuple(part for part in _parts(text) if part not in granted_loosely)
        if exact is not None or parts:
            yield _Check(what, text, exact, parts)


def _parts(text: str) -> Iterator[str]:
    """Yield the whole text, its sentences and their runs of RUN words, in the form of `_words`."""
    whole = _words(text)
    if len(whole.strip()) >= _SHORTEST and re.search(r"[^\W\d]", whole):  # a number can be in prompts by chance
        yield whole
    for sentence in whole.split(_END):
        words = sentence.split()
        if len(words) >= _SENTENCE:
            yield f" {' '.join(words)} "
        for start in range(len(words) - RUN + 1):
            yield f" {' '.join(words[start : start + RUN])} "


def _framing(view: _View, variant: int) -> Iterator[str]:
    """Yield the fixed wording of the prompts around their content, rendered with nothing but the names."""
    scenario, viewer = view.scenario, view.viewer
    fact = Fact(id="f", text="-")
    whole = view.sees_all or view.see
    blank = tuple(
        AgentView(name, (), "-", "-", (fact,)) if whole or name == viewer else AgentView(name, ())
        for name in scenario.names
    )
    levels = tuple(
        (one, other, scenario.level(one, other)) for one in scenario.names for other in scenario.names if one != other
    )
    seen = Observation(
        viewer=viewer,
        setting="-",
        relationships=levels,
        agents=blank,
        omniscient=view.sees_all,
        actions=scenario.actions,
        turn_limit=scenario.limits.turns,
        transcript=Transcript(),
        family=scenario.family,
    )
    render = prompts.writer_messages if viewer == WRITER else prompts.agent_messages
    yield from (message.content for message in render(seen, variant))
    yield variant_of(variant).words.your_turn
    yield from SENTENCES if view.see else ()


def _granted(view: _View, age: str) -> Iterator[str]:
    scenario = view.scenario
    yield scenario.setting
    yield from scenario.names
    yield from (str(scenario.limits.turns), *scenario.actions)
    for agent in scenario.agents:
        yield from (text for what, text, fact in _belongings(agent, age) if view.may_see(agent, what, fact))


def _withheld(loaded: LoadedScenario, view: _View, age: str) -> Iterator[tuple[str, str]]:
    scenario = loaded.scenario
    for agent in scenario.agents:
        for what, text, fact in _belongings(agent, age):
            if not view.may_see(agent, what, fact):
                yield f"{what.replace('_', ' ')} of {agent.name}", text
    for text in _leaves(loaded.answer.answer):
        yield "answer key", text
    for text in _leaves(loaded.answer.parameters):
        if not text.isdigit():  # a seed or a count can be part of a price by chance
            yield "generation parameters", text
    for text in (scenario.info.what, scenario.info.how or "", *scenario.info.things_to_try):
        yield "info", text


def _belongings(agent: Agent, age: str) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, text, id of a fact or '') for everything that belongs to an agent; `age`: the wording of an age."""
    for field, value in agent.profile:
        if value is not None:
            text = str(value).rstrip(".")
            yield field, age.format(text=text) if field == "age" and text.isdigit() else text, ""
    yield "goal", agent.goal, ""
    if agent.secret:
        yield "secret", agent.secret, ""
    for fact in agent.facts:
        yield "fact", fact.text, fact.id
        yield from (("term of a fact", term, fact.id) for term in fact.terms)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield f"{value:.12g}" if isinstance(value, float) else str(value)


@lru_cache(maxsize=4096)
def _heard(text: str) -> tuple[str, str]:
    return _visible(text), _words(text)


def _plain(text: str) -> bool:
    return text.isascii() and not _CONTROL.search(text)


def _visible(text: str, in_place: str = "") -> str:
    """Return a text in one form of Unicode (NFKC), with `in_place` of control, zero-width and combining characters."""
    if _plain(text):
        return text
    kept = "".join(
        in_place if unicodedata.category(char) in ("Cc", "Cf", "Mn") and not char.isspace() else char
        for char in unicodedata.normalize("NFKD", text)
    )
    return unicodedata.normalize("NFKC", kept)


def _words(text: str) -> str:
    """Return the words of a text in lower case, with a blank before and after each, and _END after each sentence.

    In languages that are written without blanks, each character is a word.
    """
    folded = _JOINED.sub("", _visible(_visible(text).casefold()))
    sentences = (" ".join(_WORD.findall(sentence)) for sentence in _SENTENCE_END.split(folded))
    return f" {f' {_END} '.join(sentence for sentence in sentences if sentence)} "


_APART = "\n\n"
"""The separator between the messages of a prompt: no sentence continues in the next message."""
_END = "\n"
_SENTENCE_END = re.compile(r"[.!?:;]+[\"'”’)]*(?:\s|$)|[。！？；：]|\n\s*[-*]\s|\n\s*\n")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_IDEOGRAPHS = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")
_JOINED = re.compile(r"(?<=\w)['’ʼ](?=\w)|(?<=\d),(?=\d{3}(?!\d))")
"""Characters within a word or a number that may be left out."""


@lru_cache(maxsize=10_000)
def _pattern(text: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in text.split())
    return re.compile(rf"(?<!\w){words}(?!\w)")
