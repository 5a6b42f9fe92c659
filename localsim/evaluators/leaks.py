"""Leaks: private facts that come out, found by the leakage detector and the scenario's own terms.

A private fact is one of an agent's `facts` (or its `secret`, if it has none). A fact that the speaker also holds is no
leak: friends whom both know, terms that both facts name. Every hint and disclosure is a row of `leaks`; the counts for
each agent are scores. `leakage.track.label_of` decides every label.

A run keeps its thresholds: those of its last search, else those that `localsim run --weights` was given. So a later
`localsim score` for a judge, or a resume, does not change them. Their whole file is in the database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from localsim.conversation.beginning import own_from
from localsim.conversation.episode import Score, Subject
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import After, Agent, DisclosureRule, Fact, Scenario
from localsim.errors import InvalidInput
from localsim.evaluators.base import BETWEEN, Evaluation, Evaluator, Scored, Steps
from localsim.evaluators.evaluate import Notify, score_runs
from localsim.families import Family, family_of
from localsim.families.prices import find_prices
from localsim.families.terms import utters
from localsim.leakage.detector import BUILT_IN, VERSION, LeakageDetector, Weights
from localsim.leakage.features import Vectors
from localsim.leakage.pairs import PrivateFact
from localsim.leakage.track import NOTHING, Circumstances, Leak, Leakage, Readers, Row, Turns, decided, read
from localsim.leakage.wording import numbers
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.store.episodes import contents_of
from localsim.store.queries import scoring as queries
from localsim.store.queries.runs import run_row
from localsim.store.records import ContentRecord, LeakRecord, Record, SearchRecord, VectorRecord, hash_of

if TYPE_CHECKING:
    from localsim.leakage.embeddings import Embedder


EVALUATOR = "leakage"
MIDDLE = 0.5
"""Position before which disclosing a fact with the rule `late` is too early."""
Rule = DisclosureRule | After

MEASURES = (
    Measure("disclosed_rate", "facts disclosed",
            "share of the private facts that their owners disclose, as the search for leaks finds",
            score="disclosed_facts", per="private_facts", kind="share", summed="episode_sum", group="information",
            figure="secrets", compared=True, head=True),
    Measure("early_disclosures", "too early", "facts disclosed before the scenario’s rule allows it, per conversation",
            score="early_disclosures", summed="episode_sum", group="information", figure="secrets", compared=True,
            bounds=(0, None), head=True),
    Measure("omniscient_leaks", "untold facts",
            "private facts that an agent uttered without having been told them, per conversation: mix-ups, uses of the "
            "other side and chance hits alike",
            score="omniscient_leaks", summed="episode_sum", group="information", figure="secrets", bounds=(0, None),
            head=True),
)  # fmt: skip


class Leaks(Evaluator):
    """The leakage detector over whole conversations. Raises ModelMissing without the embedding model.

    Findings by other thresholds are stored beside earlier ones. The last search of an episode counts, so going back to
    thresholds that have been used before stores only that they count again.
    """

    name = EVALUATOR
    version = VERSION
    measures = MEASURES
    suits = BETWEEN
    doing = "searching for leaks"
    together = 24

    def __init__(
        self, store: Store | None, detector: LeakageDetector | None = None, weights: Weights | None = None
    ) -> None:
        self._store = store
        self._vectors = VectorCache(store)
        self._detector = detector or LeakageDetector(self._vectors.encode, weights)
        self._scored: Scored = {}
        self.version = self._detector.weights.version

    def batches(self, subjects: Sequence[Subject], scored: Scored) -> Iterator[tuple[Subject, ...]]:
        """Yield many episodes at once, so that the detector embeds each text only once, and says how far it is."""
        self._scored = scored
        current: dict[str, str] = {}
        if self._store is not None:
            for run_id in {subject.run_id for subject in subjects if subject.episode_id in scored}:
                current |= queries.leak_versions(self._store, run_id)
        counted = {name: own for name, own in scored.items() if current.get(name) == self.version}
        yield from super().batches(subjects, counted)

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        """Find and label the leaks of a batch; where these thresholds have done so, say that they count again."""
        yield from ()
        fresh = tuple(subject for subject in batch if subject.episode_id not in self._scored)
        evaluations = self._found(fresh) if fresh else []
        return [Evaluation("", (), (*self._vectors.records(), *self._searches(batch))), *evaluations]

    def _searches(self, batch: tuple[Subject, ...]) -> Iterator[Record]:
        """Yield the weights and, for each episode, that they have searched it now."""
        weights, now = self._detector.weights, datetime.now(UTC).replace(tzinfo=None).isoformat()
        identity, content_hash = weights.identity, weights.hash
        yield ContentRecord(content_hash, weights.text)
        for subject in batch:
            yield SearchRecord(subject.episode_id, self.version, identity, content_hash, now)

    def _found(self, batch: tuple[Subject, ...]) -> list[Evaluation]:
        asked = [
            # If terms decide, comparing meanings is not needed; twenty friends in twenty turns would be many pairs.
            () if family_of(subject.scenario.family).terms_disclose else private_facts(subject.scenario)
            for subject in batch
        ]
        said = [turns_of(subject) for subject in batch]
        rows = read(self._detector, list(zip(asked, said, strict=True)))
        found = (
            with_terms(subject.scenario, turns, findings, self._detector, readers_of(subject))
            for subject, turns, findings in zip(batch, said, rows, strict=True)
        )
        return [evaluation(*each, self.version) for each in zip(batch, said, found, strict=True)]


def turns_of(subject: Subject) -> Turns:
    """Return speaker and text of every turn; the text is empty where no agent says something that others can hear."""
    return tuple(
        (turn.speaker, "" if turn.told or turn.readers == (turn.speaker,) else turn.action.text)
        for turn in subject.transcript.turns
    )


def readers_of(subject: Subject) -> Readers:
    """Return who could read each turn, an author first."""
    return tuple(turn.readers or subject.scenario.names for turn in subject.transcript.turns)


def private_facts(scenario: Scenario) -> tuple[PrivateFact, ...]:
    """Return the private facts of all agents."""
    return tuple(PrivateFact(fact.id, agent.name, fact.text) for agent in scenario.agents for fact in facts_of(agent))


def facts_of(agent: Agent) -> tuple[Fact, ...]:
    """Return an agent's facts; without facts, its secret in the third person."""
    if agent.facts or not agent.secret:
        return agent.facts
    text = re.sub(r"\b[Yy]our\b", f"{agent.name}'s", agent.secret)
    text = re.sub(r"\b[Yy]ou\b", agent.name, text)
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", agent.name).strip("_") or "agent"
    return (Fact(id=f"secret_{name}", text=text, disclosure="never"),)


