"""Which scenarios of a run are variants or castings of one, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence

from localsim.store.database import Store


def stories(store: Store, *runs: str) -> dict[str, str]:
    """Hash of each scenario -> what it is a variant or casting of; its own id if it is neither."""
    return store.pairs(
        "SELECT DISTINCT s.scenario_hash, coalesce(answer_json ->> '$.parameters.situation', CASE "
        "WHEN answer_json ->> '$.parameters.variant' IS NULL THEN s.scenario_id "
        "ELSE regexp_replace(s.scenario_id, '-\\d+$', '') END) AS story "
        "FROM scenarios s JOIN episodes e USING (scenario_hash) WHERE list_contains(?, e.run_id)",
        [list(runs)],
    )


def only_title(store: Store, run_id: str) -> str:
    """The title of the only scenario of a run, or the id of the only file whose variants it has; "" for all others."""
    found = stories(store, run_id)
    if len(set(found.values())) != 1:
        return ""
    if len(found) > 1:
        return next(iter(found.values()))
    return str(store.column("SELECT title FROM scenarios WHERE scenario_hash = ?", list(found))[0])


def changed_scenarios(store: Store, runs: Sequence[str]) -> list[str]:
    """The ids of scenarios that have different texts in these runs."""
    return store.column(
        "SELECT scenario_id FROM scenarios JOIN episodes e USING (scenario_hash) WHERE list_contains(?, e.run_id) "
        "GROUP BY 1 HAVING count(DISTINCT scenario_hash) > 1 ORDER BY 1",
        [list(runs)],
    )
