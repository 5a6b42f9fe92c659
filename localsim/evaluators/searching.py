"""Searches of stored runs for leaks: by given thresholds, or by those that the run asks for.

A run keeps its thresholds: those of its last search, else those that `localsim run --weights` was given. So a later
`localsim score` for a judge, or a resume, does not change them. Their whole file is in the database.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from localsim.errors import InvalidInput
from localsim.evaluators.evaluate import Notify, score_runs
from localsim.evaluators.leaks import Leaks
from localsim.leakage.detector import BUILT_IN, Weights
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.store.queries import scoring as queries
from localsim.store.queries.runs import run_row


def search(
    store: Store,
    runs: Sequence[str],
    say: Notify,
    weights: Weights | None = None,
    only: Collection[Condition] | None = None,
    share: float | None = None,
) -> int:
    """Search completed episodes for leaks; return how many were searched now and not before.

    `weights` replace those that the runs ask for. `only` are the conditions whose episodes are searched. `share` is the
    share of false alarms to allow, if it is another than these weights have. Raises InvalidInput as `Weights.at` does.
    """
    groups: dict[str, tuple[Weights, list[str]]] = {}
    with store.held() as reads:
        for run_id in runs:
            chosen = (weights or weights_of(reads, run_id)).at(share)
            groups.setdefault(chosen.hash, (chosen, []))[1].append(run_id)
    count = 0
    for chosen, members in groups.values():
        evaluator = Leaks(store, weights=chosen)
        count += score_runs(store, members, [evaluator], say, only)[evaluator.name]
    return count


def weights_of(store: Store, run_id: str) -> Weights:
    """Return the weights that a run asks for. Raises InvalidInput if they do not fit this version of the detector."""
    last = queries.last_search(store, run_id)
    if last is not None:
        name: str = last[0].rpartition(" ")[0]
        text: str | None = last[1]
    else:
        plan = json.loads(run_row(store, run_id)["plan_json"])
        name, _, content_hash = str(plan.get("weights", "")).rpartition(" ")
        text = queries.content(store, content_hash) if name else None
    if not name or text is None:
        return Weights.read()
    try:
        return Weights.parse(text, name, f"thresholds {name} of run {run_id}")
    except InvalidInput as error:
        hint = f"localsim score {run_id} --weights FILE with a file fitted again, or --weights {BUILT_IN}"
        raise InvalidInput(error.message, where=error.where, hint=hint) from error
