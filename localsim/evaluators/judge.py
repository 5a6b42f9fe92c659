"""A language model as judge: Sotopia's seven dimensions (arXiv 2310.11667, section 3), and how far to trust them.

The judge sees everything, gives its reason before its score, and is bound by a grammar. Its numbers are kept apart by
model, and `reliability` says beside them whether they follow what can be verified: a small judge's do not.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Sampling, Score, derive_seed
from localsim.conversation.exchange import Message, Request
from localsim.conversation.scenario import Scenario
from localsim.evaluators.asking import Case, Result, Say, answers, judgement_events, open_judge, room_to_think, text_of
from localsim.evaluators.verdicts import Verdict
from localsim.leakage.accuracy import auroc
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode
from localsim.store.journal import Event
from localsim.store.records import score_events

VERSION = "3"
Row = dict[str, Any]

DIMENSIONS: dict[str, tuple[int, int, str]] = {
    "goal": (0, 10, "How far did {name} reach the goal? 0: not at all, 10: completely."),
    "believability": (0, 10, "How natural is {name}, and how true to the role? 0: not at all, 10: like a real person."),
    "relationship": (
        -5,
        5,
        "What did the talk do to {name}'s ties and standing? -5: ruined, 0: nothing, 5: much better.",
    ),
    "knowledge": (0, 10, "How much that is new and important did {name} learn? 0: nothing, 10: very much."),
    "secret": (-10, 0, "Did {name} keep what should stay secret? 0: kept it, -10: told everything."),
    "social_rules": (-10, 0, "Did {name} break laws or manners? 0: never, -10: badly."),
    "financial": (
        -5,
        5,
        "What did {name} gain or lose in money or things? -5: a great loss, 0: nothing, 5: a great gain.",
    ),
}
"""Lowest score, highest score, question."""
START = "Reason:"
SPREAD = 0.7
"""Temperature where a judge is asked several times: how far its answers then lie apart is what is wanted."""
_SYSTEM = (
    "You judge a conversation. Read it, then answer the question about one person in two lines.\n"
    "Reason: one short sentence\nScore: a number"
)


@dataclass(frozen=True)
class Question:
    """One dimension of one agent, asked for the n-th time."""

    case: Case
    request: Request

    def read(self, result: Result) -> tuple[int, str] | None:
        """Score and reason of a reply to it; None where there are none."""
        low, high, _ = DIMENSIONS[self.case.name]
        text = text_of(result)
        return None if text is None else Verdict(low, high).read(text)


def judge_run(store: Store, run_id: str, model: str, say: Say, samples: int = 1) -> int:
    """Let a model judge every completed episode that it has not judged yet; return how many those were.

    Nothing is simulated again. Raises ModelMissing or BackendUnavailable as a run does.
    """
    evaluator = evaluator_of(model)
    ids = [
        row["episode_id"]
        for row in store.rows(
            "SELECT episode_id FROM episodes WHERE run_id = ? AND status = 'completed' AND episode_id NOT IN "
            "(SELECT episode_id FROM scores WHERE evaluator = ? AND version = ?) ORDER BY 1",
            [run_id, evaluator, VERSION],
        )
    ]
    if not ids:
        return 0
    episodes = [load_episode(store, episode_id) for episode_id in ids]
    with open_judge(model, say) as backend:
        think = room_to_think(backend, say)
        for number, episode in enumerate(episodes, start=1):
            asked = list(questions(episode, samples, think))
            replies = list(zip(asked, answers(backend, [question.request for question in asked]), strict=True))
            kept = _kept(evaluator, replies)
            if any(text_of(result) is None for _, result in replies):
                store.take_in(kept)
                say(f"{episode.episode_id}: some replies could not be had; it is judged when you score again")
                continue
            store.take_in([*kept, *events_of(episode.episode_id, evaluator, replies)])
            say(f"judged {number} of {len(episodes)} episodes")
    return len(episodes)


def evaluator_of(model: str) -> str:
    """The name under which a judge's scores are kept."""
    return f"judge.{model}"


def questions(episode: StoredEpisode, samples: int, think: int = 0) -> Iterator[Question]:
    """Every dimension of every agent, `samples` times. Prompts about one talk share all but their last lines."""
    talk = _talk(episode)
    sampling = Sampling(temperature=0.0 if samples == 1 else SPREAD)
    for agent in episode.scenario.names:
        for dimension, (low, high, question) in DIMENSIONS.items():
            for sample in range(samples):
                asked = f"{talk}\n\nQuestion about {agent}: {question.format(name=agent)}"
                request = Request(
                    session=f"{episode.episode_id}/{agent}/{dimension}/{sample}",
                    speaker="judge",
                    turn=0,
                    attempt=0,
                    messages=(Message("system", _SYSTEM), Message("user", asked)),
                    prefill=START,
                    seed=derive_seed("judge", episode.seed, agent, dimension, sample),
                    max_tokens=120,
                    sampling=sampling,
                    form=Verdict(low, high),
                    heard=(),
                    observation=None,
                    think=think,
                )
                yield Question(Case(episode.episode_id, dimension, agent, sample), request)


