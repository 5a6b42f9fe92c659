"""The isolation audit, which searches stored prompts for text that their viewer must not see.

The audit reads the database, and uses its own table of views instead of `observe`, so that it can find an error there.
It compares in two ways, and each of them is enough for a violation:

- exactly: a withheld text is in the prompt, in whole words;
- loosely: a withheld text, one of its sentences or any RUN consecutive words of a sentence are in the prompt. Case,
  white space, punctuation within a sentence, accents, invisible characters and compatibility forms of Unicode (NFKC) do
  not count. Ends of sentences do, because the words around them belong to different texts of a prompt.

A text is granted if it is part of a text that the viewer was given, knows itself (a friend on both lists) or heard, or
of the fixed wording of the prompts. A turn that its viewer could not read is withheld, and what the rules tell is
searched as a prompt of each of its readers, unless the scenario file has these words.

What an agent with a mind writes and does not say - answers to its steps, drafts - is withheld from all others, in every
mode: its sentences and runs of words are searched loosely.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from localsim.backends.replies import MARK
from localsim.conversation import prompts
from localsim.conversation.episode import MODES, SINGLE_AUTHOR, AgentView, Observation
from localsim.conversation.grants import Grant, parse
from localsim.conversation.modes import roles
from localsim.conversation.scenario import WRITER, Agent, Fact, LoadedScenario, Scenario, canonical_hash
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.conversation.wording import moving, personas
from localsim.conversation.wording.layouts import LAYOUTS
from localsim.conversation.wording.sight import SENTENCES
from localsim.conversation.wording.variants import variant_of
from localsim.families import rules_of
from localsim.reports.audit.minds import NO_MINDS, Minds, Thoughts
from localsim.reports.audit.texts import (
    APART,
    END,
    SENTENCE,
    SHORTEST,
    both,
    leaves,
    parts,
    pattern,
    searched,
    visible,
    words,
)
from localsim.reports.audit.turns import Readers, Withheld
from localsim.scenarios.casting.playing import unplayable
from localsim.store.database import Store
from localsim.store.episodes import contents_of, stored_scenarios, transcript_of
from localsim.store.queries import runs as queries
from localsim.store.queries.runs import Prompt

_OMNISCIENT = ("script", "iterative", "mindreaders")
_PERSONA = ("statements", "background", "knows", "never_heard_of")
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
    """Check every stored prompt of a run, what the rules told in it, and that no model drew a mark of roles."""
    with store.held() as reads:
        scenarios = stored_scenarios(reads, run_id)
        spoken = queries.spoken_turns(reads, run_id)
        stored = queries.prompts_of_run(reads, run_id)
        contents = contents_of(reads, list({part for row in stored for part in (*row.hashes, row.prefill_hash)}))
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for turn in spoken:
        rows[turn["episode_id"]].append(turn)
    checked = 0
    violations: list[Violation] = []
    prompts: dict[tuple[str, int | None], str] = {}
    talks: dict[str, Readers] = {}
    thoughts = Thoughts.of_run(store, run_id, stored)
    for row in stored:
        loaded = scenarios[row.scenario_hash]
        if row.episode_id not in talks:
            rules = rules_of(loaded.scenario, row.episode_index)
            talk = Readers(loaded.scenario, transcript_of(rows[row.episode_id]), rules, row.seed)
            talks[row.episode_id] = talk
            found = list(_of_episode(row, loaded, talk))
            checked += sum(isinstance(each, str) for each in found)
            violations += [each for each in found if isinstance(each, Violation)]
        before = prompts.get((row.episode_id, row.parent), "")
        prompt = APART.join([before, *(contents[part] for part in row.hashes)])
        prompts[row.episode_id, row.generation] = prompt
        checked += 1
        whole = f"{prompt}{APART}{contents[row.prefill_hash]}"
        own = thoughts.before(row.episode_id, row.speaker, loaded.scenario.names)
        violations += _in_prompt(row, loaded, talks[row.episode_id], whole, row.generation, row.speaker, row.turn, own)
        # An answer of one word is searched with its start, as in "It is most likely Ann".
        start = contents[row.prefill_hash].rpartition("\n")[2] if row.step and len(row.reply.split()) < SENTENCE else ""
        thoughts.add(row.episode_id, row.speaker, row.reply and start + row.reply, said=row.said)
    conditions = {row.episode_id: row.condition for row in stored}
    for episode, number, speaker, mark, text in drawn(store, run_id, rows):
        what = f"mark of roles {mark}"
        violations.append(Violation(episode, -1, number, speaker, conditions.get(episode, ""), what, text[:120]))
    return Audit(checked, tuple(violations))


def _of_episode(row: Prompt, loaded: LoadedScenario, talk: Readers) -> Iterator[Violation | str]:
    """Yield the violations in stored readers and in what the rules told, and a viewer for each text that was read."""
    for turn, what, text in talk.differences():
        yield Violation(row.episode_id, -1, turn.index, turn.speaker, row.condition, what, text[:120])
    for turn in talk.turns:
        if turn.told and talk.declared(turn) is None:
            for viewer in [WRITER] if row.mode in SINGLE_AUTHOR else turn.readers or loaded.scenario.names:
                yield viewer
                yield from _in_prompt(row, loaded, talk, turn.line, -1, viewer, turn.index)


def _in_prompt(
    row: Prompt,
    loaded: LoadedScenario,
    talk: Readers,
    prompt: str,
    generation: int,
    viewer: str,
    turn: int,
    minds: Minds = NO_MINDS,
) -> list[Violation]:
    """Return the violations in a text that a viewer read before a turn; `row` says which episode it is."""
    found = found_in(prompt, loaded, row.mode, viewer, talk, turn, row.variant, row.see, minds)
    place = (row.episode_id, generation, turn, viewer, row.condition)
    return [Violation(*place, what, text[:120]) for what, text in found]


def leaks_at_first(loaded: LoadedScenario) -> Iterator[str]:
    """Yield what the first prompt of each viewer in each mode holds that the viewer must not see; nothing is stored."""
    for mode in MODES:
        for viewer in roles(mode, loaded.scenario.names):
            seen = observe(loaded.scenario, mode, viewer, Transcript())
            render = prompts.writer_messages if viewer == WRITER else prompts.agent_messages
            for layout in LAYOUTS:
                texts = [*(message.content for message in render(seen, 0, layout)), prompts.note_of(seen, 0, layout)]
                prompt = APART.join(texts)
                for what, text in held(prompt, loaded, mode, viewer, []):
                    yield f"{what} is in the first prompt of {viewer} in {mode}, layout {layout}: {text}"


def playable(loaded: LoadedScenario) -> list[str]:
    """Return what makes a casting tell nothing about those who play it; [] for a good one."""
    return [*unplayable(loaded), *leaks_at_first(loaded)]


def found_in(
    prompt: str,
    loaded: LoadedScenario,
    mode: str,
    viewer: str,
    talk: Readers,
    turn: int,
    variant: int = 0,
    see: str = "",
    minds: Minds = NO_MINDS,
) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) for everything in a prompt before a turn that its viewer was not given and could not read.

    The line of a turn that it could not read is searched exactly. Of the words of such a turn, sentences and runs of
    words are searched loosely: one or two words are in prompts by chance.
    """
    view = _View(loaded.scenario, mode, viewer, see)
    heard = talk.heard(viewer, turn, everything=view.sees_all, simultaneous=viewer == WRITER)
    yield from held(prompt, loaded, mode, viewer, [*heard.texts, *minds.own], variant, see)
    if not (heard.withheld or minds.others):
        return
    exact, loose = searched(prompt)
    lines = "\n".join(both(line)[0] for line in heard.lines)
    written = (*heard.lines, *minds.own)  # a question about the viewer's drafts has them between other words
    granted = _known_view(loaded, view, variant).granted_loosely
    known = END.join([granted, *(both(line)[1] for line in written)])
    # Names stand side by side in prompts by chance, as in "[to Ana, Bo, Cy]".
    names = set(words(" ".join([*loaded.scenario.names, *(move.name for move in loaded.scenario.moves)])).split())
    for name, thought in minds.others:
        own = [part for part in parts(thought) if len(part.split()) >= SENTENCE and not names.issuperset(part.split())]
        if any(part in loose and part not in known for part in own):
            yield f"thought of {name}", thought
    fresh = [sentence for each in loose.split(END) if (sentence := f" {each.strip()} ") not in known]
    read = {part.strip() for line in written for part in both(line)[1].split(END) if len(part.split()) > 1}
    for each in heard.withheld:
        line = pattern(visible(each.line))
        own = [part for part in parts(each.text) if len(part.split()) >= SENTENCE]
        if (
            (line.search(exact) and len(line.findall(exact)) > len(line.findall(lines)))  # such as in each round
            or any(part in loose and part not in known for part in own)
            or _tells_values(each, fresh, read)
        ):
            yield each.what, each.line


