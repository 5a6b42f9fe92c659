"""Two reporting checklists, filled in as far as a run knows the answers.

GUIDE-LLM (https://llm-checklist.com): its 14 core items for studies with language models in the behavioural sciences.
PIMMUR (Zhou et al., arXiv 2509.18052): six requirements on simulations of societies of language models. An item that
only the authors can answer is None and says so where people read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from localsim.conversation.episode import SINGLE_AUTHOR
from localsim.reports.document import Report, Run

OPEN = "to be stated by the authors"


class Item(NamedTuple):
    """One item of a checklist."""

    checklist: str
    name: str
    answer: str | None
    """None if only the authors know it."""


def items(data: Report, card: Mapping[str, Any], authors: Mapping[str, Any]) -> list[Item]:
    """Return all items. `data` is the report, `card` its simulation card, `authors` the fields that people fill in."""
    return [*_guide_llm(data, card, authors), *_pimmur(data, card)]


def as_json(found: Sequence[Item]) -> dict[str, dict[str, str | None]]:
    """Return checklist -> item -> answer."""
    checklists: dict[str, dict[str, str | None]] = {}
    for item in found:
        checklists.setdefault(item.checklist, {})[item.name] = item.answer
    return checklists


def _guide_llm(data: Report, card: Mapping[str, Any], authors: Mapping[str, Any]) -> list[Item]:
    run = data.run
    models = run.models.values()
    answers = {
        "A.1 use of language models": "they simulate conversations between agents; localsim scores the conversations",
        "A.2 people in the loop": _people(data, card),
        "B.1 models": "; ".join(map(_model, models)) + f"; run on {run.started_utc[:10]}",
        "B.2 access": _access({model["kind"] for model in models}),
        "B.3 parameters": _parameters(run),
        "B.4 fine-tuning": "; ".join(card["simulation_details"]["agent_types"].values()),
        "B.5 state between calls": "none: each prompt holds all that the model knows",
        "C.1 prompts": "stored word for word in the database (v_generations, table contents)",
        "C.2 system instructions": "stored with the prompts, as their first message",
        "D.1 personal data": authors.get("personal_data"),
        "E.1 human validation": _validation(data),
        "E.2 filtering and processing": _processing(data),
        "F.1 code": f"{card['simulation_details']['platform']}; the report prints the command that repeats the run",
        "G.1 funding": authors.get("funding"),
    }
    return [Item("GUIDE-LLM", name, answer) for name, answer in answers.items()]


def _pimmur(data: Report, card: Mapping[str, Any]) -> list[Item]:
    details = card["simulation_details"]
    profiles = "agent profiles" in details["other_features"]
    modes = [name for name in details["information_asymmetry"] if name not in SINGLE_AUTHOR]
    single = [name for name in details["information_asymmetry"] if name in SINGLE_AUTHOR]
    answers = {
        "Profile": "agents have profiles of their own" if profiles else "agents have no profiles",
        "Interaction": (
            f"{', '.join(modes)}: agents answer each other turn by turn" if modes else "one model writes all agents"
        )
        + (f"; {', '.join(single)}: one model writes all agents" if single and modes else ""),
        "Memory": ", ".join(feature for feature in details["other_features"] if feature.startswith("memory")),
        "Minimal control": "instructions name the goal and the form of a turn, and no strategy or outcome",
        "Unawareness": "prompts do not name the measures or the hypothesis; whether a model infers them is not tested",
        "Realism": _realism(data),
    }
    return [Item("PIMMUR", name, answer) for name, answer in answers.items()]


def _model(identity: Mapping[str, Any]) -> str:
    if identity["kind"] == "scripted":
        return f"{identity['name']} (a script, not a language model)"
    if identity["kind"] == "remote":
        return f"{identity['model']} at {identity['url']} (weights not verified)"
    if identity["kind"] == "imported":
        return f"{identity['name']} (run by another tool)"
    if "sha256" in identity:
        return f"{identity.get('file', identity['kind'])}, sha256 {identity['sha256'][:12]}"
    return str(identity.get("name", identity["kind"]))


def _access(kinds: set[str]) -> str:
    if "remote" in kinds:
        return "a remote endpoint"
    if "imported" in kinds:
        return "another tool ran the models; the conversations were imported"
    return "local files, through llama.cpp; no network" if "llama" in kinds else "no language model is used"


def _parameters(run: Run) -> str:
    sampling = run.plan.get("sampling", {})
    named = [f"{name.replace('_', ' ')} {value}" for name, value in sampling.items()]
    return ", ".join([*named, f"seed {run.seed}", f"{run.plan.get('episodes', 1)} episodes per scenario and mode"])


def _people(data: Report, card: Mapping[str, Any]) -> str:
    played = "people play roles" if card["simulation_details"]["humans_in_the_loop"] else "models play all roles"
    persons = data.annotations.kinds.get("person", 0)
    return f"{played}; {persons} people rated conversations" if persons else f"{played}; no person rated them"


def _validation(data: Report) -> str:
    kinds = data.annotations.kinds
    if persons := kinds.get("person", 0):
        return f"{persons} people rated conversations of this run; the report states their agreement"
    if kinds:
        return "none in this run: language models rated its conversations"
    return "none in this run (localsim annotate collects ratings)"


def _processing(data: Report) -> str:
    failed = sum(row.failed for row in data.comparison)
    return (
        "replies are parsed into turns; malformed replies and repaired turns are counted; "
        f"{failed} failed episodes are left out of rates"
    )


def _realism(data: Report) -> str:
    if any(row.mode == "people" for row in data.comparison):
        return "compared with conversations of people in the same report"
    return "not compared with people (localsim import talks adds their conversations)"
