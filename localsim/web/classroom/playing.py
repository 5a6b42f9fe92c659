"""The talks of a class, and the bets that are stored beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from localsim.backends.base import Backend
from localsim.backends.open import open_backends
from localsim.backends.person import NAME
from localsim.backends.scripted import PREFIX as FALLBACK
from localsim.conversation.episode import EpisodeSpec, Mode
from localsim.conversation.scenario import Scenario
from localsim.families import rules_of
from localsim.runs.plan import Plan, by_role, layouts_of, sampling_of
from localsim.store.records import AnswerRow
from localsim.web.classroom.ledger import Opening
from localsim.web.classroom.replaying import PREFIX, EarlierClass, decisions_of, is_earlier, told
from localsim.web.classroom.seats import MODES, Seat, Talk
from localsim.web.classroom.talks import Talks, Terms

if TYPE_CHECKING:
    from localsim.web.classroom.floor import Live
    from localsim.web.classroom.hall import Hall

TASK = "bet"
"""The task of annotations that are bets."""


def spec_of(scenario: Scenario, talk: Talk, opening: Opening) -> EpisodeSpec:
    """The episode of a talk."""
    models = {name: NAME if name in talk.people else opening.computer for name in scenario.names}
    rules = rules_of(scenario, talk.index)
    return EpisodeSpec(
        scenario, talk.mode, models, index=talk.index, run_seed=opening.seed, sampling=sampling_of(opening.computer),
        layouts=by_role(layouts_of(models.values()), models), rules=rules, edition=opening.edition,
    )  # fmt: skip


class Playing(Talks):
    """Lets the talks of a hall run."""

    def __init__(self, hall: Hall, say: Callable[[str], None]) -> None:
        opening = self._opening = hall.opening
        self._hall = hall
        names = (name for loaded in hall.scenarios for name in loaded.scenario.names)
        plan = Plan(
            hall.scenarios, MODES, model=opening.computer, roles=dict.fromkeys(names, NAME), seed=opening.seed,
            edition=opening.edition,
        )  # fmt: skip
        specs = [
            spec_of(loaded.scenario, Talk(0, place, mode, 0, {}), opening)
            for place, loaded in enumerate(hall.scenarios)
            for mode in MODES
        ]
        super().__init__(hall, Terms("class", plan, [opening.computer], specs), say)

    def keep_best(self, seat: Seat, live: Live, best: Mode) -> None:
        """Have a bet stored in the database soon; the ledger has it already. Only under the lock of the hall."""
        self.keep(self._row(seat, live, {"best": best}))

    def keep_saw(self, seat: Seat, read: Live, saw: bool) -> None:
        """The same for a bet on what the players of a talk saw."""
        self.keep(self._row(seat, read, {"saw": saw}))

    @contextmanager
    def _opened(self) -> Iterator[dict[str, Backend]]:
        """Open the player that takes the seats without a person."""
        name = self._opening.computer
        if not is_earlier(name):
            with super()._opened() as backends:
                yield backends
            return
        run_id = name.removeprefix(PREFIX)
        decisions = decisions_of(self._floor.store, run_id)
        with open_backends([FALLBACK], self._needs(), self._say) as backends:
            yield {
                name: EarlierClass(
                    run_id, decisions, self._hall.scenarios, backends[FALLBACK], self._by_spec.__getitem__
                )
            }

    def _is_quick(self, model: str) -> bool:
        return is_earlier(model) or super()._is_quick(model)

    def _search(self) -> None:
        if is_earlier(self._opening.computer):
            self._say(told(self._floor.store, self._floor.run_id))
        super()._search()

    def _keep_again(self) -> None:
        for seat in self._hall.register.seats.values():
            for talk, bet in seat.bets.items():
                if bet.best is not None:
                    self.keep_best(seat, self._hall.live[talk], bet.best)
                if bet.about is not None and bet.saw is not None:
                    self.keep_saw(seat, self._hall.live[bet.about], bet.saw)

    def _row(self, seat: Seat, live: Live, value: Mapping[str, Any]) -> AnswerRow:
        return AnswerRow(
            task=TASK,
            item_id=live.episode_id,
            rater=f"seat_{seat.number:02d}",
            run_id=self._opening.run_id,
            value_json=json.dumps(value),
            shown_json=json.dumps({"1": live.episode_id}),
            attention=False,
            origin="browser",
            seconds=None,
            created_utc=datetime.now(UTC).replace(tzinfo=None),
        )
