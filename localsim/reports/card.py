"""The simulation card of a run (arXiv 2403.05020, figure 7 and appendix A), written from the database.

The fields that only people can fill in (purpose, ethics, recommendations) come from a YAML file; `missing` lists those
that are empty. The index of information transparency that the paper's section 5.2 asks for is computed: the share of
all goals, secrets and facts of other agents that a prompt of the condition shows, over all prompted agents.

Two reporting checklists are filled in as far as a run knows the answers. GUIDE-LLM (https://llm-checklist.com): its 14
core items for studies with language models in the behavioural sciences. PIMMUR (Zhou et al., arXiv 2509.18052): six
requirements on simulations of societies of language models. An item that only the authors can answer is None and says
so where people read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from localsim.annotation.agreement import preference_text, raters_text
from localsim.conversation.episode import CONDITIONS, PEOPLE, SINGLE_AUTHOR, Mode, StoredMode
from localsim.conversation.grants import EVERYTHING, NOTHING, Grants, condition_name, parse
from localsim.conversation.modes import roles
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.conversation.visibility import transparency as shown_and_all
from localsim.errors import InvalidInput
from localsim.families import EVERYDAY, family_of, in_order
from localsim.models.registry import labelled
from localsim.reports.document import Report, Run
from localsim.reports.results import shown
from localsim.reports.validity import correction, instruments
from localsim.reports.validity.judges import sentence
from localsim.scenarios.tagging import coverage, interaction_of, tags_of, vocabulary
from localsim.stats import grouped
from localsim.store.conditions import by_number
from localsim.store.database import Store
from localsim.store.episodes import stored_scenarios

HUMAN: dict[str, str] = {
    "aim": "realism, if the talks are to be like those of people, or story generation, if they are to be good stories",
    "primary_use": "the purpose of the simulation: training, evaluation, analysis, teaching",
    "other_uses": "other possible uses, and uses that must be avoided",
    "transparency_justification": "the reason why the agents were given this much information",
    "ethical_considerations": "people it could harm or misrepresent, and measures against that",
    "recommendations": "advice to readers on using the results",
    "personal_data": "personal or sensitive data in scenarios or conversations, and their treatment",
    "funding": "funding, support and relevant relationships",
}
"""The fields that people fill in, and their meanings."""
GOAL = "interaction_goal"
"""A further field for people; only for runs in which people take part."""
WORDED = ("aim", GOAL)
"""The fields that are one word of the vocabulary."""


def card(store: Store, data: Report, human: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the card of a report as JSON; a human field that is not given is None."""
    run, run_id, said = data.run, data.run.run_id, {**dict.fromkeys((*HUMAN, GOAL)), **(human or {})}
    loaded = list(stored_scenarios(store, run_id).values())
    scenarios = [each.scenario for each in loaded]
    conditions = _conditions(run.plan, scenarios)
    kinds = {identity["kind"] for identity in run.models.values()}
    partners = ["human"] if kinds & {"human", PEOPLE} else []
    partners += ["model_tool"] if kinds - {"human", PEOPLE} and set(run.plan["modes"]) - set(SINGLE_AUTHOR) else []
    counts = coverage(tags_of(each, partners) for each in loaded)
    tags = grouped((name, (word, number)) for name, word, number in counts if number)
    types = dict(tags.get("persona_type", ()))
    made: dict[str, Any] = {
        "run_id": run_id,
        "not_playing": data.playing.sentences(),
        "simulation_details": {
            "parties": sorted({len(scenario.agents) for scenario in scenarios}),
            "information_asymmetry": {name: _asymmetry(*each) for name, each in conditions.items()},
            "transparency_index": {
                name: transparency(own, mode, grants) for name, (mode, grants, own) in conditions.items()
            },
            "transparency_justification": said["transparency_justification"],
            "agent_types": {labelled(name): _agent_type(identity) for name, identity in run.models.items()},
            "modalities": ["text"],
            "humans_in_the_loop": bool(kinds & {"human", "people"}),
            "platform": f"localsim {run.versions.get('localsim', '')}".strip(),
            "domains": in_order(scenario.family or EVERYDAY.name for scenario in scenarios),
            "other_features": _features(loaded, run),
        },
        "people_and_models": interaction_of(
            players="human" in kinds,
            imported="people" in kinds,
            raters=bool(data.annotations.raters),
            goal=said[GOAL],
        ),
        "scenario_tags": {name: dict(counts) for name, counts in tags.items()},
        "intended_use": {name: said[name] for name in ("aim", "primary_use", "other_uses")},
        "metrics": {
            **{
                group: [measure.heading for measure in shown(data.measures, data.comparison) if measure.group == group]
                for group in ("interaction", "goals", "information")
            },
            "errors_of_instruments": " ".join(instruments.sentences(data.instruments)) or "not measured",
            "leaks_found_by": " ".join(data.leak_sources) or "not searched for leaks",
            "corrected_rates": " ".join(correction.sentences(data.corrections, run.run_id)) or "none",
            "raters": raters_text(data.annotations.kinds) if data.annotations.raters else "none",
            "preferences": _preferences(data),
            "social_norms": _social_norms(data),
        },
        "results": [
            {key: getattr(row, key) for key in ("family", "mode", "condition", "model", "n", "completed", "failed")}
            | {"success_rate": row.value("success_rate")}
            for row in data.comparison
        ],
        "ethical_considerations": said["ethical_considerations"],
        "persona_risks": {word: risk for word, risk in vocabulary().risks("persona_type").items() if word in types},
        "caveats": data.warnings,
        "recommendations": said["recommendations"],
    }
    return made | {"checklists": checklists(data, made, said)}


