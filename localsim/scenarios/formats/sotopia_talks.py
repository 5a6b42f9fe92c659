"""Files of Sotopia -> scenarios, and its episode logs -> conversations, with the ratings of the log's judge as scores.

A log names profiles by their keys. If the files lack these, or the log is of the published data set, the texts in the
log say who took part and what each one was told.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localsim.conversation.episode import CONDITIONS, Score, StopReason, StoredMode
from localsim.conversation.human_talks import HumanTalk, LeftOut
from localsim.conversation.names import tidy
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import WORLD as NOBODY
from localsim.conversation.transcript import Action, told
from localsim.errors import InvalidInput
from localsim.scenarios.formats.markup import JUDGE, Kind, literal, marked, pieces, plain
from localsim.scenarios.formats.reading import Missing, Unmapped
from localsim.scenarios.formats.sotopia import (
    HINT,
    Files,
    Side,
    Task,
    combined,
    gather,
    note_idle,
    paired,
    person_of,
    printable,
    scenario_of,
    task_of,
)
from localsim.scenarios.formats.sotopia_form import DIMENSIONS, Log

SILENT = "did nothing"
LEFT = "left the conversation"
WORLD = "Environment"
OWN = "corpus_"
"""Start of the names of scores that a log brings with it."""
OURS = "localsim_"
"""Start of the tags of our own logs."""
_SAID = re.compile(r'said: "(.*)"', re.DOTALL)
_DID = re.compile(r"\[(non-verbal communication|action)\] ?(.*)", re.DOTALL)
_PRIVATE = re.compile(r"\[private to (?P<names>\[[^\]]*\]|[^\[\]]*)\]\s*")
_ACT = r"\s*(?=\[private to |said: \"|\[non-verbal communication\]|\[action\]|left the conversation|did nothing)"
_TURN = re.compile(r"^Turn #?-?\d+:?\s*", re.MULTILINE)
UNKNOWN = "a message has a form that is not known"
SAME_NAME = "two people have one name, and the messages do not say who acts"
STRANGERS = "a private message is for somebody who does not take part"
_COMMENTS = re.compile(r"^Agent (\d+) comments:\s*$", re.MULTILINE)
_BIOGRAPHY = re.compile(
    r"is a (?P<age>\d+)-year-old (?:(?P<gender>male|female|nonbinary) )?(?P<occupation>[^.]*)\. ?"
    r"(?:(?P<pronouns>\S+) pronouns\. ?)?(?P<public_info>.*?) ?"
    r"(?:Personality and values description: (?P<personality_and_values>.*?) ?)?$",
    re.DOTALL,
)
_TOLD_GOAL = re.compile(
    r"(?P<goal>.*?)\s*\((?:Extra information: (?P<extra>.*?))?\s*(?:Hint: (?P<hint>.*?))?\)", re.DOTALL
)
_SECRET = re.compile(r"(?:^|(?<=\s))(?:\S+['’]s?\s+)?secrets?\s*:\s*", re.IGNORECASE)
"""Begins what a text about a character hides: `Ilse's secrets: `."""
_GENDERS = {"male": "Man", "female": "Woman", "nonbinary": "Nonbinary"}


@dataclass(frozen=True)
class Found:
    """What files of Sotopia hold, as localsim's values."""

    scenarios: tuple[LoadedScenario, ...]
    talks: tuple[HumanTalk, ...]
    left_out: Mapping[str, int]
    """Reason -> number of logs."""
    unmapped: tuple[Unmapped, ...]