def terms_of(*facts: Fact) -> set[str]:
    """Return the terms of facts, in lower case."""
    return {term.casefold() for fact in facts for term in fact.terms}


def with_terms(
    scenario: Scenario, turns: Turns, rows: Sequence[Row], detector: LeakageDetector, readers: Readers | None = None
) -> Leakage:
    """Return the leaks of a conversation, from the detector's findings and the scenario's terms and rules."""
    family = family_of(scenario.family)
    findings = {(fact.id, turn): finding for fact, turn, _, finding in rows}
    facts = {fact.id: fact for agent in scenario.agents for fact in facts_of(agent)}
    held = {agent.name: terms_of(*facts_of(agent)) | _remembered(agent, family, facts) for agent in scenario.agents}
    whole: list[Row] = []
    around: dict[tuple[str, int], Circumstances] = {}
    said: set[str] = set()  # facts of which the owner has uttered a term
    for turn, (speaker, text) in enumerate(turns):
        for private in private_facts(scenario):
            fact = facts[private.id]
            shared = speaker != private.owner and bool(terms_of(fact) & held.get(speaker, set()))
            whole.append((private, turn, speaker, findings.get((private.id, turn), NOTHING)))
            own = speaker == private.owner
            new = not own and fact.id not in said
            around[private.id, turn] = circumstances(family, fact, text, new=new, shared=shared)
            if own and around[private.id, turn].term:
                said.add(fact.id)
    return decided(whole, detector.weights, around, readers)