ASYMMETRY: dict[StoredMode, str] = {
    "script": "none: one model knows everything and writes all agents",
    "iterative": "none: one model knows everything and writes all agents, one turn at a time",
    "agents": "full: each model knows its own side and the conversation",
    "mindreaders": "none: separate models that each see every side",
    "people": "full: people who each know their own side",
}


Played = tuple[StoredMode, Grants, list[Scenario]]
"""A condition: its mode, what is granted, and the scenarios that are played so."""


def _conditions(plan: Mapping[str, Any], scenarios: list[Scenario]) -> dict[str, Played]:
    """Return the conditions of a plan by name, in the order of tables.

    A grant to an agent that a scenario lacks is no grant there: the scenario is played as `agents`.
    """
    found: dict[str, Played] = {}
    for mode in plan["modes"]:
        given = list(map(parse, plan.get("see", ()))) if mode == "agents" else []
        for scenario in scenarios:
            for grants in dict.fromkeys(each.within(scenario.names) for each in given or [NOTHING]):
                name = condition_name(mode, grants.text)
                found.setdefault(name, (mode, grants, []))[2].append(scenario)
    order = {name: (CONDITIONS.index(mode), by_number(grants.text)) for name, (mode, grants, _) in found.items()}
    return {name: found[name] for name in sorted(found, key=lambda name: order[name])}


def _asymmetry(mode: StoredMode, grants: Grants, scenarios: list[Scenario]) -> str:
    if all(len(scenario.agents) == 1 for scenario in scenarios):
        return "none: nobody else takes part"
    if not grants:
        return ASYMMETRY[mode]
    if all(grants.open_to_all(scenario.names) for scenario in scenarios):
        return ASYMMETRY["mindreaders"]
    told = "; every agent is told what each one sees" if grants.announced else "; only the viewer knows what it sees"
    if all(grants.of(name, scenario.names) == EVERYTHING for scenario in scenarios for name in scenario.names):
        return f"none: separate models that each see every side{told}"
    kind = "partial" if grants.everyone or grants.single else "full"
    decoys = "; prompts also hold made-up items of people who are not here" if grants.decoys else ""
    seen = f", and of the others {grants.text}{told}" if kind == "partial" else ""
    return f"{kind}: each model knows its own side and the conversation{seen}{decoys}"