def read(files: Sequence[Path], pairs: int) -> Found:
    """Return the scenarios and conversations of files; `pairs` is the most pairs of characters for a situation.

    Raises InvalidInput for a defect, with its place.
    """
    held = gather(files)
    tasks, talks = list(combined(held)), list[HumanTalk]()
    left_out: Counter[str] = Counter()
    for where, log in held.logs:
        before = set(held.playing)
        try:
            talks.append(talk_of(where, log, held))
        except LeftOut as reason:
            left_out[str(reason)] += 1
            held.playing = before
    tasks += paired(held, pairs)
    note_idle(held)
    made: dict[str, LoadedScenario] = {}
    for scenario in (*(scenario_of(task, held.missing) for task in tasks), *(talk.scenario for talk in talks)):
        _add(made, scenario)
    if not made:
        raise InvalidInput(f"nothing can be imported: {_alone(held, left_out)}", where=str(files[0]), hint=HINT)
    return Found(tuple(made.values()), tuple(talks), left_out, held.missing.all)


def _alone(held: Files, left_out: Mapping[str, int]) -> str:
    """Return what the files hold, if no scenario can be made of it."""
    counts = {"agent profiles": len(held.people), "relationships": len(held.ties), "combinations": len(held.chosen)}
    there = [f"{count} {name}" for name, count in counts.items() if count]
    reasons = [f"{count} episodes left out, {reason}" for reason, count in left_out.items()]
    return "; ".join([*reasons, f"{', '.join(there) or 'nothing'} without a situation"])


def _add(made: dict[str, LoadedScenario], found: LoadedScenario) -> None:
    known = made.setdefault(found.scenario.id, found)
    if known.hash != found.hash:
        raise InvalidInput(
            f"two situations with the same people have the name {found.scenario.id}",
            where=found.path,
            hint="give them different codenames",
        )


def talk_of(where: str, log: Log, held: Files) -> HumanTalk:
    """Return the conversation of a log. Raises LeftOut, and InvalidInput for a defect."""
    task = _task(where, log, held)
    scenario = scenario_of(task, held.missing)
    names = scenario.scenario.names
    acts = list(_acts(log, [tidy(side.name) for side in task.sides], where, held.missing))
    if not any(act.action.text for act in acts):
        raise LeftOut("nothing is said or done")
    judge, *players = log.models or [""]
    turns = tuple((names[act.who] if act.who is not None else NOBODY, act.action) for act in acts)
    return HumanTalk(
        name=log.pk or where,
        where=where,
        scenario=scenario,
        turns=turns,
        readers={
            number: tuple(names[each] for each in act.readers)
            for number, act in enumerate(acts)
            if act.readers is not None
        },
        stop_reason=_stop(turns),
        outcome=tuple(_scores(log, names, judge, where, held.missing)),
        mode=_mode(log.tag),
        models=tuple(zip(names, players, strict=False)),
        note="",
    )


def _mode(tag: str | None) -> StoredMode:
    """Return how a log was made, which its tag says if it was not by separate agents."""
    words = re.split(r"[_\W]+", tag or "")
    return next((mode for mode in CONDITIONS if mode in words), "agents")


def _stop(turns: Sequence[tuple[str, Action]]) -> StopReason:
    last = [action.type for _, action in turns[-3:]]
    return "left" if last[-1] == "leave" else "silence" if last == ["none"] * 3 else "ended"


# ---- who takes part -------------------------------------------------------------------------------------------------


def _task(where: str, log: Log, held: Files) -> Task:
    if log.environment in held.environments and all(key in held.people for key in log.agents) and log.agents:
        _, environment = held.environments[log.environment]
        return task_of(environment, [person_of(held, key, where) for key in log.agents], held, where)
    names = list(log.social_goals) or _names_in(log)
    if 0 < len(names) < len(log.agents):
        raise LeftOut(SAME_NAME)
    if len(names) < 2:
        hint = "give the files of environment and agent profiles, too"
        raise InvalidInput("the log does not say who took part", where=where, hint=hint)
    context = {name: _context(log, name, names) for name in names}
    setting = log.scenario or next((literal(text["scenario"]) for text in context.values() if text["scenario"]), "")
    if not setting:
        raise InvalidInput(
            "the log does not say what the situation is", where=where, hint="give its environment profile"
        )
    held.missing.note(where, "relationship", "the log does not have it; stranger is assumed")
    sides = []
    for name in names:
        goal = log.social_goals.get(name) or _marked(context[name]["goal"]) or "Not recorded."
        profile, secret = biography(name, log.agents_background.get(name) or context[name]["background"], where, held)
        sides.append(Side(name, goal, profile, literal(secret)))
    codename = "_".join([log.codename or log.environment or log.pk or "log", *(name.lower() for name in names)])
    return Task(
        where, codename, setting, sides, "stranger", {"sotopia": {"pk": log.environment}} if log.environment else {}
    )