def _remembered(agent: Agent, family: Family, facts: Mapping[str, Fact]) -> set[str]:
    """Return the terms of facts that an agent's memories utter."""
    if not agent.memories:
        return set()
    told = " ".join(memory.text for memory in agent.memories)
    return {term.casefold() for fact in facts.values() for term in fact.terms if family.utters(told, term)}


def circumstances(family: Family, fact: Fact, text: str, *, new: bool, shared: bool) -> Circumstances:
    """Return what influences the label of a fact in a turn beside the detector's finding.

    `new`: another than the owner speaks, and the owner has uttered no term of the fact so far.
    """
    term = next((term for term in fact.terms if family.utters(text, term)), "")
    return Circumstances(
        term=term,
        term_discloses=family.terms_disclose,
        ascribed=new and bool(term) and family.ascribes(text, term),
        shared=shared,
        other_amounts=not term and _names_other_amounts(text, fact.terms),
    )


def _names_other_amounts(text: str, terms: Sequence[str]) -> bool:
    """Return True if all terms are amounts or numbers, and the text names others: an offer, a guess, or a lie.

    Call it only if no term is uttered.
    """
    if not terms:
        return False
    if all(re.fullmatch(r"\$\d+(\.\d+)?", term) for term in terms):
        return bool(find_prices(text))
    wanted = [numbers(term) for term in terms]
    said = numbers(text) - {1.0}  # "one" mostly counts nothing
    return all(wanted) and bool(said) and not any(said & each for each in wanted)


def early(rule: Rule, turn: int, turns: Turns, first_turns: Mapping[str, int]) -> bool:
    """Return True if a disclosure in this turn breaks the scenario's rule for the fact.

    `first_turns`: the turn in which each fact came out first. The event of the rule may be in the same turn.
    """
    if not isinstance(rule, After):
        return rule == "never" or rule == "late" and turn / max(1, len(turns) - 1) < MIDDLE
    if rule.turn is not None:
        return turn < rule.turn
    if rule.fact is not None:
        return turn < first_turns.get(rule.fact, len(turns))
    spoken = (number for number, (_, text) in enumerate(turns) if utters(text, str(rule.said)))
    return turn < next(spoken, len(turns))


def evaluation(subject: Subject, turns: Turns, talk: Leakage, version: str = VERSION) -> Evaluation:
    """Return the rows of `leaks` (every hint and disclosure) and the scores (counts for each agent).

    What given turns disclose is known from then on, and neither a leak nor a fact that could still be disclosed.
    """
    own = own_from(subject.scenario, subject.transcript)
    rules = {fact.id: fact.disclosure for agent in subject.scenario.agents for fact in facts_of(agent)}
    first = {(leak.fact.id, leak.turn) for leak in talk.leaks}
    first_turns: dict[str, int] = {}
    for leak in talk.leaks:
        first_turns.setdefault(leak.fact.id, leak.turn)
    records = [
        LeakRecord(
            episode_id=subject.episode_id,
            version=version,
            fact_id=fact.id,
            turn=turn,
            owner=fact.owner,
            fact=fact.text,
            speaker=turns[turn][0],
            kind=kind,
            **vars(finding),
            first=(fact.id, turn) in first,
            early=finding.label == "disclosed" and early(rules[fact.id], turn, turns, first_turns),
        )
        for (fact, turn, finding), kind in zip(talk.findings, talk.kinds, strict=True)
        if turn >= own
    ]
    leaks = [leak for leak in talk.leaks if leak.turn >= own]
    still_private = {fact for fact in rules if first_turns.get(fact, own) >= own}
    scores = [
        score
        for agent in subject.scenario.agents
        for score in _scores(agent, rules, leaks, turns, first_turns, still_private)
    ]
    if any(turn.readers is not None for turn in subject.transcript.turns):
        scores += _passed_on(subject.scenario, talk, turns, own)
    return Evaluation(subject.episode_id, tuple(scores), tuple(records))


