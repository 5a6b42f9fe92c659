"""The modes side by side: script, agents, mindreaders (arXiv 2403.05020, section 3.1), and iterative.

In iterative mode one author sees everything, as in script mode, and writes one turn at a time, as agents do. So it
tells one author from one generation.

Modes are generators without I/O. They yield `Ask(request)` and receive a Generation; they yield `Say(turn)` for each
valid turn and `Reject(...)` for a reply that does not parse; they return the reason why the episode ended. They use no
backend, clock or database. Only the information differs between modes: rules, action format, temperature, penalties
and repair are the same code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from localsim.conversation.beginning import beginning
from localsim.conversation.episode import (
    SINGLE_AUTHOR,
    EpisodeSpec,
    Mode,
    Observation,
    Sampling,
    StopReason,
    derive_seed,
)
from localsim.conversation.grants import NOTHING
from localsim.conversation.minds.flows import Flow, merged
from localsim.conversation.minds.steps import Answer, Consult, Draft, Drafted, Note, told_of, weights_in
from localsim.conversation.prompts import agent_messages, lines_of, note_of, question_of, writer_messages
from localsim.conversation.requests import LEFT_OUT, Generation, Message, Request
from localsim.conversation.rules.deciding import Slot, ahead, rules_in, silent_turns, slots, told_turn
from localsim.conversation.rules.grammar import ActionLines, Barred
from localsim.conversation.rules.lines import Bound, shown
from localsim.conversation.rules.spill import utterance
from localsim.conversation.rules.steps import Act, Next, Rules, Stop, Tell
from localsim.conversation.scenario import WRITER, Scenario
from localsim.conversation.transcript import ACTION_TYPES, Repair, Transcript, Turn, parse_line
from localsim.conversation.visibility import impersonal, observe
from localsim.conversation.wording.layouts import FIRST, LAYOUTS
from localsim.conversation.wording.notes import lines_of_note
from localsim.errors import MalformedReply

ATTEMPTS = 2
"""Attempts at one turn: a malformed reply is retried once, with a new derived seed."""
ASIDE = "/aside"
"""The end of the name of the session in which an agent drafts lines without its persona."""
QUOTED = 120
"""The most characters of a reply that the reason of a failed episode quotes."""


@dataclass(frozen=True)
class Ask:
    """A request to the model of `request.speaker`."""

    request: Request


@dataclass(frozen=True)
class Say:
    """A valid turn, which joins the transcript."""

    turn: Turn
    written: bool = True
    """False for a turn that no generation has: it is given, or the rules tell it."""
    back: int = 0
    """How many generations ago its line was written; 0: in the last one."""


@dataclass(frozen=True)
class Reject:
    """A reply in the last generation that does not parse, with the reason."""

    turn: int
    reason: str


Step = Ask | Say | Reject
Play = Generator[Step, Generation | None, StopReason]


@dataclass(frozen=True)
class Thinks:
    """What the steps of a mind add to the request of a line."""

    notes: tuple[Note, ...] = ()
    persona: bool = True
    """False if the agent is told neither who it is nor what it is like."""


NO_THOUGHTS = Thinks()


def turn_by_turn(spec: EpisodeSpec) -> Play:
    """Write one turn at a time: agents with their own views, or one author with the prompt of a script.

    Agents and mindreaders differ only in `observe`.
    """
    rules, talk = rules_in(spec), (yield from _begin(spec))
    kept: dict[str, tuple[Note, ...]] = {}
    while not isinstance(step := rules.next(spec.scenario, talk, spec.seed), Stop):
        if isinstance(step, Tell):
            talk = yield from _tell(talk, step)
            continue
        for slot in slots(spec.scenario, talk, step):
            talk = yield from _agent_turn(spec, talk, slot, kept)
    return step.reason


def _begin(spec: EpisodeSpec) -> Generator[Step, Generation | None, Transcript]:
    """Say the turns that are given. Raises MalformedReply if they do not fit the rules."""
    if spec.encode is None and spec.scenario.recall.means and any(each.memories for each in spec.scenario.agents):
        raise ValueError("memories are recalled by meaning, and the spec has nothing that compares it")
    talk = beginning(spec.scenario, rules_in(spec), spec.seed)
    for turn in talk.turns:
        yield Say(turn, written=False)
    return talk


def _tell(talk: Transcript, tell: Tell) -> Generator[Step, Generation | None, Transcript]:
    """Let the rules tell something: a turn without a request."""
    turn = told_turn(len(talk), tell)
    yield Say(turn, written=False)
    return talk.plus(turn)


@dataclass(frozen=True)
class _Reply:
    """The lines that answer a request."""

    lines: list[str]
    cut: bool
    """True if the limit of tokens cut the last one."""
    typed: bool
    """True if a person wrote them."""
    unread: str = ""
    """Why they are not what was asked for."""
    left_out: bool = False
    """True if something was left out of them already."""


def _ask(request: Request, speaker: str) -> Generator[Step, Generation | None, _Reply]:
    generation = yield Ask(request)
    assert generation is not None, "an Ask is answered with a Generation"
    text = str(generation.details.get("raw", "")) if generation.unread else speaker + generation.text
    cut = generation.cause == "length" and not text.endswith("\n")
    lines = [line for line in text.split("\n") if line]
    left_out = generation.details.get(LEFT_OUT) is True
    return _Reply(lines, cut, generation.typed, generation.unread, left_out)


def _agent_turn(
    spec: EpisodeSpec, talk: Transcript, slot: Slot, kept: dict[str, tuple[Note, ...]]
) -> Generator[Step, Generation | None, Transcript]:
    """Write a turn; `kept` are the notes of each agent's mind for its later turns."""
    mind = spec.minds.get(slot.speaker)
    if mind is None:
        said = Say((yield from _line(spec, talk, slot)))
    else:
        said, left = yield from _Thinking(spec, talk, slot).turn(mind, kept.get(slot.speaker, ()))
        kept[slot.speaker] = tuple(note for note in left if note.keep)
    yield said
    return talk.plus(said.turn)


