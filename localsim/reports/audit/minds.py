"""What agents with minds write and do not say: nobody else may read it, in any mode."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from localsim.conversation.minds.wording import SAID
from localsim.reports.audit.texts import leaves
from localsim.store.database import Store
from localsim.store.queries import runs as queries
from localsim.store.queries.runs import Prompt


@dataclass(frozen=True)
class Minds:
    """What was written before a prompt and not said."""

    own: tuple[str, ...] = ()
    """By its viewer, with the fixed wording of the viewer's steps."""
    others: tuple[tuple[str, str], ...] = ()
    """(agent, text) by the others."""


NO_MINDS = Minds()


class Thoughts:
    """What the agents of a run have written and not said so far, and the wording of their steps."""

    def __init__(self, store: Store, run_id: str, rows: Sequence[Prompt]) -> None:
        self._minded = {(row.episode_id, row.speaker) for row in rows if row.step}
        identities = json.loads(queries.run_row(store, run_id)["models_json"]).values() if self._minded else ()
        self._wording = [*SAID, *(text for each in identities for text in leaves(each.get("mind")))]
        self._found: dict[str, list[tuple[str, str]]] = defaultdict(list)

    def add(self, row: Prompt) -> None:
        """Add the reply to a prompt, if an agent with a mind wrote it and no turn says it."""
        if row.unsaid and (row.episode_id, row.speaker) in self._minded:
            self._found[row.episode_id].append((row.speaker, row.unsaid))

    def before(self, row: Prompt) -> Minds:
        """Return the thoughts before a prompt, from the view of its speaker."""
        found = self._found[row.episode_id]
        own = [text for name, text in found if name == row.speaker]
        wording = self._wording if (row.episode_id, row.speaker) in self._minded else ()
        return Minds((*wording, *own), tuple(each for each in found if each[0] != row.speaker))