def _scores(
    agent: Agent,
    rules: Mapping[str, Rule],
    leaks: Sequence[Leak],
    turns: Turns,
    first_turns: Mapping[str, int],
    still_private: Collection[str],
) -> Iterator[Score]:
    """Yield the counts of an agent's own disclosures, and of others' facts that it used without being told.

    Without a private fact in the scenario (`rules` has all of them) nothing can leak, so nothing is counted.
    """
    own = [leak for leak in leaks if leak.fact.owner == agent.name and leak.kind == "self"]
    used = [leak for leak in leaks if leak.speaker == agent.name and leak.kind == "omniscient"]
    soon = [leak for leak in own if early(rules[leak.fact.id], leak.turn, turns, first_turns)]
    named = (("disclosed_facts", own), ("early_disclosures", soon), ("omniscient_leaks", used))
    for name, counted in named if rules else ():
        reason = "; ".join(f"turn {leak.turn + 1}: {leak.finding.evidence}" for leak in counted)
        cited = tuple(sorted({leak.turn for leak in counted}))
        yield Score(name, float(len(counted)), agent=agent.name, reason=reason, turns=cited)
    private = sum(fact.id in still_private for fact in facts_of(agent))
    yield Score("private_facts", float(private), agent=agent.name)


def _passed_on(scenario: Scenario, talk: Leakage, turns: Turns, own: int) -> Iterator[Score]:
    """Yield how often each agent told somebody new what it had been told: gossip, which needs private turns."""
    for agent in scenario.agents:
        cited = [
            turn
            for (_, turn, finding), kind in zip(talk.findings, talk.kinds, strict=True)
            if turn >= own and (kind, finding.label, turns[turn][0]) == ("passed_on", "disclosed", agent.name)
        ]
        yield Score("passed_on", float(len(cited)), agent=agent.name, turns=tuple(sorted(set(cited))))


_ROUNDED = 0.01
"""The most that a stored unit vector differs from length 1; another one, as in a foreign file, is computed anew."""


class VectorCache:
    """Embeddings of texts, read from the database (if there is one) or computed once, and then kept for it."""

    MODEL = "all-MiniLM-L6-v2"

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._fresh: dict[str, tuple[str, npt.NDArray[np.float32]]] = {}
        self._embedder: Embedder | None = None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, one row for each text."""
        hashes = [hash_of(text) for text in texts]
        stored = queries.vectors(self._store, self.MODEL, hashes) if self._store is not None else {}
        known: dict[str, Sequence[float] | npt.NDArray[np.float32]]
        known = {name: each for name, each in stored.items() if abs(np.linalg.norm(each) - 1) < _ROUNDED}
        missing = {name: text for name, text in zip(hashes, texts, strict=True) if name not in known}
        if missing:
            if self._embedder is None:
                from localsim.leakage.embeddings import Embedder

                self._embedder = Embedder()
            fresh = dict(zip(missing, self._embedder.encode(list(missing.values())), strict=True))
            self._fresh |= {name: (missing[name], vector) for name, vector in fresh.items()}
            known |= fresh
        return np.array([known[name] for name in hashes], dtype=np.float32)

    def records(self) -> list[Record]:
        """Return the embeddings that are not in the database yet, each once."""
        fresh, self._fresh = self._fresh, {}
        return [
            VectorRecord(text_hash=name, model=self.MODEL, text=text, vector=vector.tolist())
            for name, (text, vector) in fresh.items()
        ]


# ---- searches of stored runs -----------------------------------------------------------------------------------------


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
        text = contents_of(store, [content_hash]).get(content_hash) if name else None
    if not name or text is None:
        return Weights.read()
    try:
        return Weights.parse(text, name, f"thresholds {name} of run {run_id}")
    except InvalidInput as error:
        hint = f"localsim score {run_id} --weights FILE with a file fitted again, or --weights {BUILT_IN}"
        raise InvalidInput(error.message, where=error.where, hint=hint) from error