def _line(
    spec: EpisodeSpec, talk: Transcript, slot: Slot, begun: int = 0, thinks: Thinks = NO_THOUGHTS
) -> Generator[Step, Generation | None, Turn]:
    """Return the turn of an agent's line; `begun` are the attempts at earlier drafts of it."""
    reason, wrote = "", ""
    for attempt in range(begun, begun + ATTEMPTS):
        reply = yield from _ask(_request(spec, talk, attempt, (slot,), thinks), slot.speaker)
        wrote = "\n".join(reply.lines)
        try:
            return _turn_of(spec, len(talk), slot, reply)
        except MalformedReply as error:
            reason = error.message
            yield Reject(len(talk), reason)
    raise _unread(len(talk), slot, reason, wrote)


class _Thinking:
    """One turn of an agent with a mind: asks what its steps ask in the agent's own chat, and writes their drafts."""

    def __init__(self, spec: EpisodeSpec, talk: Transcript, slot: Slot) -> None:
        self._spec, self._talk, self._slot = spec, talk, slot
        self._asked = 0
        self._questions = 0
        self._drafts: list[tuple[Turn, int]] = []
        """Each draft, and the number of generations of this turn up to it."""

    def turn(
        self, mind: Flow, kept: tuple[Note, ...]
    ) -> Generator[Step, Generation | None, tuple[Say, tuple[Note, ...]]]:
        """Return the turn, and the notes of the mind after it."""
        seen = _request(self._spec, self._talk, 0, (self._slot,)).observation
        assert seen is not None, "an agent's request holds what it sees"
        work = mind.work(seen, kept)
        answer: Answer | Drafted | None = None
        try:
            while True:
                asked = work.send(answer)  # a generator begins with None
                answer = yield from (self._consult(asked) if isinstance(asked, Consult) else self._draft(asked))
        except StopIteration as end:
            done: tuple[Note, ...] | Drafted = end.value
        left = merged(kept, done.notes if isinstance(done, Drafted) else done)
        if not isinstance(done, Drafted):
            done = yield from self._draft(Draft(notes=left))
        turn, written = self._drafts[done.number]
        return Say(turn, back=self._asked - written), left

    def _draft(self, draft: Draft) -> Generator[Step, Generation | None, Drafted]:
        slot = self._slot if draft.ways is None else replace(self._slot, ways=draft.ways)
        thinks, begun = Thinks(draft.notes or (), persona=draft.persona), len(self._drafts) * ATTEMPTS
        turn = yield from self._counted(_line(self._spec, self._talk, slot, begun, thinks))
        self._drafts.append((turn, self._asked))
        return Drafted(len(self._drafts) - 1, turn.line)

    def _counted(self, line: Generator[Step, Generation | None, Turn]) -> Generator[Step, Generation | None, Turn]:
        """Pass on the steps of a line, and count its generations."""
        answer: Generation | None = None
        while True:
            try:
                step = line.send(answer)
            except StopIteration as end:
                turn: Turn = end.value
                return turn
            self._asked += isinstance(step, Ask)
            answer = yield step

    def _consult(self, asked: Consult) -> Generator[Step, Generation | None, Answer]:
        """Return the answer to a question, which is asked twice at most; an empty one if neither reply has its form."""
        spec, thinks = self._spec, Thinks(asked.notes or ())
        base = _request(spec, self._talk, 0, (self._slot,), thinks)
        assert base.observation is not None, "as above"
        messages, note = base.messages, question_of(base.observation, asked.ask, spec.variant, told_of(thinks.notes))
        if asked.opens:
            messages, note = (base.messages[0], Message("user", asked.ask)), ""
        sampling = replace(spec.sampling, act_min_p=0.0)
        request = replace(
            base, messages=messages, note=note, prefill=asked.start, form=asked.form, max_tokens=asked.max_tokens,
            sampling=replace(sampling, temperature=0.0) if asked.sure else sampling, heard=(), observation=None,
            step=asked.step,
        )  # fmt: skip
        self._questions += 1
        for attempt in range(ATTEMPTS):
            seed = derive_seed("question", base.seed, self._questions, attempt)
            self._asked += 1
            generation = yield Ask(replace(request, attempt=attempt, seed=seed))
            assert generation is not None, "an Ask is answered with a Generation"
            text = asked.form.read(generation.text)
            if text is not None:
                return Answer(text, weights_in(generation.details))
            yield Reject(len(self._talk), "not in the form that was asked for")
        return Answer("")


