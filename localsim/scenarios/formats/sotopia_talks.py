"""Files of Sotopia -> scenarios, and its episode logs -> conversations, with the ratings of the log's judge as scores.

A log names profiles by their keys. If the files lack these, or the log is of the published data set, the texts in the
log say who took part and what each one was told.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localsim.conversation.episode import CONDITIONS, Score, StopReason, StoredMode
from localsim.conversation.human_talks import HumanTalk, LeftOut
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action
from localsim.errors import InvalidInput
from localsim.scenarios.formats.markup import Kind, literal, marked
from localsim.scenarios.formats.reading import Missing, Unmapped
from localsim.scenarios.formats.sotopia import (
    Files,
    Side,
    Task,
    gather,
    person_of,
    scenario_of,
    task_of,
    tasks_of,
)
from localsim.scenarios.formats.sotopia_form import DIMENSIONS, Log

SILENT = "did nothing"
LEFT = "left the conversation"
WORLD = "Environment"
OWN = "corpus_"
"""Start of the names of scores that a log brings with it."""
_SAID = re.compile(r'said: "(.*)"', re.DOTALL)
_DID = re.compile(r"\[(non-verbal communication|action)\] ?(.*)", re.DOTALL)
_LINE = re.compile(
    r"(?P<name>.+?) (?P<text>said: \".*|\[(?:non-verbal communication|action)\].*|left the conversation.*|did nothing)",
    re.DOTALL,
)
_TURN = re.compile(r"^Turn #?\d+:?\s*", re.MULTILINE)
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
    made: dict[str, LoadedScenario] = {}
    for task in tasks_of(held, pairs):
        _add(made, scenario_of(task, held.missing))
    talks: list[HumanTalk] = []
    left_out: Counter[str] = Counter()
    for where, log in held.logs:
        try:
            talk = talk_of(where, log, held)
        except LeftOut as reason:
            left_out[str(reason)] += 1
            continue
        _add(made, talk.scenario)
        talks.append(talk)
    return Found(tuple(made.values()), tuple(talks), left_out, held.missing.all)


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
    called = {side.name: name for side, name in zip(task.sides, scenario.scenario.names, strict=True)}
    turns = [(called[name], action) for name, action in _turns(log, list(called), where, held.missing)]
    if not any(action.text for _, action in turns):
        raise LeftOut("nothing is said or done")
    judge, *players = log.models or [""]
    return HumanTalk(
        name=log.pk or where,
        where=where,
        scenario=scenario,
        turns=tuple(turns),
        stop_reason=_stop(turns),
        outcome=tuple(_scores(log, scenario.scenario.names, judge, where, held.missing)),
        mode=_mode(log.tag),
        models=tuple(zip(scenario.scenario.names, players, strict=False)),
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
    if len(names) < 2:
        hint = "give the files of environment and agent profiles, too"
        raise InvalidInput("the log does not say who took part", where=where, hint=hint)
    told = {name: _told(log, name, names) for name in names}
    setting = log.scenario or next((literal(text["scenario"]) for text in told.values() if text["scenario"]), "")
    if not setting:
        raise InvalidInput(
            "the log does not say what the situation is", where=where, hint="give its environment profile"
        )
    held.missing.note(where, "relationship", "the log does not have it; stranger is assumed")
    sides = []
    for name in names:
        goal = log.social_goals.get(name) or _marked(told[name]["goal"]) or "Not recorded."
        profile, secret = biography(name, log.agents_background.get(name) or told[name]["background"])
        sides.append(Side(name, goal, profile, literal(secret)))
    codename = "_".join([log.codename or log.environment or log.pk or "log", *(name.lower() for name in names)])
    return Task(
        where, codename, setting, sides, "stranger", {"sotopia": {"pk": log.environment}} if log.environment else {}
    )


def _names_in(log: Log) -> list[str]:
    spoken = [name for turn in log.messages for sender, receiver, _ in turn for name in (sender, receiver)]
    return [name for name in dict.fromkeys(spoken) if name != WORLD]


def _told(log: Log, name: str, names: Sequence[str]) -> dict[str, str]:
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


def biography(name: str, text: str) -> tuple[dict[str, str], str]:
    """Return the profile and the secret of a character from one text; what has another form is public information."""
    whole = re.sub(r"</?(?:root|p)(?:\s[^<>]*)?>", "", text).strip()
    about, _, secret = whole.partition(f"{name.split()[0]}'s secrets: ")
    match = _BIOGRAPHY.fullmatch(about.strip().removeprefix(name).strip())
    if match is None:
        return ({"public_info": about.strip()} if about.strip() else {}), secret.strip()
    profile = {key: value.strip() for key, value in match.groupdict().items() if value and value.strip()}
    if "gender" in profile:
        profile["gender"] = _GENDERS[profile["gender"]]
    return profile, secret.strip()


# ---- what is said ---------------------------------------------------------------------------------------------------


def _turns(log: Log, names: Sequence[str], where: str, missing: Missing) -> Iterator[tuple[str, Action]]:
    rounds = list(_rounds(log, names, where))
    while rounds and not any(acts != SILENT for _, acts in rounds[-1]) and len(rounds[-1]) != 1:
        rounds.pop()  # the log's end, where nobody acts any more
    for number, acts in enumerate(rounds):
        real = [(name, text) for name, text in acts if text != SILENT]
        if not real and acts:
            # All are noted as silent; the one whose turn it was is one of them.
            real = acts if len(acts) == 1 else [(names[number % len(names)], SILENT)]
        for name, text in real:
            yield name, _action(text, where, missing)


def _rounds(log: Log, names: Sequence[str], where: str) -> Iterator[list[tuple[str, str]]]:
    """Yield (agent, act) of each turn of a log, as they stand in it."""
    for turn in log.messages:
        acts = [(sender, text) for sender, receiver, text in turn if sender != WORLD and receiver == WORLD]
        for sender, _ in acts:
            if sender not in names:
                raise InvalidInput(f"{sender!r} takes part and has no profile", where=where)
        if acts:
            yield acts
    if not log.messages and log.social_interactions:
        for part in _TURN.split(log.social_interactions):
            if part.strip():
                yield [_line(part.strip(), names, where)]


def _line(line: str, names: Sequence[str], where: str) -> tuple[str, str]:
    match = _LINE.fullmatch(line)
    if match is None or match["name"] not in names:
        raise InvalidInput(f"a line that no participant wrote: {line[:60]!r}", where=f"{where}, social_interactions")
    return match["name"], match["text"]


def _action(text: str, where: str, missing: Missing) -> Action:
    """Return the action of a message. Its words are kept as they are, whatever marks they have."""
    for kind, form in (("none", SILENT), ("leave", LEFT)):
        if text == form or text.startswith((f"{form}: ", f"{form},")):
            return Action(kind, _whole(text.removeprefix(form).removeprefix(": ")).lstrip(","))
    if said := _SAID.fullmatch(text):
        return Action("speak", _whole(said[1]))
    if did := _DID.fullmatch(text):
        return Action(did[1], _whole(did[2]))
    missing.note(where, "messages", "a message of an unknown form is kept as speech")
    return Action("speak", _whole(text))


def _whole(text: str) -> str:
    """Return text without control characters and halves of characters; line breaks are left to `Action`."""
    kinds = {"Cs": "\ufffd", "Cc": " "}
    return "".join(char if char in "\r\n" else kinds.get(unicodedata.category(char), char) for char in text)


# ---- how it was rated -----------------------------------------------------------------------------------------------


def _scores(log: Log, names: Sequence[str], judge: str, where: str, missing: Missing) -> Iterator[Score]:
    """Yield the ratings of each agent. A rating that is only a number stands for a log that no judge has rated."""
    reasons = _reasons(log.reasoning)
    for number, (name, reward) in enumerate(zip(names, log.rewards, strict=False)):
        for dimension, value in _dimensions(reward).items():
            ours = DIMENSIONS.get(dimension)
            if ours is None:
                missing.note(where, f"rewards.{dimension}", "no dimension of this name")
            elif isinstance(value, int | float) and not isinstance(value, bool):
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
