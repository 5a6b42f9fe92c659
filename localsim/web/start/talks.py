"""What the pages of a run in three modes show: plain values, from the run in progress or from the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.backends.open import is_scripted
from localsim.conversation.episode import MODES
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Turn
from localsim.conversation.wording.wordings import counted
from localsim.errors import InvalidInput
from localsim.models.registry import labelled
from localsim.reports.evidence import marks
from localsim.runs import words
from localsim.store.database import Store
from localsim.store.episodes import stored_scenario
from localsim.store.journal import is_written
from localsim.store.queries import pages as page_queries
from localsim.store.queries.pages import RunRow
from localsim.web import view_data
from localsim.web.start.work import GOING, Phase, Work

_OFFERED = 5
"""Most interrupted runs that are offered to be resumed."""


@dataclass(frozen=True)
class WatchedTalk:
    """One of the three talks."""

    mode: str
    turns: Sequence[view_data.ShownTurn]
    state: str
    """What happens in it, or how it ended, in a sentence."""
    going: bool = False
    marked: view_data.MarkedEpisode | None = None
    """The stored talk with its verdict and marks, once every talk is over."""


@dataclass(frozen=True)
class Watched:
    """A run as its page shows it."""

    work: Work
    phase: Phase
    """The one that was read once: the thread may enter the next at any moment, and a page must not mix two."""
    talks: Sequence[WatchedTalk]
    notes: Sequence[str]
    progress: str = ""
    """How far it is, in a sentence."""
    share: float | None = None
    """How far it is, from 0 to 1; None where that is unknown."""

    @property
    def going(self) -> bool:
        """True while a thread works on it."""
        return self.phase in GOING

    @property
    def scripted(self) -> bool:
        """True if no language model writes."""
        return self.work.paced

    @property
    def searched(self) -> bool:
        """True if leaks have been looked for in every talk that was completed."""
        talks = [talk.marked for talk in self.talks if talk.marked and talk.marked.episode.status == "completed"]
        return all(marked.scored_for_leaks for marked in talks)

    @property
    def answer(self) -> str:
        """Which talks do not play, when each reached its goal, and which have untold hits; '' until all three are
        completed.
        """
        marked = {talk.mode: talk.marked for talk in self.talks if talk.marked}
        done = {mode: each for mode, each in marked.items() if each.episode.status == "completed" and each.verdict}
        if self.phase != "finished" or len(done) < len(MODES):
            return ""
        faults = [
            f"{mode} ({score['label']})"
            for mode, each in done.items()
            for score in each.episode.scores
            if score["name"] == "plays" and score["value"] == 0
        ]
        sentences = [f"Talks that do not play: {', '.join(faults)}."] if faults else []
        for right, said in ((True, "Goal reached"), (False, "Goal missed")):
            parts = [
                f"{mode} after {counted(len(each.episode.transcript.acts), 'turn')}"
                for mode, each in done.items()
                if each.verdict and each.verdict.right is right
            ]
            sentences += [f"{said}: {', '.join(parts)}."] if parts else []
        hits = [f"{each.hits} in {mode}" for mode, each in done.items() if each.hits]
        sentences += [f"Untold hits: {', '.join(hits)}."] if hits else []
        sentences += ["One talk in each mode cannot tell a difference from chance."] if not self.scripted else []
        return " ".join(sentences) if len(sentences) > (not self.scripted) else ""


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes"


# ---- a run as its page shows it ------------------------------------------------------------------------------------


def watched(work: Work, phase: Phase, store: Store) -> Watched:
    """The page of a run in a phase: of one that this server works on, or of one in the database."""
    if phase == "searching" and not work.marked:
        work.marked = _over(_marked(store, work.run_id))
    with work.lock:
        turns = {mode: list(work.turns.get(mode, ())) for mode in MODES}
        over, notes = dict(work.over), list(work.notes)
    said = sum(map(len, turns.values()))
    return Watched(
        work,
        phase,
        [_column(work, phase, mode, turns[mode], over.get(mode)) for mode in MODES],
        notes[-3:],
        _forecast(work) if phase == "ready" else _progress(work, phase, len(over), said),
        _share(work, phase, len(over), said),
    )


def _column(work: Work, phase: Phase, mode: str, turns: Sequence[Turn], ended: str | None) -> WatchedTalk:
    marked = work.marked.get(mode)
    count = len(marked.episode.transcript.acts) if marked else len(turns)
    if ended is not None:
        state = f"Over after {counted(count, 'turn')}: {words.STOPS.get(ended, ended)}."
    elif phase in ("finished", "stopped"):
        state = f"Stopped after {counted(count, 'turn')}." if marked else "This talk has not begun."
    else:
        state = _waits(mode, phase, count)
    shown = marked.turns if marked else _plain(work.scenario, turns)
    return WatchedTalk(mode, shown, state, phase == "talking" and ended is None, marked)


def _plain(scenario: Scenario, turns: Sequence[Turn]) -> list[view_data.ShownTurn]:
    colours, shown = marks.colours(scenario.names), []
    for turn in turns:
        row = {"turn": turn.index, "speaker": turn.who, "action": turn.doing, "text": turn.action.text}
        shown.append(view_data.ShownTurn(row, colours.get(turn.speaker, 7), (), (), ()))
    return shown


def _marked(store: Store, run_id: str) -> dict[str, view_data.MarkedEpisode]:
    with store.held() as held:
        found = [view_data.marked_episode(held, each) for each in page_queries.episode_ids(held, run_id)]
    return {marked.episode.mode: marked for marked in found}


def _over(marked: Mapping[str, view_data.MarkedEpisode]) -> dict[str, view_data.MarkedEpisode]:
    """The talks that are over; {} as long as one of the three is not."""
    over = {mode: each for mode, each in marked.items() if each.episode.status != "interrupted"}
    return over if len(over) == len(MODES) else {}


def _waits(mode: str, phase: Phase, turns: int) -> str:
    if phase != "talking":
        return "" if turns else "No turn yet."
    if mode == "script":
        return "The author writes the whole talk as one text. It appears when it is complete."
    return "The next turn is being written." if turns else "The players read what they know."


def _progress(work: Work, phase: Phase, over: int, turns: int) -> str:
    gone = duration(work.seconds)
    if work.stopping.is_set() and phase in ("measuring", "loading", "talking"):
        return f"It stops as soon as the current step is done ({gone}). Nothing that was said is lost."
    if phase == "measuring":
        return f"The speed of the model is measured; this takes seconds, or minutes if the computer is busy ({gone})."
    if phase == "loading":
        return f"The players get ready ({gone})." if work.paced else f"The model is loaded ({gone})."
    said = f"{over} of {len(MODES)} talks are over, {counted(turns, 'turn')} so far, {gone} gone"
    if phase == "talking" and work.forecast:
        most = work.forecast.high * 60
        said += f" of about {duration(work.forecast.minutes * 60)}"
        said += "; it takes longer than forecast" if work.seconds > most else ""
    if phase == "searching":
        return f"{said}. Leaked facts are looked for; this takes up to a minute. The talks are stored."
    return f"{said}."


def _share(work: Work, phase: Phase, over: int, turns: int) -> float | None:
    if phase not in ("talking", "searching"):
        return None
    by_talks = over / len(MODES)
    if work.forecast is None or not work.forecast.turns:
        return by_talks
    return max(by_talks, min(0.97, turns / work.forecast.turns))


def _forecast(work: Work) -> str:
    found = work.forecast
    if found is None:
        return "There is no forecast for this model."
    return (
        f"About {duration(found.minutes * 60)} ({duration(found.low * 60)} to {duration(found.high * 60)}) for about "
        f"{found.turns:.0f} turns, from the speed measured now and {found.based_on}. After that, leaked facts are "
        "looked for, which takes up to a minute."
    )


# ---- in the database -----------------------------------------------------------------------------------------------


def is_startable(plan: Mapping[str, Any]) -> bool:
    """Return True for the plan of a run that these pages can show and resume: one talk in each of the three modes."""
    once = plan.get("episodes") == 1 and len(plan["scenarios"]) == 1 and plan.get("perturb", 0) < 2
    return bool(once and list(plan["modes"]) == list(MODES) and not plan["roles"] and not plan.get("see"))


def unfinished(store: Store) -> list[tuple[RunRow, str, str]]:
    """The newest runs in three modes that were interrupted, each with the title of its scenario and its model."""
    if not store.path.is_file():
        return []
    found: list[tuple[RunRow, str, str]] = []
    with store.held() as held:
        for row in page_queries.newest_runs(held):
            if len(found) == _OFFERED or row.status == "finished" or is_written(store.path, row.run_id):
                continue
            plan = json.loads(row.plan_json)
            if is_startable(plan):
                found.append((row, stored_scenario(held, plan["scenarios"][0]).scenario.title, plan["model"]))
    return found


def stored(store: Store, run_id: str) -> Work:
    """The work of a run in the database, so that it can be shown and resumed.

    Raises InvalidInput for a run that is not one talk in each of three modes.
    """
    row = page_queries.run_of(store, run_id)
    plan = json.loads(row.plan_json)
    if not is_startable(plan):
        hint = "open it from the list of runs"
        raise InvalidInput(f"run {run_id} is not one talk in each of the three modes", hint=hint)
    marked = _marked(store, run_id)
    talks = {mode: each.episode for mode, each in marked.items()}
    work = Work(
        stored_scenario(store, plan["scenarios"][0]).scenario,
        plan["model"],
        row.seed,
        None,
        "finished" if row.status == "finished" else "stopped",
        run_id,
        turns={mode: list(each.transcript.turns) for mode, each in talks.items()},
        over={
            mode: each.error or each.stop_reason or "" for mode, each in talks.items() if each.status != "interrupted"
        },
        marked=marked,
    )
    if row.status != "finished" and is_written(store.path, run_id):
        work.problem, work.hint = "another localsim process is writing it", "wait until that process has ended"
    return work


# ---- sentences -----------------------------------------------------------------------------------------------------


def names_of(model: str) -> str:
    """Say who plays, for people who know no names of models."""
    if not is_scripted(model):
        return f"the model {labelled(model, whole=False)}"
    return "scripted players who use all that they see" if model.endswith(":omniscient") else "scripted players"