def _turn_of(spec: EpisodeSpec, index: int, slot: Slot, reply: _Reply) -> Turn:
    """Return the turn of a reply that is one line. Raises MalformedReply."""
    if reply.unread:
        raise MalformedReply(reply.unread)
    turn = _read(spec, index, slot, "\n".join(reply.lines), cut=reply.cut, typed=reply.typed)
    return replace(turn, repaired=turn.repaired or reply.left_out)


def _unread(turn: int, slot: Slot, reason: str, wrote: str) -> MalformedReply:
    """Return the error of a turn whose last attempt failed: why, what was written, and what was allowed."""
    kept = wrote if len(wrote) <= QUOTED else f"{wrote[:QUOTED]}..."
    written = f"; it wrote {kept!r}" if wrote else ""
    return MalformedReply(
        f"turn {turn + 1} by {slot.speaker} did not parse in {ATTEMPTS} attempts: {reason}{written}; "
        f"allowed were {', '.join(map(shown, slot.ways))}"
    )


def script(spec: EpisodeSpec) -> Play:
    """Let one model that sees everything write the whole conversation, as much of it at once as is certain.

    That is all of it in one generation, unless phases make the next speaker depend on what is said. In a layout with
    notes a generation goes as far as its note. If a line does not parse, the model tries once more from there; the
    turns before it are kept.
    """
    rules, talk, attempt = rules_in(spec), (yield from _begin(spec)), 0
    coming: tuple[Slot, ...] = ()
    while True:
        if not coming:
            step = rules.next(spec.scenario, talk, spec.seed)
            if isinstance(step, Stop):
                return step.reason
            if isinstance(step, Tell):
                talk = yield from _tell(talk, step)
                continue
            coming = at_once(rules, spec.scenario, talk, spec.seed, step, spec.layouts.get(WRITER, FIRST))
        reply = yield from _ask(_request(spec, talk, attempt, coming), coming[0].speaker)
        lines, cut = reply.lines, reply.cut
        if cut and len(lines) > 1:
            lines, cut = lines[:-1], False  # the model can write that line again, whole
        malformed, start, wrote = reply.unread or "the script ends before a stop rule does", len(talk), ""
        lines = [] if reply.unread else lines
        for line in lines:
            try:
                turn, after = _next_line(spec, talk, coming[0], line, cut=cut)
            except MalformedReply as error:
                malformed, wrote = error.message, line
                break
            yield Say(turn)
            talk, coming = talk.plus(turn), coming[1:]
            if isinstance(after, Stop):
                return after.reason
            if isinstance(after, Tell):
                coming = ()  # such as a count after the only agent of a phase has left
            if not coming:
                break
        if not coming:
            attempt = 0
            continue
        yield Reject(len(talk), malformed)
        attempt = attempt + 1 if len(talk) == start else 1
        if attempt >= ATTEMPTS:
            raise _unread(len(talk), coming[0], malformed, wrote)


