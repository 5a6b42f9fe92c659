"""Tasks for Inspect (inspect.aisi.org.uk): `inspect eval localsim/FAMILY --model MODEL -T mode=agents`.

Inspect imports this module through its entry point `inspect_ai`; nothing else does. There is a task for each family. A
sample is a scenario, an epoch an episode. The modes of localsim play it, with Inspect's model in every role, so each
agent sees only what `observe` gives it. A role of Inspect with an agent's name (`--model-role Ana=MODEL`) gives that
agent a model of its own. The family's rules score the conversation; no model judges it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, GenerateConfig, get_model
from inspect_ai.scorer import Score as Scored
from inspect_ai.scorer import mean, scorer, stderr
from inspect_ai.solver import solver

from localsim.backends.endpoint import server_messages
from localsim.backends.replies import generation_of
from localsim.conversation.episode import EpisodeSpec, Mode, Score, Subject
from localsim.conversation.modes import MODES, Ask, Reject, Say, roles
from localsim.conversation.requests import Generation, Message, Request
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.wording.layouts import DEFAULT, LAYOUTS
from localsim.errors import InvalidInput, MalformedReply, suggest
from localsim.evaluators.evaluate import Outcome
from localsim.families import FAMILIES, rules_of
from localsim.leakage.meaning import encode_of
from localsim.scenarios.find import find_scenarios, shipped

TURNS, FAILED = "localsim:turns", "localsim:failed"
_ROLES: dict[str, Any] = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
_SAMPLING = replace(LAYOUTS[DEFAULT].sampling, grammar=False)
_LIMITS = ("length", "max_tokens", "model_length")


def _task_of(family: str) -> Callable[..., Any]:
    """Return the task of a family, as Inspect calls it with the arguments of `-T`."""

    def build(mode: str = "agents", scenarios: str = "", seed: int = 1) -> Any:
        """Play the scenarios of a family in a mode; `scenarios` names files or bundled scenarios, with commas."""
        if mode not in MODES:
            raise InvalidInput(f"mode = {mode!r}", hint=suggest(mode, MODES) or f"one of {', '.join(MODES)}")
        chosen = _scenarios(family, scenarios)
        return Task(
            dataset=[
                Sample(id=name, input=loaded.scenario.title, metadata={"scenario": name})
                for name, loaded in chosen.items()
            ],
            solver=solver(name=f"{family}_talk")(_talk)(chosen, mode, seed),
            scorer=scorer(metrics={"*": [mean(), stderr()]}, name=f"{family}_outcome")(_outcome)(chosen, family, mode),
            config=GenerateConfig(temperature=_SAMPLING.temperature, top_p=_SAMPLING.top_p),
            version=int(FAMILIES[family].version),
        )

    build.__name__ = family
    return build


def _scenarios(family: str, names: str) -> dict[str, LoadedScenario]:
    """Return id -> scenario: those named, or the bundled ones of the family. Raises InvalidInput."""
    given = [name.strip() for name in names.split(",") if name.strip()]
    found = find_scenarios(given) if given else [each for each in shipped().values() if each.scenario.family == family]
    other = next((each for each in found if each.scenario.family != family), None)
    if other is not None:
        hint = f"inspect eval localsim/{other.scenario.family}" if other.scenario.family else "localsim run plays it"
        raise InvalidInput(f"{other.scenario.id} is no scenario of {family}", where=other.path, hint=hint)
    return {each.scenario.id: each for each in found}


# ---- playing --------------------------------------------------------------------------------------------------------


def _talk(chosen: Mapping[str, LoadedScenario], mode: Mode, seed: int) -> Any:
    async def solve(state: Any, generate: Any) -> Any:  # noqa: ARG001 - Inspect's signature
        scenario = chosen[str(state.sample_id)].scenario
        played = roles(mode, scenario.names)
        spec = EpisodeSpec(
            scenario=scenario,
            mode=mode,
            models=dict.fromkeys(played, str(state.model)),
            layouts=dict.fromkeys(played, DEFAULT),
            index=state.epoch - 1,
            run_seed=seed,
            sampling=_SAMPLING,
            rules=rules_of(scenario, state.epoch - 1),
            encode=encode_of(scenario),
        )
        turns: list[Turn] = []
        try:
            await _play(spec, turns)
        except MalformedReply as error:
            state.store.set(FAILED, error.message)
        state.store.set(TURNS, [asdict(turn) for turn in turns])
        state.messages = [_shown(turn, scenario.names[0]) for turn in turns]
        if turns:
            state.output.completion = turns[-1].line
        return state

    return solve


async def _play(spec: EpisodeSpec, turns: list[Turn]) -> None:
    """Add the turns of an episode to `turns`. Raises MalformedReply, as the mode does."""
    play = MODES[spec.mode](spec)
    try:
        step = next(play)
        while True:
            if isinstance(step, Ask):
                step = play.send(await _written(step.request))
                continue
            if isinstance(step, Say):
                turns.append(step.turn)
            assert isinstance(step, Say | Reject), "a mode yields nothing else"
            step = next(play)
    except StopIteration:
        return


async def _written(request: Request) -> Generation:
    """Ask the model of a role for a text. Its messages are those of this agent alone."""
    model = get_model(role=request.speaker)
    config = GenerateConfig(seed=request.seed, max_tokens=request.max_tokens)
    output = await model.generate([_said(message) for message in server_messages(request)], config=config)
    return generation_of(request, output.completion, cut=output.stop_reason in _LIMITS, model=str(model))


def _said(message: Message) -> Any:
    return _ROLES[message.role](content=message.content)


def _shown(turn: Turn, first: str) -> Any:
    """Return a turn as a message of the log: the first agent is the user."""
    role = "system" if turn.told else "user" if turn.speaker == first else "assistant"
    return _ROLES[role](content=turn.line, metadata={"turn": turn.index, "speaker": turn.who})


# ---- scoring --------------------------------------------------------------------------------------------------------


def _outcome(chosen: Mapping[str, LoadedScenario], family: str, mode: Mode) -> Any:
    known = tuple(dict.fromkeys(measure.score for measure in FAMILIES[family].measures))

    async def score(state: Any, target: Any) -> Any:  # noqa: ARG001 - Inspect's signature
        failed = state.store.get(FAILED)
        if failed:
            return Scored.unscored(reason="invalid_response_format", explanation=failed)
        loaded = chosen[str(state.sample_id)]
        talk = Transcript(tuple(_turn(row) for row in state.store.get(TURNS)))
        subject = Subject("", loaded.scenario, loaded.answer, mode, state.epoch - 1, 0, talk)
        scores = Outcome(FAMILIES[family]).evaluation(subject).scores
        value = {name: _value(name, scores) for name in known}
        return Scored(value=value, explanation=_reasons(scores), metadata={"scores": [asdict(each) for each in scores]})

    return score


def _turn(row: Mapping[str, Any]) -> Turn:
    action = row["action"]
    values = None if action["values"] is None else tuple(action["values"])
    readers = None if row["readers"] is None else tuple(row["readers"])
    return Turn(**{**row, "action": Action(action["type"], action["text"], values), "readers": readers})


def _value(name: str, scores: tuple[Score, ...]) -> float:
    """Return a score, the mean of the agents' where each has its own; NaN, which Inspect leaves out, without one."""
    found = [score.value for score in scores if score.name == name and score.value is not None]
    return sum(found) / len(found) if found else math.nan


def _reasons(scores: tuple[Score, ...]) -> str:
    return "\n".join(f"{score.name}: {score.reason}" for score in scores if score.reason)


TASKS = {family: task(name=family)(_task_of(family)) for family in (*FAMILIES.own, *FAMILIES.games)}
"""The tasks by name; Inspect finds them as localsim/NAME."""