def _names_in(log: Log) -> list[str]:
    spoken = [name for turn in log.messages for sender, receiver, _ in turn for name in (sender, receiver)]
    return [name for name in dict.fromkeys(spoken) if name != WORLD]


def _context(log: Log, name: str, names: Sequence[str]) -> dict[str, str]:
    """Return what the first message to an agent tells: the scenario, and the agent's own background and goal."""
    first = next((text for turn in log.messages[:1] for _, receiver, text in turn if receiver == name), "")
    heads = {"Scenario: ": "scenario", "Participants: ": "", f"{name}'s background: ": "background"}
    heads |= {f"{name}'s goal: ": "goal", "Conversation Starts:": ""}
    heads |= {f"{other}'s {part}: ": "" for other in names if other != name for part in ("background", "goal")}
    found = {"scenario": "", "background": "", "goal": ""}
    at = ""
    for line in first.split("\n"):
        head = next((each for each in heads if line.startswith(each)), None)
        if head is not None:
            at, line = heads[head], line.removeprefix(head)
        if at:
            found[at] = f"{found[at]}\n{line}".strip()
    return {part: "" if text == "Unknown" else text for part, text in found.items()}


def _marked(goal: str) -> str:
    """Return a goal as a message tells it with the marks that it had in its profile."""
    match = _TOLD_GOAL.fullmatch(goal)
    if match is None:
        return literal(goal)
    kinds: dict[str, Kind] = {"extra": "extra_info", "hint": "strategy_hint"}
    marks = [
        marked(kinds[name], text.strip(), "") for name, text in match.groupdict().items() if name in kinds and text
    ]
    return " ".join([literal(match["goal"]), *marks])


def biography(name: str, text: str, where: str, held: Files) -> tuple[dict[str, str], str]:
    """Return the profile and the secret of a character from one text; what has another form is public information.

    A part that not everybody may see is a secret, if the text has other parts, too.
    """
    parts = pieces(text, f"{where}, background of {name}")
    if any(part.reader == JUDGE for part in parts):
        held.missing.note(where, "agents_background", "a part that no agent may see")
    parts = [part for part in parts if part.reader != JUDGE]
    some = any(not part.reader for part in parts)
    hidden = " ".join(part.text.strip() for part in parts if part.reader and some)
    about, *told = _SECRET.split(plain([part for part in parts if not (part.reader and some)]), maxsplit=1)
    secret = " ".join(filter(None, [*(each.strip() for each in told), hidden]))
    match = _BIOGRAPHY.fullmatch(about.strip().removeprefix(name).strip())
    if match is None:
        return ({"public_info": literal(about.strip())} if about.strip() else {}), secret
    profile = {key: literal(value.strip()) for key, value in match.groupdict().items() if value and value.strip()}
    if "gender" in profile:
        profile["gender"] = _GENDERS[profile["gender"]]
    return profile, secret


# ---- what is said ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Act:
    """A message that somebody wrote, or that the environment told."""

    who: int | None
    """Place of the agent in the situation; None: the environment."""
    action: Action
    readers: tuple[int, ...] | None = None
    """Who could read it, its author first; None: everybody."""