def at_once(rules: Rules, scenario: Scenario, talk: Transcript, seed: int, act: Act, layout: str) -> tuple[Slot, ...]:
    """Return the places that a writer fills in one generation: all that are certain, as far as its note goes.

    Lines of one beat belong together.
    """
    coming = ahead(rules, scenario, talk, seed, act)
    if not LAYOUTS[layout].notes:
        return coming
    count = lines_of_note(observe(scenario, "script", WRITER, talk, NOTHING, coming[0].ways)) or len(coming)
    return next((coming[:end] for end in range(count, len(coming)) if coming[end - 1].closes), coming)


def _next_line(spec: EpisodeSpec, talk: Transcript, slot: Slot, line: str, *, cut: bool) -> tuple[Turn, Next | None]:
    """Return the turn of a script's next line, and the step after it if its beat is over. Raises MalformedReply."""
    turn = _read(spec, len(talk), slot, line, cut=cut)
    return turn, rules_in(spec).next(spec.scenario, talk.plus(turn), spec.seed) if slot.closes else None


class _WhileWritten:
    """Reads a script line by line while it is written, as `script` will, so that no line is written in vain."""

    def __init__(self, spec: EpisodeSpec, talk: Transcript, coming: tuple[Slot, ...]) -> None:
        self._begin = talk
        self._spec, self._coming = spec, coming
        self._read: list[str] = []
        self._talk, self._over = talk, False

    def __call__(self, lines: Sequence[str]) -> bool:
        """Return True if no line counts after these, which go on from those of the call before."""
        if list(lines[: len(self._read)]) != self._read:
            self._read, self._talk, self._over = [], self._begin, False
        while not self._over and len(self._read) < min(len(lines), len(self._coming)):
            self._take(lines[len(self._read)])
        return self._over

    def _take(self, line: str) -> None:
        slot = self._coming[len(self._read)]
        self._read.append(line)
        try:
            turn, after = _next_line(self._spec, self._talk, slot, line, cut=False)
        except MalformedReply:
            self._over = True
        else:
            self._talk, self._over = self._talk.plus(turn), isinstance(after, Stop | Tell)


MODES: dict[Mode, Callable[[EpisodeSpec], Play]] = {
    "script": script,
    "iterative": turn_by_turn,
    "agents": turn_by_turn,
    "mindreaders": turn_by_turn,
}