def transparency(scenarios: list[Scenario], mode: StoredMode, grants: Grants = NOTHING) -> float | None:
    """Return the share of others' private items that a prompted agent sees, 0 to 1; None if nothing is private.

    People know their own side, as agents do.
    """
    as_mode: Mode = "agents" if mode == PEOPLE else mode  # type: ignore[assignment]  # the only stored mode that is none
    counts = [
        shown_and_all(scenario, as_mode, viewer, grants.within(scenario.names))
        for scenario in scenarios
        for viewer in roles(as_mode, scenario.names)
    ]
    total = sum(there for _, there in counts)
    return round(sum(shown for shown, _ in counts) / total, 4) if total else None


def _agent_type(identity: Mapping[str, Any]) -> str:
    if identity["kind"] == "scripted":
        return "rule-based (scripted player)"
    if identity["kind"] == "human":
        return "a person"
    if identity["kind"] == "replayed":
        return f"decisions that people made in run {identity['run']}, replayed"
    if identity["kind"] == "remote":
        return f"prompted language model, {identity['model']} at {identity['url']} (remote)"
    if identity["kind"] == "people":
        return f"people, from {identity['source']}"
    if identity["kind"] == "imported":
        return f"language model of another tool, from {identity['source']}"
    file = str(identity.get("file") or identity["kind"])
    adapted = "+" in str(identity.get("name", "")) or file.startswith("localsim-starter")
    return f"{'finetuned' if adapted else 'prompted'} language model, {file}"


def _social_norms(data: Report) -> str:
    """Return the instruments that scored the dimension `social_rules`."""
    judged = [f"judge {judge.judge}" for judge in data.judges]
    if data.annotations.dimensions:
        judged.append("raters")
    return f"dimension social rules, by {', '.join(judged)}" if judged else "not measured"


def _preferences(data: Report) -> str:
    """Return the shares in which judges and raters found one condition more natural than another."""
    told = [f"{sentence(rate)}." for rate in data.naturalness]
    rates = data.annotations.pairs.rates if data.annotations.pairs else ()
    return " ".join([*told, *(preference_text(rate) for rate in rates)]) or "not measured"


_ORDERS: Mapping[str, str] = {
    "in_turn": "in turn",
    "together": "at the same time",
    "random": "in random order",
    "addressed": "whoever is addressed",
    "moderated": "as a moderator says",
    "questions": "one question after the other",
}


def _features(loaded: Sequence[LoadedScenario], run: Run) -> list[str]:
    """Return how each family lets agents act and what they remember, and whether they have profiles."""
    if run.plan["modes"] == [PEOPLE]:
        return ["turns in any order", "people's own memory"]
    whole = (
        "the newest turns that fit the context" if run.plan.get("overflow") == "window" else "the whole conversation"
    )
    families = grouped((each.scenario.family or EVERYDAY.name, each) for each in loaded)
    protocols, memories = {}, {}
    for name in in_order(families):
        orders = dict.fromkeys(word for each in families[name] for word in tags_of(each)["protocol"])
        protocols[name] = " and ".join(_ORDERS.get(word, word) for word in orders)
        asked = family_of(name).asks and not any(each.scenario.game.get("sequence") for each in families[name])
        memories[name] = "each question alone, with those that it follows" if asked else whole
    features = [f"protocol: {_each(protocols)}", f"memory: {_each(memories)}"]
    agents = [agent for each in loaded for agent in each.scenario.agents]
    return [
        *features,
        *(["agent profiles"] if any(agent.profile.model_dump(exclude_none=True) for agent in agents) else []),
    ]


def _each(said: Mapping[str, str]) -> str:
    """Return what is said of families, in one part where it is the same of all."""
    kinds = grouped((what, name) for name, what in said.items())
    if len(kinds) == 1:
        return "; ".join(kinds)
    return "; ".join(f"{what} ({', '.join(names)})" for what, names in kinds.items())