def _tells_values(turn: Withheld, fresh: Sequence[str], read: Collection[str]) -> bool:
    """Return True if a sentence that the viewer could not have says what values a turn has, in whatever words.

    That is a sentence with the name of its speaker and all values, or of nothing but the values. Agents are named in
    many sentences, so a choice of agents is told only where a word begins like the move, as in "voted". A line that the
    viewer could `read`, such as the same move in an earlier round, tells nothing new.
    """
    values, chosen = [words(value) for value in turn.values], [words(name) for name in turn.chosen]
    bare = " ".join(value.strip() for value in values)
    if not turn.speaker or not (bare or chosen):
        return False
    needed = [*values, *chosen, *([f" {turn.move.casefold()}"] if chosen else [])]
    name = words(turn.speaker).rstrip()

    def tells(sentence: str) -> bool:
        if not chosen and sentence.strip() == bare:
            return True
        place = max(sentence.find(f"{name} "), sentence.find(f"{name}s "))
        said = sentence[place:] if chosen else sentence  # "Oscar [vote Lorenz]" tells nothing of Lorenz's vote
        return place >= 0 and all(part in said for part in needed)

    return any(tells(sentence) and tells(_without(sentence, read)) for sentence in fresh)


def _without(sentence: str, read: Collection[str]) -> str:
    for line in sorted(read, key=len, reverse=True):
        while f" {line} " in sentence:  # it may stand there twice in a row, with one blank between
            sentence = sentence.replace(f" {line} ", " ")
    return sentence