def _acts(log: Log, names: Sequence[str], where: str, missing: Missing) -> Iterator[_Act]:
    """Yield what happens in a log: of a round, what is not silence, or one silence."""
    rounds = list(_rounds(log, names, where, missing))
    while rounds and len(rounds[-1]) != 1 and not any(map(_is_loud, rounds[-1])):
        rounds.pop()  # the log's end, where nobody acts any more
    for number, acts in enumerate(rounds):
        loud = list(filter(_is_loud, acts))
        if not loud and len(acts) > 1:
            # All are noted as silent; the one whose turn it was is one of them.
            yield _Act(number % len(names), Action("none"))
        else:
            yield from loud or acts


def _is_loud(act: _Act) -> bool:
    return act.action.type != "none" or bool(act.action.text)


def _rounds(log: Log, names: Sequence[str], where: str, missing: Missing) -> Iterator[list[_Act]]:
    """Yield what is done in each round of a log. Raises LeftOut, and InvalidInput for a person who is not there."""
    for number, raw in enumerate(log.messages):
        messages = [(tidy(sender), tidy(receiver), text) for sender, receiver, text in raw]
        written = [each for each in messages if each[0] != WORLD]
        if not written and number and (log.tag or "").startswith(OURS):
            yield [_told(messages, names)]
            continue
        if number and any(_is_news(each) for each in messages):
            missing.note(where, "messages", "what the environment tells in the middle of a talk", messages[0][2])
        for sender, _, _ in written:
            if sender not in names:
                raise InvalidInput(f"{sender!r} takes part and has no profile", where=where)
        acts = [
            _act(who, text, receiver, names, where, missing)
            for who, (_, receiver, text) in zip(_places(written, names), written, strict=True)
        ]
        if acts:
            yield acts
    if not log.messages and log.social_interactions:
        for who, text in _lines(log.social_interactions, names, where):
            yield [_act(who, text, WORLD, names, where, missing)]


def _is_news(message: tuple[str, str, str]) -> bool:
    """Return True if the environment tells an agent something else than what the others have just done."""
    sender, receiver, text = message
    return sender == WORLD and receiver != WORLD and not _TURN.match(text.strip())


def _told(messages: Sequence[tuple[str, str, str]], names: Sequence[str]) -> _Act:
    """Return what the rules of our own run told its agents."""
    readers = tuple(names.index(receiver) for _, receiver, _ in messages if receiver in names)
    return _Act(None, told(_whole(messages[0][2])), None if len(readers) == len(names) else readers)


def _places(written: Sequence[tuple[str, str, str]], names: Sequence[str]) -> list[int]:
    """Return who wrote the messages of a round. Raises LeftOut where a name could be that of two agents."""
    senders = [sender for sender, _, _ in written]
    if senders == list(names):
        return list(range(len(names)))
    if any(names.count(sender) > 1 for sender in senders):
        raise LeftOut(SAME_NAME)
    return [names.index(sender) for sender in senders]


def _lines(text: str, names: Sequence[str], where: str) -> Iterator[tuple[int, str]]:
    """Yield (agent, act) of a log that is one text: `Turn #1` and a line, or lines with blank lines between them."""
    if any(names.count(name) > 1 for name in names):
        raise LeftOut(SAME_NAME)
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    parts = [part.strip() for part in _TURN.split(text)]
    for part in filter(None, parts):
        begins = list(re.finditer(rf"^(?P<name>{known})\b:?(?P<act>{_ACT})?", part, re.MULTILINE))
        if not begins or begins[0].start():
            place = f"{where}, social_interactions"
            raise InvalidInput(f"a line that no participant wrote: {part[:60]!r}", where=place)
        # A turn holds one line, whatever is said in it; but a speech that has ended does not go on with a name.
        starts = begins[:1]
        for begin in begins[1:]:
            before = part[starts[-1].end() : begin.start()].strip()
            ended = not before.startswith('said: "') or (before.endswith('"') and len(before) > len('said: "'))
            if ended or (begin["act"] is not None and len(parts) == 1):
                starts.append(begin)
        for start, after in zip(starts, [*starts[1:], None], strict=True):
            whole = part[start.end() : after.start() if after else None].rstrip("\n")
            yield names.index(start["name"]), whole