def missing(card: dict[str, Any]) -> list[str]:
    """Return the fields that are not filled in, with their meanings."""
    open_items = {"personal_data": "D.1 personal data", "funding": "G.1 funding"}
    stated = {name: card["checklists"]["GUIDE-LLM"][item] for name, item in open_items.items()}
    places = {**card["simulation_details"], **card["intended_use"], **stated, **card}
    gaps = [f"{name}: {meaning}" for name, meaning in HUMAN.items() if not places.get(name)]
    interaction = card["people_and_models"]
    if interaction["role"] and not interaction["goal"]:
        gaps.append(f"{GOAL}: one of {_words(GOAL)}")
    return gaps


def template(known: Mapping[str, str]) -> str:
    """Return a YAML file with every field that people fill in, below its meaning; `known` are given ones."""
    lines = ["# The fields of a simulation card that only people know. Empty ones count as not stated."]
    for name, meaning in HUMAN.items():
        lines += ["", f"# {meaning}", yaml.safe_dump({name: known.get(name, "")}, allow_unicode=True).rstrip()]
    goal = yaml.safe_dump({GOAL: known[GOAL]}).rstrip() if GOAL in known else f"# {GOAL}: "
    return "\n".join([*lines, "", f"# only where people take part, one of: {_words(GOAL)}", goal]) + "\n"


def _words(name: str) -> str:
    return ", ".join(vocabulary().words(name) or ())


def read_human(path: Path) -> dict[str, Any]:
    """Return the human fields of a YAML file. Raises InvalidInput with the problem."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidInput(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise InvalidInput("not a table of texts", where=str(path), hint=f"fields: {', '.join(HUMAN)}")
    if unknown := set(data) - {*HUMAN, GOAL}:
        hint = f"fields: {', '.join((*HUMAN, GOAL))}"
        raise InvalidInput(f"unknown: {', '.join(sorted(map(str, unknown)))}", where=str(path), hint=hint)
    for name in WORDED:
        if data.get(name) and data[name] not in (vocabulary().words(name) or ()):
            raise InvalidInput(f"{name} cannot be {data[name]!r}", where=str(path), hint=f"one of {_words(name)}")
    return data


def sections(card: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the card for people: (section, [(field, text)]); a line without a field has an empty name.

    A run whose talks do not play begins with that.
    """
    parts = [
        (_title(name), [(_title(field), _text(value)) for field, value in card[name].items()])
        for name in ("simulation_details", "intended_use", "metrics")
    ]
    tags = [
        (_title(name), ", ".join(f"{word} {number}" for word, number in words.items()))
        for name, words in card["scenario_tags"].items()
    ]
    people = [(_title(name), _text(words)) for name, words in card["people_and_models"].items()]
    if not card["people_and_models"]["role"]:
        people = [("", "No people take part.")]
    parts[1:1] = [("Scenarios by tag", tags), ("People and models", people)]
    results = []
    for row in card["results"]:
        rate = "no outcome" if row["success_rate"] is None else f"success {row['success_rate']:.0%}"
        result = f"{row['completed']} of {row['n']} conversations, {rate}"
        results.append((f"{row['family']}, {row['condition']}, {row['model']}", result))
    parts.append(("Results", results))
    risks = [(f"Persona type {word}", risk) for word, risk in card["persona_risks"].items()]
    parts.append(("Ethical considerations", [("", _text(card["ethical_considerations"])), *risks]))
    for name, answers in card["checklists"].items():
        parts.append((f"Checklist {name}", [(item, answer or OPEN) for item, answer in answers.items()]))
    caveats = [("", line) for line in card["caveats"]]
    parts.append(("Caveats and recommendations", [*caveats, ("Recommendations", _text(card["recommendations"]))]))
    said = [("", line) for line in card["not_playing"]]
    return [*([("Talks that do not play", said)] if said else []), *_stated(parts)]