def held(
    prompt: str, loaded: LoadedScenario, mode: str, viewer: str, heard: list[str], variant: int = 0, see: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) for each withheld text that is in a prompt, whole or in part."""
    exact, loose = searched(prompt)
    heard_exactly = "\n".join(both(text)[0] for text in heard)
    heard_loosely = END.join(both(text)[1] for text in heard)
    for check in _known_view(loaded, _View(loaded.scenario, mode, viewer, see), variant).checks:
        found = check.exact
        if (found is not None and found.search(exact) and not found.search(heard_exactly)) or any(
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
        if what == "memory":
            return False
        if fact:
            order = sorted(agent.facts, key=lambda each: canonical_hash([self.scenario.id, agent.name, each.id]))
            return fact in [each.id for each in order[: self.granted.facts]]
        return self.granted.profile or what in _SEEN_BY_OTHERS[self.scenario.level(self.viewer, agent.name)]


@dataclass(frozen=True)
class _Known:
    """What is searched for a view, and what it was given."""

    checks: tuple[_Check, ...]
    granted_loosely: str


def _known_view(loaded: LoadedScenario, view: _View, variant: int) -> _Known:
    key = (loaded.hash, view.mode, view.viewer, view.see, variant)
    if key not in _known:
        if len(_known) >= _KNOWN_AT_MOST:
            _known.clear()
        # A withheld word that stands in the fixed wording as well, such as "last", cannot be told from it.
        granted = [*_granted(view, variant_of(variant).words.age), *_framing(view, variant)]
        loosely = END.join(both(text)[1] for text in granted)
        checks = tuple(_new_checks(loaded, view, variant, "\n".join(map(visible, granted)), loosely))
        _known[key] = _Known(checks, loosely)
    return _known[key]


_KNOWN_AT_MOST = 1000
_known: dict[tuple[str, str, str, str, int], _Known] = {}


def _new_checks(
    loaded: LoadedScenario, view: _View, variant: int, granted_exactly: str, granted_loosely: str
) -> Iterator[_Check]:
    for what, text in _withheld(loaded, view, variant_of(variant).words.age):
        exact = pattern(visible(text)) if len(text) >= SHORTEST else None
        if exact is not None and exact.search(granted_exactly):
            exact = None
        own = tuple(part for part in parts(text) if part not in granted_loosely)
        if exact is not None or own:
            yield _Check(what, text, exact, own)


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
        moves=scenario.moves,
        phased=bool(scenario.phases or scenario.game),
    )
    render = prompts.writer_messages if viewer == WRITER else prompts.agent_messages
    for layout in LAYOUTS:
        yield from (message.content for message in render(seen, variant, layout))
    words = variant_of(variant).words
    yield from (words.who, words.begin, words.answer, words.go_on, words.settle, words.end)
    yield variant_of(variant).words.your_turn
    yield from SENTENCES if view.see else ()
    yield from personas.SENTENCES if any(agent.statements or agent.background for agent in scenario.agents) else ()
    yield from moving.SENTENCES if scenario.moves or scenario.phases else ()


def _granted(view: _View, age: str) -> Iterator[str]:
    scenario = view.scenario
    yield scenario.setting
    yield from scenario.names
    yield from (str(scenario.limits.turns), *scenario.actions)
    for move in scenario.moves:
        yield from (move.tell, *(option for param in move.values for option in param.one_of or ()))
    for phase in scenario.phases:
        told = ((event.text, event.to) for event in phase.events)
        yield from (text for text, to in told if view.sees_all or not to or view.viewer in to)
        yield from [phase.announce] if phase.announce else []
    for agent in scenario.agents:
        seen = [(what, text) for what, text, fact in _belongings(agent, age) if view.may_see(agent, what, fact)]
        yield from (text for _, text in seen)
        profile = {field for field, _ in agent.profile}
        yield ", ".join(text for what, text in seen if what in profile)  # in prompts they stand side by side


def _withheld(loaded: LoadedScenario, view: _View, age: str) -> Iterator[tuple[str, str]]:
    scenario = loaded.scenario
    for agent in scenario.agents:
        for what, text, fact in _belongings(agent, age):
            if not view.may_see(agent, what, fact):
                yield f"{what.replace('_', ' ')} of {agent.name}", text
        yield from (("meaning of a fact", text) for fact in agent.facts for text in fact.means)
    for phase in scenario.phases:
        for event in phase.events:
            if event.to and not view.sees_all and view.viewer not in event.to:
                yield f"event of phase {phase.name}", event.text
    for text in leaves(loaded.answer.answer):
        yield "answer key", text
    for text in leaves(loaded.answer.parameters):
        if not text.replace(".", "").isdigit():  # a seed, a share or a count can be part of a price by chance
            yield "generation parameters", text
    for name, value in scenario.game.items():
        if name != "public":
            yield from (("game", text) for text in leaves(value) if not text.replace(".", "").isdigit())
    for text in (scenario.info.what, scenario.info.how or "", *scenario.info.things_to_try):
        yield "info", text


def _belongings(agent: Agent, age: str) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, text, id of a fact or '') for everything that belongs to an agent; `age`: the wording of an age."""
    for field, value in agent.profile:
        if value is not None:
            text = str(value).rstrip(".")
            yield field, age.format(text=text) if field == "age" and text.isdigit() else text, ""
    for field in _PERSONA:
        for item in getattr(agent, field):
            text = item if isinstance(item, str) else item.text
            yield field, text.rstrip(".") if field in ("knows", "never_heard_of") else text, ""
    yield "goal", agent.goal, ""
    if agent.secret:
        yield "secret", agent.secret, ""
    yield from (("memory", memory.text, "") for memory in agent.memories)
    for fact in agent.facts:
        yield "fact", fact.text, fact.id
        yield from (("term of a fact", term, fact.id) for term in fact.terms)


_BY_MODELS = ("llama", "openvino", "remote", "python")


def drawn(
    store: Store, run_id: str, turns: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[tuple[str, int, str, str, str]]:
    """Yield (episode, turn, speaker, mark, text) for each turn with a mark; `turns` are those of each episode."""
    identities = list(json.loads(queries.run_row(store, run_id)["models_json"]).values())
    if not any(each.get("kind") in _BY_MODELS for each in identities):
        return
    own = {mark for each in identities for mark in each.get("marks", ())}
    spelled = re.compile("|".join([MARK.pattern, *map(re.escape, sorted(own, key=len, reverse=True))]))
    for episode, rows in turns.items():
        for row in rows:
            said = " ".join(filter(None, (row["values_json"], row["text"])))
            if row["speaker"] and (found := spelled.search(said)):
                yield episode, row["turn"], row["speaker"], found[0], said
