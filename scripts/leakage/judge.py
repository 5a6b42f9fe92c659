"""A chat model as judge of leaks beside the detector, on labelled conversations that only measure."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic

from localsim.conversation.episode import Subject
from localsim.conversation.scenario import Agent, AnswerKey, Info, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.evaluators.asking import ask, open_judge
from localsim.evaluators.leak_judge import Inquiry, question
from localsim.leakage.detector import LeakageDetector
from localsim.leakage.pairs import LabelledTranscript, PrivateFact
from localsim.leakage.track import track
from localsim.stats import rate, text_of
from scripts.leakage import data
from scripts.tables import markdown_table

Turns = Mapping[tuple[int, str], int | None]
"""(conversation, fact) -> the turn in which it comes out first; None if it never does."""
HEADS = ("", "came out, recall", "precision", "first turn of those", "silence", "minutes for 100 facts")


def subject_of(number: int, talk: LabelledTranscript) -> Subject:
    """Return a labelled conversation as a completed episode."""
    names = dict.fromkeys([fact.owner for fact in talk.facts] + [speaker for speaker, _ in talk.turns])
    agents = tuple(Agent(name=name, goal="Talk.") for name in names)
    named = {"id": f"labelled_{number}", "title": "Labelled", "setting": "People talk.", "info": Info(what="Labels")}
    scenario = Scenario(version=1, agents=agents, **named)
    turns = (Turn(place, name, Action("speak", text)) for place, (name, text) in enumerate(talk.turns))
    return Subject(str(number), scenario, AnswerKey(), "people", 0, number, Transcript(tuple(turns)))


def judged(model: str, talks: Sequence[LabelledTranscript]) -> tuple[Turns, int, float]:
    """Return what a model finds, the number of questions, and the seconds that they took."""
    inquiries = [
        (number, fact, Inquiry(subject, fact))
        for number, talk in enumerate(talks)
        for subject in (subject_of(number, talk),)
        for fact in talk.facts
    ]
    asked = 0
    with open_judge(model, lambda line: print(line, file=sys.stderr)) as backend:
        begun = monotonic()
        for number in range(len(talks)):
            own = [inquiry for place, _, inquiry in inquiries if place == number]
            while waiting := [(each, end) for each in own for end in each.wanted]:
                answers = ask(backend, [question(each.subject, each.fact, end) for each, end in waiting])
                asked += len(answers)
                for each in own:
                    each.take({end: got for (one, end), got in zip(waiting, answers, strict=True) if one is each})
            print(f"{number + 1} of {len(talks)} conversations", file=sys.stderr)
        seconds = monotonic() - begun
    return (
        {(number, fact.id): each.found.turn if each.found else None for number, fact, each in inquiries},
        asked,
        seconds,
    )


def detected(talks: Sequence[LabelledTranscript]) -> Turns:
    """Return what the detector finds."""
    found = track(LeakageDetector(), [(talk.facts, talk.turns) for talk in talks])
    turns = {(number, leak.fact.id): leak.turn for number, each in enumerate(found) for leak in each.leaks}
    return {place: turns.get(place) for place, _ in _facts(talks)}


def _facts(talks: Sequence[LabelledTranscript]) -> Iterator[tuple[tuple[int, str], PrivateFact]]:
    for number, talk in enumerate(talks):
        yield from (((number, fact.id), fact) for fact in talk.facts)


def cells(talks: Sequence[LabelledTranscript], found: Turns) -> list[str]:
    """Return recall and precision of facts that come out, first turns, and silences, with 95% over conversations."""
    counts: dict[str, dict[str, tuple[int, int]]] = {name: {} for name in ("recall", "precision", "turn", "silence")}
    for number, talk in enumerate(talks):
        said = {fact.id: found[number, fact.id] for fact in talk.facts}
        true = {name: where.turn for name, where in talk.disclosures.items() if name in said}
        both = sum(said[name] is not None for name in true)
        silent = [name for name in said if name not in true]
        counts["recall"][str(number)] = both, len(true)
        counts["precision"][str(number)] = both, sum(turn is not None for turn in said.values())
        counts["turn"][str(number)] = sum(said[name] == turn for name, turn in true.items()), len(true)
        counts["silence"][str(number)] = sum(said[name] is None for name in silent), len(silent)
    return [text_of(*rate(own)[:3], ".2f") for own in counts.values()]


def compare(model: str, most: int) -> str:
    """Return the table of a model and the detector on the first `most` conversations of each held-out file."""
    parts = []
    for name, every in data.held_out_talks().items():
        talks = every[:most]
        facts = sum(len(talk.facts) for talk in talks)
        found, asked, seconds = judged(model, talks)
        begun = monotonic()
        own = detected(talks)
        paces = [f"{each / 60 / facts * 100:.1f}" for each in (seconds, monotonic() - begun)]
        rows = [[model, *cells(talks, found), paces[0]], ["detector", *cells(talks, own), paces[1]]]
        title = f"{name}: {len(talks)} conversations, {facts} facts, {asked} questions"
        parts += [title, "", markdown_table(HEADS, rows), ""]
    return "\n".join(parts)
