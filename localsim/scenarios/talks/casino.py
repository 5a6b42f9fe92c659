"""CaSiNo's JSON (Chawla et al. 2021, arXiv 2103.15721): two campers share out food, water and firewood.

The order of needs and the reasons for it are private facts, which may be told freely. Offers, acceptance, rejection and
walking away are actions. The corpus's own results are scores with names that begin with `corpus_`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from localsim.conversation.episode import Score
from localsim.conversation.human_talks import HumanTalk, LeftOut, Part, checked, id_of, loaded, plain_text, turns_of

_HINT = "CaSiNo's format is a list of dialogues with dialogue_id, chat_logs and participant_info"
_LEVELS = ("High", "Medium", "Low")
_NEEDS = {"High": "most", "Medium": "second most", "Low": "least"}
_BUTTONS = {"Accept-Deal": "accepts", "Reject-Deal": "rejects"}


class Line(Part):
    """A message, or the use of a button."""

    text: str
    id: str
    task_data: dict[str, Any] | None = None


class Results(Part):
    """The outcome for one participant."""

    points_scored: float | None = None
    satisfaction: str | None = None
    opponent_likeness: str | None = None


class Participant(Part):
    """The private side of a participant."""

    value2issue: dict[str, str]
    value2reason: dict[str, str] | None = None
    outcomes: Results = Results()


class Dialogue(Part):
    """A dialogue of the corpus."""

    dialogue_id: str
    chat_logs: list[Line]
    participant_info: dict[str, Participant]


def fits(data: Mapping[str, Any]) -> bool:
    """Return True for a dialogue of this corpus."""
    return "chat_logs" in data and "participant_info" in data


def read(data: Mapping[str, Any], where: str, path: str) -> HumanTalk:
    """Return a dialogue of the corpus as a talk. Raises LeftOut, and InvalidInput for a defect."""
    dialogue = checked(Dialogue, data, where, _HINT)
    ids = sorted(dialogue.participant_info)
    if len(ids) != 2 or not {line.id for line in dialogue.chat_logs} <= set(ids):
        raise LeftOut("it is not between its two participants")
    names = {each: f"Person {number}" for number, each in enumerate(ids, start=1)}
    scenario = loaded(
        path,
        where,
        id=id_of("casino", dialogue.dialogue_id),
        title="Two campers share out food, water and firewood",
        info={"what": "Campsite neighbours negotiate over packages, each with needs of their own (CaSiNo corpus)."},
        setting=(
            "Person 1 and Person 2 are neighbours at a campsite. They share out three packages each of food, water and "
            "firewood."
        ),
        agents=[_agent(names[each], dialogue.participant_info[each]) for each in ids],
    )
    return HumanTalk(
        name=dialogue.dialogue_id,
        where=where,
        scenario=scenario,
        turns=turns_of([(names[line.id], *_action(line)) for line in dialogue.chat_logs]),
        stop_reason="left" if _has(dialogue, "Walk-Away") else "ended",
        outcome=tuple(_outcome(dialogue, names)),
    )


def _agent(name: str, participant: Participant) -> dict[str, Any]:
    facts = []
    for level in _LEVELS:
        issue, reason = participant.value2issue.get(level), plain_text((participant.value2reason or {}).get(level, ""))
        if issue:
            key = id_of(name.lower(), level.lower())
            facts.append({"id": key, "text": f"{name} needs {issue.lower()} {_NEEDS[level]}."})
            if reason:
                text = f"{name} says about {issue.lower()}: {reason}"
                facts.append({"id": f"{key}_reason", "text": text[:4000]})
    goal = "Get the packages that you need most. Each package of what you need most counts 5, second 4, least 3 points."
    return {"name": name, "goal": goal, "facts": facts}


def _action(line: Line) -> tuple[str, str]:
    if line.text == "Submit-Deal":
        mine = (line.task_data or {}).get("issue2youget")
        wanted = [f"{count} {issue.lower()}" for issue, count in mine.items()] if isinstance(mine, dict) else []
        return "action", f"proposes to get {', '.join(wanted)}" if wanted else "proposes a deal"
    if line.text == "Walk-Away":
        return "leave", ""
    if line.text in _BUTTONS:
        return "action", _BUTTONS[line.text]
    return "speak", line.text


def _has(dialogue: Dialogue, text: str) -> bool:
    return any(line.text == text for line in dialogue.chat_logs)


def _outcome(dialogue: Dialogue, names: Mapping[str, str]) -> Iterator[Score]:
    if _has(dialogue, "Accept-Deal") or _has(dialogue, "Walk-Away"):
        yield Score("corpus_deal", float(_has(dialogue, "Accept-Deal")), reason="the deal is accepted, or not")
    for each, name in names.items():
        results = dialogue.participant_info[each].outcomes
        if results.points_scored is not None:
            yield Score("corpus_points", results.points_scored, agent=name)
        for score, answer in (
            ("corpus_satisfaction", results.satisfaction),
            ("corpus_likeness", results.opponent_likeness),
        ):
            if answer:
                yield Score(score, None, label=answer, agent=name, reason="the participant's own answer")