def _talk(episode: StoredEpisode) -> str:
    scenario: Scenario = episode.scenario
    lines = [f"Setting: {scenario.setting}"]
    for agent in scenario.agents:
        lines.append(f"{agent.name}'s goal: {agent.goal}")
        if agent.secret:
            lines.append(f"{agent.name}'s secret: {agent.secret}")
    lines += ["", "Conversation:"]
    lines += [turn.line for turn in episode.transcript.turns]
    return "\n".join(lines)


def _kept(evaluator: str, replies: Sequence[tuple[Question, Result]]) -> list[Event]:
    """Every prompt and reply, for the database."""
    return [
        event
        for question, result in replies
        for event in judgement_events(
            question.case, evaluator, VERSION, question.request, result, readable=question.read(result) is not None
        )
    ]


def events_of(episode_id: str, evaluator: str, replies: Sequence[tuple[Question, Result]]) -> list[Event]:
    """Scores by agent and dimension (the mean of what could be read), their spread, and the mean of the dimensions."""
    scores: list[Score] = []
    malformed = 0
    by_agent: dict[str, list[float]] = {}
    verdicts: dict[tuple[str, str], list[tuple[int, str] | None]] = {}
    for question, result in replies:
        verdicts.setdefault((question.case.agent, question.case.name), []).append(question.read(result))
    for (agent, dimension), given in verdicts.items():
        read = [verdict for verdict in given if verdict is not None]
        malformed += len(given) - len(read)
        if not read:
            scores.append(Score(dimension, None, agent=agent, reason="no reply could be read"))
            continue
        value = statistics.fmean(number for number, _ in read)
        by_agent.setdefault(agent, []).append(value)
        scores.append(Score(dimension, value, agent=agent, reason=read[0][1]))
        if len(read) > 1:
            low, high, _ = DIMENSIONS[dimension]
            spread = statistics.stdev(number for number, _ in read) / (high - low)
            scores.append(Score(f"{dimension}_spread", spread, agent=agent, reason="of its range, between samples"))
    scores += [
        Score("overall", statistics.fmean(values), agent=agent, reason="mean of the dimensions")
        for agent, values in by_agent.items()
    ]
    scores.append(Score("malformed_judgements", malformed / len(replies)))
    return score_events(episode_id, evaluator, VERSION, scores)


def reliability(store: Store, run_id: str) -> list[Row]:
    """For each judge: means by mode, whether its goal score follows the verifiable outcome, and its own consistency."""
    rows = store.rows(
        "SELECT j.evaluator, j.mode, j.episode_id, avg(j.value) FILTER (j.name = 'goal') AS goal, "
        "avg(j.value) FILTER (j.name = 'overall') AS overall, "
        "avg(j.value) FILTER (suffix(j.name, '_spread')) AS spread, any_value(o.value) AS success "
        "FROM v_scores j LEFT JOIN (SELECT episode_id, value FROM v_scores WHERE name = 'success' AND newest) o "
        "ON o.episode_id = j.episode_id WHERE j.run_id = ? AND j.newest AND starts_with(j.evaluator, 'judge.') "
        "GROUP BY j.evaluator, j.mode, j.episode_id ORDER BY ALL",
        [run_id],
    )
    return [_judge(name, [row for row in rows if row["evaluator"] == name]) for name in dict.fromkeys(
        row["evaluator"] for row in rows
    )]  # fmt: skip


def _judge(name: str, rows: list[Row]) -> Row:
    import numpy as np

    known = [row for row in rows if row["success"] is not None and row["goal"] is not None]
    truth = np.array([row["success"] > 0.5 for row in known], dtype=bool)
    follows = auroc(truth, np.array([row["goal"] for row in known])) if known else None
    spreads = [row["spread"] for row in rows if row["spread"] is not None]
    return {
        "judge": name.removeprefix("judge."),
        "n": len(rows),
        "goal_by_mode": {
            mode: statistics.fmean(values)
            for mode in dict.fromkeys(row["mode"] for row in rows)
            if (values := [row["goal"] for row in rows if row["mode"] == mode and row["goal"] is not None])
        },
        "goal_auroc": follows,
        "goal_auroc_n": len(known),
        "spread": statistics.fmean(spreads) if spreads else None,
        "warning": _warning(follows, len(known)),
    }


def _warning(follows: float | None, n: int) -> str | None:
    if follows is None:
        return "its goal scores could not be held against an outcome: no talks that succeed and others that fail"
    if follows < 0.6:
        return f"its goal scores are no better than chance (AUROC {follows:.2f} over {n} talks): do not use them"
    return f"AUROC {follows:.2f} rests on {n} talks only" if n < 50 else None
