"""The leakage detector: labelled files, wording, findings over a conversation, and what lands in the database."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from localsim.conversation.episode import Subject
from localsim.conversation.scenario import After, AnswerKey
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import InvalidInput
from localsim.evaluators import leaks
from localsim.leakage import accuracy, features, wording
from localsim.leakage.calibrate import calibrated
from localsim.leakage.detector import VERSION, Finding, LeakageDetector, Weights
from localsim.leakage.pairs import LabelledPair, LabelledTranscript, Pair, PrivateFact, pairs_of, read_labelled
from localsim.leakage.quotes import quotes
from localsim.leakage.track import Row, decided, read, track
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from localsim.store.records import (
    EpisodeEnded,
    EpisodeRecord,
    LeakRecord,
    ScenarioRecord,
    score_records,
)
from scripts.leakage.scores import between
from tests.conftest import generated
from tests.test_docs import ROOT

DATA = ROOT / "scenarios" / "leakage"
FACT = "Omar was diagnosed with epilepsy in March."


@pytest.fixture(scope="module")
def detector() -> LeakageDetector:
    return LeakageDetector()


def pair(text: str, speaker: str = "Omar", *context: str) -> Pair:
    return Pair(FACT, "Omar", speaker, context, text)


# ---- files ---------------------------------------------------------------------------------------------------------

TOLD = {"fact_id": "a", "turn": 1, "by_owner": True}
LABELS: dict[str, Any] = {
    "facts": [{"id": "a", "owner": "Omar", "text": FACT}],
    "turns": [{"speaker": "Omar", "text": "Hm."}, {"speaker": "Omar", "text": "It is epilepsy."}],
    "disclosures": [TOLD],
}


def test_hints_and_what_is_told_again_are_read(tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    more = {"hints": [{"fact_id": "a", "turn": 0}], "disclosures": [TOLD | {"turn": 0, "again": [1]}]}
    file.write_text(f"{json.dumps(LABELS)}\n{json.dumps(LABELS | more)}\n")
    plain, full = cast(list[LabelledTranscript], read_labelled(file))
    assert plain.hints == frozenset() and plain.disclosures["a"].again == ()
    assert full.hints == {("a", 0)} and full.disclosures["a"].again == (1,)


def test_the_labelled_files_are_as_promised() -> None:
    pairs = read_labelled(DATA / "train.pairs.jsonl") + read_labelled(DATA / "test.pairs.jsonl")
    talks = read_labelled(DATA / "train.transcripts.jsonl") + read_labelled(DATA / "test.transcripts.jsonl")
    assert len(pairs) >= 1000 and len(talks) >= 60
    rows = {name: (DATA / f"{name}.pairs.jsonl").read_text().splitlines() for name in ("train", "test")}
    facts = {name: {json.loads(line)["fact"] for line in lines} for name, lines in rows.items()}
    assert not facts["train"] & facts["test"], "split by fact"


def test_each_writer_told_and_kept_silent_about_each_fact() -> None:
    lines = (DATA / "writers.pairs.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(read_labelled(DATA / "writers.pairs.jsonl")) == len(lines)
    labels: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        row = json.loads(line)
        labels.setdefault((row["writer"], row["fact"]), []).append(row["label"])
    for fact, given in labels.items():
        assert {"disclosed", "none"} <= set(given) and len(given) >= 8, fact
    assert len({fact for _, fact in labels}) == len(labels) - 1, "one fact is by two writers, who both train"
    talks: Any = read_labelled(DATA / "writers.transcripts.jsonl")
    facts, told = sum(len(talk.facts) for talk in talks), sum(len(talk.disclosures) for talk in talks)
    assert len({writer for writer, _ in labels}) == 23 and (len(talks), facts, told) == (1260, 5520, 1729)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{broken", "not JSON"),
        ('{"fact":"a","owner":"b","speaker":"c","utterance":"d"}', "label"),
        ('{"fact":"a","owner":"b","speaker":"c","utterance":"d","label":"maybe"}', "maybe"),
        ('{"fact":1,"owner":"b","speaker":"c","utterance":"d","label":"none"}', "strings"),
        ('{"facts":[],"turns":[],"disclosures":[{"fact_id":"x","turn":0,"by_owner":true}]}', "not listed"),
        ('{"facts":[],"turns":[],"disclosures":[],"hints":[{"fact_id":"x","turn":0}]}', "not listed"),
        (json.dumps(LABELS | {"hints": [{"fact_id": "a", "turn": 2}]}), "not there: a"),
        (json.dumps(LABELS | {"disclosures": [TOLD | {"again": [1, 2]}]}), "not there: a"),
        ("", "no labelled rows"),
        ("[1]", "wrong type"),
        ("[" * 100_000, "nested too deep"),
        ('{"context":[' + "[" * 900 + "]" * 900 + '],"fact":"a","label":"none"}', "nested too deep"),
    ],
)
def test_a_wrong_file_is_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text(text + "\n")
    with pytest.raises(InvalidInput, match=message) as refused:
        read_labelled(file)
    assert refused.value.where == (f"{file}:1" if text else str(file))


# ---- wording -------------------------------------------------------------------------------------------------------


def test_a_fact_is_told_in_the_speakers_person() -> None:
    assert wording.person("Omar's wife left Mr Omar Diaz.", "Omar Diaz", "Omar Diaz") == "my wife left I."
    assert wording.person(FACT, "Omar", "Jess") == "you was diagnosed with epilepsy in March."


def test_numbers_are_read_in_words_and_digits() -> None:
    assert wording.numbers("three thousand two hundred, or 3,200.50") == {3200.0, 3200.5}
    assert wording.numbers("at seventeen") == {17.0}


def test_clauses_are_parts_that_can_state_something() -> None:
    text = "My cousin had it, but I never did. So what?"
    assert wording.clauses(text) == ("My cousin had it", "but I never did.", "So what?")


def test_style_features_ignore_the_fact() -> None:
    rng = np.random.default_rng(0)
    vectors: dict[str, Any] = {}

    def encode(texts: Any) -> Any:
        return np.array([vectors.setdefault(text, rng.normal(size=8)) for text in texts], dtype=np.float32)

    asked = [pair("Yes I have it", "Omar", "Jess: Really?"), pair("Yes I have it", "Omar", "Jess: Really?")]
    asked[1] = replace(asked[1], fact="Omar keeps 12 bees and never sleeps.")
    rows = features.matrix(asked, encode)
    style = [features.NAMES.index(name) for name in features.STYLE]
    assert (rows[0, style] == rows[1, style]).all()
    assert not (rows[0] == rows[1]).all(), "the other features look at it"


# ---- findings ------------------------------------------------------------------------------------------------------


def test_what_is_plain_is_found(detector: LeakageDetector) -> None:
    found = detector.classify(
        [
            pair("They told me in March that it is epilepsy. I was diagnosed with epilepsy."),
            pair("Shall we have pizza tonight?"),
        ]
    )
    assert [finding.label for finding in found] == ["disclosed", "none"]
    assert found[0].probability > found[1].probability and found[0].similarity > 0.5
    assert "epilepsy" in found[0].evidence
    assert detector.classify([]) == []


def test_order_and_batch_do_not_matter(detector: LeakageDetector) -> None:
    rows = [row.pair for row in read_labelled(DATA / "train.pairs.jsonl")[:24] if isinstance(row, LabelledPair)]
    together = detector.chances(rows)
    alone = np.concatenate([detector.chances([row]) for row in reversed(rows)])[::-1]
    assert np.abs(together - alone).max() < 1e-3


def test_better_than_cosine_where_cosine_fails(detector: LeakageDetector) -> None:
    """On labelled pairs about other facts; the whole table is in docs/log/leakage.md."""
    rows: Any = read_labelled(DATA / "test.pairs.jsonl")
    hard = [row for row in rows if row.difficulty == "adversarial"][:120]
    truth = np.array([row.label == "disclosed" for row in hard])
    ours = accuracy.auroc(truth, detector.chances([row.pair for row in hard])[:, 2])
    cosine = accuracy.auroc(truth, detector.rows([row.pair for row in hard])[:, features.NAMES.index("cos_fact")])
    assert ours is not None and cosine is not None and ours > cosine + 0.1


BRANDT = "Brandt was dismissed for forging receipts."


@pytest.mark.parametrize(
    ("fact", "speaker", "said"),
    [
        (BRANDT, "Bo", BRANDT),
        (BRANDT, "Ana", "I tell you: Brandt has already been dismissed for forging the receipts!"),
        (BRANDT, "Bo", "Lindqvist has already rescued a swimmer and Brandt was dismissed for forging receipts."),
        (BRANDT, "Bo", "I do not like him, and Brandt was dismissed for forging receipts, so should we ask Okafor?"),
        (BRANDT, "Bo", "Castelli and Brandt were both liked, but Brandt was quietly dismissed for forging receipts."),
        ("Okafor once won a chess cup.", "Bo", "Ana, you know this, and I know it too: Okafor won the chess cup."),
        ("Ana has sold her grandmother's piano.", "Ana", "Well, I just sold my grandmother's piano."),
        ("Ana has sold her grandmother's piano.", "Bo", "You sold your grandmother's piano, Ana."),
        ("Ana's lowest price is $70.", "Ana", "All right. My lowest price is really $70."),
        ("Ana Lee wants the window seat.", "Bo", "Ana Lee wants the window seat!"),
        ("Ana is not invited to Harriet's wedding.", "Ana", "I'm not invited to Harriet's wedding, you know."),
        ("It was Ana who broke the aquarium.", "Ana", "Sorry. It was I who broke the aquarium."),
        ("Felix wird im Mai operiert.", "Bo", "Ach so, Felix wird im Mai operiert."),
    ],
)
def test_a_fact_in_its_own_words_is_quoted(fact: str, speaker: str, said: str) -> None:
    assert quotes(Pair(fact, "Ana", speaker, (), said))


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        (BRANDT, "Castelli was dismissed for forging receipts."),
        (BRANDT, "Brandt was dismissed for stealing laptops."),
        (BRANDT, "Brandts was dismissed for forging receipts."),
        (BRANDT, "I found the receipts."),
        (BRANDT, "Brandt is good. Castelli was dismissed for forging receipts."),
        (BRANDT, "Brandt was dismissed. Castelli was caught forging receipts."),
        (BRANDT, "The brother of Brandt was dismissed for forging receipts."),
        (BRANDT, "Brandt's brother was dismissed for forging receipts."),
        (BRANDT, "Brandt was not dismissed for forging receipts."),
        (BRANDT, "I never said that Brandt was dismissed for forging receipts."),
        (BRANDT, "Was Brandt dismissed for forging receipts, and when?"),
        (BRANDT, "Brandt was dismissed for forging receipts? And Castelli?"),
        (BRANDT, "If Brandt was dismissed for forging receipts, take Castelli."),
        (BRANDT, "Somebody said that Brandt was dismissed for forging receipts, and I told him that was nonsense."),
        (BRANDT, "Dismissed for forging receipts: Brandt?"),
        ("Ana is pregnant.", "You are pregnant, Ana."),
        ("Ana's lowest price is $70.", "Your lowest price is $75."),
        ("Ana has sold her grandmother's piano.", "Your mother has sold her grandmother's piano."),
        ("Ana moves from Paris in March.", "You move to Paris in March."),
        ("Ana has never finished a marathon.", "You have never finished a marathon under four hours."),
    ],
)
def test_what_is_only_like_a_fact_is_not_quoted(fact: str, said: str) -> None:
    assert not quotes(Pair(fact, "Ana", "Bo", (), said))


def test_a_quotation_wins_over_the_reader(detector: LeakageDetector) -> None:
    """The reader alone calls none of these turns a disclosure, and placed the second fact at the goodbye."""
    facts = (
        PrivateFact("a", "Jonas", BRANDT),
        PrivateFact("b", "Lena", "Castelli was dismissed for stealing laptops."),
    )
    turns = (
        ("Oskar", "Lindqvist has already rescued a swimmer and Brandt was dismissed for forging receipts."),
        ("Lena", "Castelli was dismissed for stealing laptops."),
        ("Oskar", "Goodbye, Lena."),
    )
    found = {leak.fact.id: leak for leak in track(detector, [(facts, turns)])[0].leaks}
    assert [(found[name].turn, found[name].kind) for name in "ab"] == [(0, "omniscient"), (1, "self")]
    assert found["a"].finding.probability > 0.99 and "forging receipts" in found["a"].finding.evidence


def test_thresholds_are_fitted_to_labels(detector: LeakageDetector, tmp_path: Path) -> None:
    rows: Any = read_labelled(DATA / "train.pairs.jsonl")[:60]
    weights = calibrated(detector, rows)
    weights.write(tmp_path / "w.json")
    assert Weights.read(tmp_path / "w.json").disclosed_from == pytest.approx(weights.disclosed_from, abs=1e-4)
    with pytest.raises(InvalidInput, match="not"):
        calibrated(detector, [row for row in rows if row.label == "none"])


# ---- conversations -------------------------------------------------------------------------------------------------

OWN = PrivateFact("a", "Ana", "Ana is pregnant.")


EVEN = replace(Weights.read(), talk_slope=1.0, talk_intercept=0.0, talk_words=0.0, talk_rival=0.0, talk_from=0.5)
"""Weights with which a turn of a conversation is as probable as its pair."""


def finding(label: Any) -> Finding:
    return Finding(label, {"disclosed": 0.9, "hint": 0.3, "none": 0.1}[label], 0.8, "words")


def test_the_first_disclosure_counts_and_who_made_it() -> None:
    rows = [
        (OWN, 0, "Ana", finding("hint")),
        (OWN, 2, "Bo", finding("disclosed")),
        (OWN, 3, "Ana", finding("disclosed")),
    ]
    talk = decided(rows, EVEN)
    assert [(leak.turn, leak.kind) for leak in talk.leaks] == [(2, "omniscient")]
    assert len(talk.findings) == 3


def test_measures_of_transcripts() -> None:
    class Exact:
        weights = EVEN

        def classify(self, pairs: list[Pair]) -> list[Finding]:
            return [finding("disclosed" if "!" in pair.utterance else "none") for pair in pairs]

    row: Any = read_labelled(DATA / "train.transcripts.jsonl")[0]
    facts = row.facts[:1]
    turns = (("Jess", "Hm"), (facts[0].owner, "It is so!"), ("Jess", "Oh"))
    label = type(row)(facts, turns, {facts[0].id: type(next(iter(row.disclosures.values())))(1, True)})
    found = accuracy.of_transcripts(Exact(), [label])  # type: ignore[arg-type]
    assert found["first_turn_accuracy"] == 1.0 and found["position_mae"] == 0.0
    assert found["omniscient_recall"] is None and found["silence_accuracy"] is None
    assert len(list(pairs_of(facts, turns))) == 3
    assert track(Exact(), [(facts, turns)])[0].leaks[0].turn == 1  # type: ignore[arg-type]


class Silent:
    """A detector whose findings are given."""

    weights = EVEN


def labelled(scenario: Any, turns: Any, rows: list[Row]) -> Any:
    """The leaks of a conversation with these findings of a detector."""
    return leaks.with_terms(scenario, turns, rows, Silent())  # type: ignore[arg-type]


SCENE = """
version: 1
id: planted
title: t
info: {what: x}
setting: Ana and Bo meet at the station.
agents:
  - name: Ana
    goal: Chat.
    facts:
      - {id: soon, text: Ana is pregnant., disclosure: late}
      - {id: kept, text: Ana has sold her grandmother's piano., disclosure: never}
      - {id: later, text: Ana has a twin brother., disclosure: late}
  - name: Bo
    goal: Chat.
    facts:
      - {id: used, text: Bo lost his job on Friday., disclosure: free}
"""
TALK = (
    ("Ana", "I am pregnant, imagine that."),
    ("Bo", "Congratulations! The train is late again."),
    ("Ana", "You lost your job on Friday, Bo, so you have time."),
    ("Bo", "It rains a lot this week."),
    ("Ana", "I have a twin brother, by the way."),
)


def test_planted_leaks_give_the_right_rows(store: Store) -> None:
    scenario = parse_scenario(SCENE, "planted.yaml").scenario
    facts = leaks.private_facts(scenario)
    detector = LeakageDetector()
    talk = leaks.with_terms(scenario, TALK, read(detector, [(facts, TALK)])[0], detector)
    turns = tuple(Turn(index, speaker, Action("speak", text)) for index, (speaker, text) in enumerate(TALK))
    subject = Subject("e1", scenario, AnswerKey(), "agents", 0, 1, Transcript(turns))
    found = leaks.evaluation(subject, leaks.turns_of(subject), talk)
    episode = EpisodeRecord("e1", "r", "h", "agents", "m", 0, 1, "s", "{}")
    scene = ScenarioRecord("h", "planted", "t", None, scenario.model_dump_json(), "{}", None)
    ended = EpisodeEnded("e1", "completed", "turn_limit", None, len(TALK), 1.0)
    scores = score_records("e1", leaks.EVALUATOR, VERSION, found.scores)
    store.take_in([scene, episode, ended, *found.records, *scores])
    hint = LeakRecord("e1", VERSION, "later", 3, "Ana", "", "Bo", "hint", "omniscient", 0.4, 0, "", False, False)
    store.take_in([hint])
    assert store.rows("SELECT earliest, latest FROM v_leaks WHERE fact_id = 'soon'") == [{"earliest": 0, "latest": 0}]
    told = store.rows("SELECT turn, probability FROM leaks WHERE fact_id = 'later'")
    spans = store.rows("SELECT earliest, latest FROM v_leaks WHERE fact_id = 'later'")
    assert tuple(spans[0].values()) == between({row["turn"]: row["probability"] for row in told}, 4) == (3, 4)
    rows = store.rows("SELECT fact_id, turn, speaker, kind, early FROM v_leaks ORDER BY turn")
    assert [tuple(row.values()) for row in rows] == [
        ("soon", 0, "Ana", "self", True),
        ("used", 2, "Ana", "omniscient", False),
        ("later", 4, "Ana", "self", False),
    ], "`kept` never came out"
    scores = store.rows("SELECT agent, name, value FROM v_scores WHERE evaluator = 'leakage'")
    assert {(row["agent"], row["name"]): row["value"] for row in scores}[("Ana", "omniscient_leaks")] == 1.0


def test_what_the_speaker_holds_too_is_no_leak() -> None:
    text = SCENE.replace("Ana is pregnant.,", "Ana is pregnant., terms: [pregnant],").replace(
        "Bo lost his job on Friday.,", "Bo knows that Ana is pregnant., terms: [pregnant],"
    )
    scenario = parse_scenario(text, "t.yaml").scenario
    turns = (("Ana", "Hello."), ("Bo", "So you are pregnant!"))
    talk = labelled(scenario, turns, [(leaks.private_facts(scenario)[0], 1, "Bo", finding("disclosed"))])
    assert not [leak for leak in talk.leaks if leak.fact.id == "soon"]


def test_a_term_makes_a_finding_one_step_surer() -> None:
    text = SCENE.replace("Ana is pregnant.,", "Ana is pregnant., terms: [expecting],")
    scenario = parse_scenario(text, "t.yaml").scenario
    fact = leaks.private_facts(scenario)[0]
    turns = (("Ana", "I am expecting."),)
    assert [found.label for _, _, found in labelled(scenario, turns, []).findings] == ["hint"]
    surer = labelled(scenario, turns, [(fact, 0, "Ana", finding("hint"))])
    assert [leak.fact.id for leak in surer.leaks] == ["soon"]


@pytest.mark.parametrize(
    ("said", "label"),
    [("Deal, $66 it is!", "hint"), ("I cannot go below $70, sorry.", "disclosed"), ("That is my limit.", "disclosed")],
)
def test_words_about_another_amount_do_not_disclose_an_amount(said: str, label: str) -> None:
    text = SCENE.replace("Ana is pregnant.,", "Ana's lowest price is $70., terms: [$70],")
    scenario = parse_scenario(text, "t.yaml").scenario
    found = [(leaks.private_facts(scenario)[0], 0, "Ana", finding("disclosed"))]
    assert [each.label for _, _, each in labelled(scenario, (("Ana", said),), found).findings] == [label]


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ("Four hundred is what I owe.", "disclosed"),
        ("I owe her 250, that's all.", "hint"),
        ("I owe my sister money, all of it.", "disclosed"),
        ("One day I will tell you what I owe.", "disclosed"),
    ],
)
def test_who_names_another_number_does_not_disclose_a_number(said: str, label: str) -> None:
    text = SCENE.replace("Ana is pregnant.,", "Ana owes her sister 400 dollars., terms: ['400', four hundred],")
    scenario = parse_scenario(text, "t.yaml").scenario
    found = [(leaks.private_facts(scenario)[0], 0, "Ana", finding("disclosed"))]
    assert [each.label for _, _, each in labelled(scenario, (("Ana", said),), found).findings] == [label]


@pytest.mark.parametrize(
    ("rule", "position", "early"),
    [("never", 1.0, True), ("late", 0.4, True), ("late", 0.5, False), ("free", 0.0, False)],
)
def test_early_is_what_breaks_the_rule(rule: Any, position: float, early: bool) -> None:
    turns = tuple(("Ana", "word") for _ in range(11))
    assert leaks.early(rule, round(position * 10), turns, {}) is early


@pytest.mark.parametrize(
    ("rule", "turn", "early"),
    [
        (After(turn=2), 1, True),
        (After(turn=2), 2, False),
        (After(fact="other"), 2, True),
        (After(fact="other"), 3, False),
        (After(fact="untold"), 3, True),
        (After(said="PLEASE tell me"), 0, True),
        (After(said="PLEASE tell me"), 1, False),
        (After(said="never said"), 3, True),
    ],
)
def test_a_fact_may_wait_for_a_turn_another_fact_or_words(rule: After, turn: int, early: bool) -> None:
    turns = (("Ana", "Hello."), ("Ben", "Please tell me."), ("Ana", "No."), ("Ana", "Well."))
    assert leaks.early(rule, turn, turns, {"other": 3}) is early


def test_vectors_are_computed_once(store: Store) -> None:
    store.ensure_usable()
    store.take_in([])
    first = leaks.VectorCache(store)
    vectors = first.encode(["Hello there", "Goodbye"])
    store.take_in(first.records())
    again = leaks.VectorCache(store)
    assert np.abs(again.encode(["Goodbye", "Hello there"]) - vectors[::-1]).max() < 1e-6
    assert again.records() == []
    query = "SELECT array_inner_product(a.vector, b.vector) AS c FROM vectors a, vectors b WHERE a.text < b.text"
    assert store.rows(query)[0]["c"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
    with store.writing() as connection:  # as a foreign file may have them
        connection.execute("UPDATE vectors SET vector = ?", [[float("nan")] * 384])
    assert np.abs(leaks.VectorCache(store).encode(["Goodbye", "Hello there"]) - vectors[::-1]).max() < 1e-6


def test_a_price_that_is_called_the_others_target_is_a_leak_and_an_offer_of_it_is_none() -> None:
    """A speaker who has not been told it cannot say it; an offer at this price may be a guess."""
    scenario = generated("craigslist", 3).scenario
    seller, buyer = scenario.names
    term = scenario.agents[1].facts[0].terms[0]
    for said, label in ((f"come on u can pay {term}", "disclosed"), (f"How about {term}?", "hint")):
        for speaker, counts in ((seller, True), (buyer, False)):
            found = labelled(scenario, ((speaker, said),), [])
            assert [each.label for _, _, each in found.findings] == [label if counts else "hint"]
            assert [leak.kind for leak in found.leaks] == (["omniscient"] if counts and label == "disclosed" else [])
    named = labelled(scenario, ((buyer, f"How about {term}?"), (seller, f"ok so u can pay {term}.")), [])
    assert not named.leaks, "its owner has named it"


def test_a_friend_whom_both_know_is_nobodys_leak() -> None:
    """The one thing that agents are after: naming the friend on the own list is a disclosure of the own side."""
    scenario = generated("mutual_friends", 3).scenario
    mine, theirs = (agent.facts for agent in scenario.agents)
    shared = next(fact for fact in mine if fact.terms[0] in {other.terms[0] for other in theirs})
    strange = next(fact for fact in mine if fact.terms[0] not in {other.terms[0] for other in theirs})
    one, two = scenario.names
    turns = (
        (one, "Hello!"),
        (two, f"Do you know {shared.terms[0]}?"),
        (one, f"Yes, I know {shared.terms[0]}."),
        (two, f"And {strange.terms[0]}?"),
        (one, f"{strange.terms[0]}, yes."),
        (two, f"So {strange.terms[0]} it is."),
    )
    talk = labelled(scenario, turns, [])
    said = tuple(Turn(index, speaker, Action("speak", text)) for index, (speaker, text) in enumerate(turns))
    subject = Subject("e", scenario, AnswerKey(), "agents", 0, 1, Transcript(said))
    records = leaks.evaluation(subject, turns, talk).records
    kinds = [(record.turn, record.kind) for record in records if isinstance(record, LeakRecord)]
    assert kinds == [(1, "self"), (2, "self"), (3, "omniscient"), (4, "self"), (5, "repeat")]
    first = [(leak.turn, leak.kind) for leak in talk.leaks if leak.fact.text == strange.text]
    assert first == [(3, "omniscient")]
