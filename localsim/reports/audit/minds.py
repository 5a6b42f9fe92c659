"""What agents with minds write and do not say: nobody else may read it, in any mode."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.conversation.minds.wording import SAID
from localsim.conversation.rules.lines import SEPARATOR
from localsim.conversation.wording.wordings import listed
from localsim.reports.audit.texts import leaves
from localsim.store.database import Store
from localsim.store.queries import runs as queries
from localsim.store.queries.runs import Prompt


@dataclass(frozen=True)
class Minds:
    """What was written before a prompt."""

    own: tuple[str, ...] = ()
    """By its viewer, with the fixed wording of the viewer's steps. A line that is said later counts: it may be in a
    question about drafts first.
    """
    others: tuple[tuple[str, str], ...] = ()
    """(agent, text) by the others, of what they did not say."""


NO_MINDS = Minds()


class Thoughts:
    """What the agents with minds have written so far, and the wording of their steps."""

    def __init__(self, minded: Collection[tuple[str, str]], minds: Iterable[Any]) -> None:
        """`minded` are (episode, agent) with a mind, and `minds` are the settings of these."""
        self._minded = minded
        self._wording = [*SAID, *(text for mind in minds for text in (*leaves(mind), *_listed(mind)))]
        self._found: dict[str, list[tuple[str, str, bool]]] = defaultdict(list)

    @classmethod
    def of_run(cls, store: Store, run_id: str, rows: Sequence[Prompt]) -> Thoughts:
        """Return those of a run before its first prompt."""
        minded = {(row.episode_id, row.speaker) for row in rows if row.step}
        identities = json.loads(queries.run_row(store, run_id)["models_json"]).values() if minded else ()
        return cls(minded, [each.get("mind") for each in identities])

    def add(self, episode: str, speaker: str, reply: str, *, said: bool) -> None:
        """Add the reply to a prompt, if an agent with a mind wrote it; `said`: a turn says it."""
        if reply and (episode, speaker) in self._minded:
            self._found[episode].append((speaker, reply, said))

    def before(self, episode: str, speaker: str, names: Sequence[str]) -> Minds:
        """Return what was written before a prompt, from the view of its speaker; `names` are those of all agents."""
        found = self._found[episode]
        own = [text for name, text, _ in found if name == speaker]
        others = listed([name for name in names if name != speaker])
        minded = (episode, speaker) in self._minded
        wording = (text.replace("{name}", speaker).replace("{others}", others) for text in self._wording if minded)
        return Minds(
            (*wording, *own), tuple((name, text) for name, text, said in found if name != speaker and not said)
        )


def _listed(value: Any) -> Iterator[str]:
    """Yield the keys of nested mappings as a question lists them, such as the acts of a table."""
    if isinstance(value, dict):
        yield SEPARATOR.join(value)
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from _listed(item)