def _stated(parts: Sequence[tuple[str, list[tuple[str, str]]]]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the sections without the fields that are not stated, and at the end one line that names these."""
    absent = []
    for title, fields in parts:
        absent += [field or title for field, text in fields if text == _NOT_STATED]
        if kept := [(field, text) for field, text in fields if text != _NOT_STATED]:
            yield title, kept
    if absent:
        yield "Not stated", [("", f"{', '.join(absent)} (localsim card --template makes a file for them).")]


_NOT_STATED = "not stated"


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _text(value: Any) -> str:
    if value is None or value == []:
        return _NOT_STATED
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_text(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


# ---- two reporting checklists ----------------------------------------------------------------------------------------


OPEN = "to be stated by the authors"


Checklist = dict[str, str | None]
"""Item -> answer; None if only the authors know it."""


def checklists(data: Report, card: Mapping[str, Any], authors: Mapping[str, Any]) -> dict[str, Checklist]:
    """Return both; `data` is the report, `card` its simulation card, `authors` the fields that people fill in."""
    return {"GUIDE-LLM": _guide_llm(data, card, authors), "PIMMUR": _pimmur(data, card)}


def _guide_llm(data: Report, card: Mapping[str, Any], authors: Mapping[str, Any]) -> Checklist:
    run, kinds, details = data.run, data.annotations.kinds, card["simulation_details"]
    played = "people play roles" if details["humans_in_the_loop"] else "models play all roles"
    people, failed = kinds.get("person", 0), sum(row.failed for row in data.comparison)
    rated = f"{people} people rated conversations" if people else "no person rated them"
    validation = "none in this run (localsim annotate collects ratings)"
    if kinds:
        validation = "none in this run: language models rated its conversations"
    if people:
        validation = f"{people} people rated conversations of this run; the report states their agreement"
    read = "replies are parsed into turns; malformed replies and repaired turns are counted"
    sampling = [f"{name.replace('_', ' ')} {value}" for name, value in run.plan.get("sampling", {}).items()]
    drawn = f"seed {run.seed}, {run.plan.get('episodes', 1)} episodes per scenario and mode"
    return {
        "A.1 use of language models": "they simulate conversations between agents; localsim scores the conversations",
        "A.2 people in the loop": f"{played}; {rated}",
        "B.1 models": "; ".join(map(_model, run.models.values())) + f"; run on {run.started_utc[:10]}",
        "B.2 access": _access({model["kind"] for model in run.models.values()}),
        "B.3 parameters": ", ".join([*sampling, drawn]),
        "B.4 fine-tuning": "; ".join(details["agent_types"].values()),
        "B.5 state between calls": "none: each prompt holds all that the model knows",
        "C.1 prompts": "stored word for word in the database (v_generations, table contents)",
        "C.2 system instructions": "stored with the prompts, as their first message",
        "D.1 personal data": authors.get("personal_data"),
        "E.1 human validation": validation,
        "E.2 filtering and processing": f"{read}; {failed} failed episodes are left out of rates",
        "F.1 code": f"{details['platform']}; the report prints the command that repeats the run",
        "G.1 funding": authors.get("funding"),
    }


def _pimmur(data: Report, card: Mapping[str, Any]) -> Checklist:
    details = card["simulation_details"]
    profiles = "agent profiles" in details["other_features"]
    modes = [name for name in details["information_asymmetry"] if name not in SINGLE_AUTHOR]
    single = [name for name in details["information_asymmetry"] if name in SINGLE_AUTHOR]
    return {
        "Profile": "agents have profiles of their own" if profiles else "agents have no profiles",
        "Interaction": (
            "none: nobody else takes part"
            if details["parties"] == [1]
            else f"{', '.join(modes)}: agents answer each other turn by turn"
            if modes
            else "one model writes all agents"
        )
        + (f"; {', '.join(single)}: one model writes all agents" if single and modes else ""),
        "Memory": ", ".join(feature for feature in details["other_features"] if feature.startswith("memory")),
        "Minimal control": "instructions name the goal and the form of a turn, and no strategy or outcome",
        "Unawareness": "prompts do not name the measures or the hypothesis; whether a model infers them is not tested",
        "Realism": "compared with conversations of people in the same report"
        if any(row.mode == PEOPLE for row in data.comparison)
        else "not compared with people (localsim import talks adds their conversations)",
    }


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