def roles(mode: Mode, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the roles that need a model in a mode."""
    return (WRITER,) if mode in SINGLE_AUTHOR else names


def _read(spec: EpisodeSpec, index: int, slot: Slot, line: str, *, cut: bool, typed: bool = False) -> Turn:
    scenario = spec.scenario
    repair = None if typed or spec.edition == 1 else _repair(scenario, slot.speaker)
    parsed = parse_line(line, slot.speaker, slot.ways, scenario.limits.chars, repair, cut=cut)
    return slot.turn(scenario, index, parsed.action, truncated=parsed.truncated, repaired=parsed.repaired)


def _repair(scenario: Scenario, speaker: str) -> Repair:
    actions = (*ACTION_TYPES, *(move.name for move in scenario.moves))
    return partial(utterance, speaker=speaker, names=scenario.names, actions=actions)


def _request(
    spec: EpisodeSpec, talk: Transcript, attempt: int, coming: tuple[Slot, ...], thinks: Thinks = NO_THOUGHTS
) -> Request:
    """Return the request for the next lines: one of an agent, or some of a script."""
    first = coming[0]
    speaker = WRITER if spec.mode in SINGLE_AUTHOR else first.speaker
    layout = spec.layouts.get(speaker, FIRST)
    if speaker == WRITER:
        seen = observe(spec.scenario, spec.mode, WRITER, talk, NOTHING, first.ways, encode=spec.encode)
        messages = (*writer_messages(seen, spec.variant, layout), *lines_of(talk))
    else:
        seen = observe(spec.scenario, spec.mode, speaker, talk, spec.grants, first.ways, first.since, spec.encode)
        seen = seen if thinks.persona else impersonal(seen)
        opens = [(note.opens, note.value) for note in thinks.notes if note.opens and thinks.persona]
        messages = agent_messages(seen, spec.variant, layout, opens)
    heard = (talk if speaker == WRITER else seen.transcript).acts
    return Request(
        session=f"{spec.hash}/{speaker}{'' if thinks.persona else ASIDE}",
        speaker=speaker,
        turn=len(talk),
        attempt=attempt,
        messages=messages,
        note=note_of(seen, spec.variant, layout, told_of(thinks.notes)),
        prefill=first.speaker,
        seed=spec.turn_seed(len(talk), attempt),
        max_tokens=spec.scenario.limits.tokens * len(coming),
        sampling=_sampling(spec, coming),
        form=_form(spec, talk, coming, spans_of(seen, first.speaker) if spec.scenario.recall.span else ()),
        heard=tuple((turn.speaker, turn.action.text) for turn in heard if turn.action.text),
        observation=seen,
    )


def _sampling(spec: EpisodeSpec, coming: tuple[Slot, ...]) -> Sampling:
    """Return the settings for the next lines. Moves are decisions to be measured, however unlikely."""
    moving = any(isinstance(way, Bound) for slot in coming for way in slot.ways)
    return replace(spec.sampling, act_min_p=0.0) if moving else spec.sampling


def spans_of(seen: Observation, speaker: str) -> tuple[str, ...]:
    """Return the sentences of what comes to a speaker's mind."""
    own = next(agent.memories for agent in seen.agents if agent.name == speaker)
    return tuple(dict.fromkeys(each for text in own for each in _SENTENCE.findall(text)))


_SENTENCE = re.compile(r"\S[^.!?\n]*[^.!?\s\n][.!?]*")


def _form(spec: EpisodeSpec, talk: Transcript, coming: tuple[Slot, ...], spans: tuple[str, ...] = ()) -> ActionLines:
    limits = spec.scenario.limits
    lines = tuple(slot.line for slot in coming)
    over = _WhileWritten(spec, talk, coming) if len(coming) > 1 and spec.edition > 1 else None
    barred = Barred() if spec.edition == 1 else Barred('"(*', "" if spec.scenario.has_brackets else "[]")
    return ActionLines(lines, limits.chars, limits.silence, silent_turns(talk), barred, over, spans)
