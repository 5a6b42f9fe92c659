"""Memories from stored conversations: what each agent heard and said there, for its next conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localsim.conversation.memories import Memory
from localsim.conversation.scenario import Agent, AnswerKey, LoadedScenario, Scenario, ScenarioFile
from localsim.conversation.transcript import Transcript, Turn
from localsim.conversation.visibility import readable
from localsim.errors import InvalidInput
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.store.queries.pages import answer_key
from localsim.store.queries.scoring import subjects

MOST = 1000
"""The most memories of an agent; the youngest are kept."""


@dataclass(frozen=True)
class Lived:
    """A stored conversation."""

    scenario: Scenario
    answer: AnswerKey
    talk: Transcript
    mode: str


def remembered(store: Store, reference: str, into: LoadedScenario | None = None) -> ScenarioFile:
    """Return a scenario whose agents remember an episode, or the episodes of a run one after the other.

    `into` is the next scenario, whose agents are known by name; by default that of the run. Raises InvalidInput.
    """
    where, lived = _lived(store, reference)
    if len({each.mode for each in lived}) > 1:
        raise InvalidInput("a run of several modes", where=where, hint="name an episode: localsim show lists them")
    if into is None:
        if len({each.scenario.hash for each in lived}) > 1:
            raise InvalidInput("a run of several scenarios", where=where, hint="--into names the one to go on with")
        scenario = lived[0].scenario.model_copy(update={"begun": (), "seed": None})
        into = LoadedScenario(scenario, lived[0].answer, where)
    agents = tuple(_with_memories(agent, lived) for agent in into.scenario.agents)
    if agents == into.scenario.agents:
        hint = f"people of that run: {', '.join(lived[0].scenario.names)}"
        raise InvalidInput(f"nobody in {into.scenario.id} was there", where=where, hint=hint)
    return into.document.model_copy(update={"agents": agents})


def _lived(store: Store, reference: str) -> tuple[str, list[Lived]]:
    with store.held() as reads:
        try:
            run_id = store.run_id(reference)
        except InvalidInput:
            episode_id = store.episode_id(reference)
            found = load_episode(reads, episode_id)
            return episode_id, [Lived(found.scenario, answer_key(reads, episode_id), found.transcript, found.mode)]
        every = sorted(subjects(reads, run_id), key=lambda each: (each.index, each.scenario.id))
    if not every:
        raise InvalidInput("no conversation has ended", where=run_id)
    return run_id, [Lived(each.scenario, each.answer, each.transcript, each.mode) for each in every]


def _with_memories(agent: Agent, lived: Sequence[Lived]) -> Agent:
    """Return an agent with what it has lived through; the age of a memory counts the turns since then."""
    memories = list(agent.memories)
    for each in lived:
        if agent.name in each.scenario.names:
            goes_on = each.scenario.limits.leave == "goes_on"
            heard = readable(each.talk, agent.name, everything=False, goes_on=goes_on).turns
            texts = [text for turn in heard if (text := _as_memory(turn))]
            memories = [old.model_copy(update={"age": old.age + len(texts)}) for old in memories]
            memories += [Memory(text=text, age=len(texts) - 1 - at) for at, text in enumerate(texts)]
    return agent.model_copy(update={"memories": tuple(memories[-MOST:])})


def _as_memory(turn: Turn) -> str:
    """Return what is remembered of a turn; '' if nothing was done in it."""
    if turn.told:
        return turn.action.text
    if turn.action.type == "speak":
        return f"{turn.speaker} said: {turn.action.text}"
    return "" if turn.action.type == "none" else turn.line