def _act(who: int, text: str, receiver: str, names: Sequence[str], where: str, missing: Missing) -> _Act:
    """Return the action of a message. Its words are kept as they are, whatever marks they have.

    Raises LeftOut for a message of another form, because nobody knows who was to read it.
    """
    others: list[str] | None = [] if receiver == WORLD else [receiver]
    rest = text.lstrip()
    if private := _PRIVATE.match(rest):
        others, rest = _named(private["names"]), rest[private.end() :]
    action = _action(rest)
    if action is None or others is None:
        missing.note(where, "messages", f"{UNKNOWN}; the episode is left out", text.strip())
        raise LeftOut(UNKNOWN)
    if any(names.count(other) != 1 for other in others):
        raise LeftOut(STRANGERS if any(other not in names for other in others) else SAME_NAME)
    if not others:
        return _Act(who, action)
    return _Act(who, action, (who, *sorted({names.index(other) for other in others} - {who})))


def _named(text: str) -> list[str] | None:
    """Return the names in `[private to ...]`: a list as Python writes it, or names with commas between them.

    None for anything else.
    """
    try:
        found = ast.literal_eval(text) if text.startswith("[") else text.split(", ")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return [tidy(str(each)) for each in found]


def _action(text: str) -> Action | None:
    """Return the action of a message without its readers; None for a form that is not known."""
    for kind, form in (("none", SILENT), ("leave", LEFT)):
        if text.strip() == form:
            return Action(kind)
        if text.startswith((f"{form}: ", f"{form},")):
            return Action(kind, _whole(text[len(form) + 1 :].removeprefix(" ")))
    if said := _SAID.fullmatch(text.rstrip()):
        return Action("speak", _whole(said[1]))
    if did := _DID.fullmatch(text):
        return Action(did[1], _whole(did[2]))
    return None


def _whole(text: str) -> str:
    return printable(text, but="\r\n")  # line breaks are left to `Action`


# ---- how it was rated -----------------------------------------------------------------------------------------------


def _scores(log: Log, names: Sequence[str], judge: str, where: str, missing: Missing) -> Iterator[Score]:
    """Yield the ratings of each agent. A rating that is only a number stands for a log that no judge has rated."""
    reasons = _reasons(log.reasoning)
    if len(log.rewards) > len(names):
        missing.note(where, "rewards", "more ratings than agents; the first are taken")
    for number, (name, reward) in enumerate(zip(names, log.rewards, strict=False)):
        for dimension, value in _dimensions(reward).items():
            ours = DIMENSIONS.get(dimension)
            if ours is None:
                missing.note(where, f"rewards.{dimension}", "no dimension of this name")
            elif not isinstance(value, int | float) or isinstance(value, bool):
                missing.note(where, f"rewards.{dimension}", "it is no number", str(value))
            else:
                reason = reasons.get((number, dimension)) or (f"rated by {judge}" if judge else "rated in the log")
                yield Score(OWN + ours, float(value), agent=name, reason=reason)


def _dimensions(reward: Any) -> Mapping[str, Any]:
    if isinstance(reward, list | tuple) and len(reward) == 2 and isinstance(reward[1], Mapping):
        return reward[1]
    return reward if isinstance(reward, Mapping) else {}


def _reasons(reasoning: str) -> dict[tuple[int, str], str]:
    """Return (number of an agent, dimension) -> the judge's reason, from the comments of a log."""
    found: dict[tuple[int, str], str] = {}
    parts = _COMMENTS.split(reasoning)
    for number, text in zip(parts[1::2], parts[2::2], strict=False):
        dimension = ""
        for line in text.split("\n"):
            head, colon, rest = line.partition(": ")
            if colon and head in DIMENSIONS:
                dimension, found[int(number) - 1, head] = head, rest
            elif dimension and line.strip():
                found[int(number) - 1, dimension] += f" {line.strip()}"
    return found
