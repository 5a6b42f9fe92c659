"""Decoys: people who were made up and are not here, with items about as long as those that a viewer may not see.

A prompt with decoys is as long as that of a mindreader and holds no more about the others than that of an agent. The
prompt says that these people are not here, so it stays true.

A decoy follows from the scenario's id, the owner's name, the item's place and its length. The text of a hidden item
matters only if a decoy would have three words in a row, a term or a name in common with it: then another is made.

An item of up to eight characters has a decoy of exactly its length. If the scenario uses every word of this length, the
decoy is question marks. Gender and pronouns have decoys such as "not stated", whatever their length.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

from localsim.conversation.episode import AgentView
from localsim.conversation.scenario import Agent, Fact, Scenario, canonical_hash

NAMES = (
    *("Abelune", "Adwick", "Bertolf", "Brisca", "Calvane", "Cedra", "Corvina", "Dagny", "Delwyn", "Dorvin", "Edlow"),
    *("Elvard", "Emeric", "Fenna", "Fulko", "Galwin", "Gisela", "Godwyn", "Halvard", "Hedda", "Ilka", "Isbert"),
    *("Jorun", "Jutta", "Kolbe", "Kunila", "Leofric", "Lorne", "Ludmer", "Merle", "Mildred", "Norbert", "Nell"),
    *("Odwin", "Orla", "Osmund", "Pernel", "Pelgia", "Quill", "Radulf", "Runa", "Sigrun", "Svend", "Tamsin", "Torvald"),
    *("Ulla", "Ulric", "Valka", "Wendel", "Wilmot", "Ysolde", "Zelma", "Bo-Anders", "Hildegund", "Ansgar", "Marthild"),
)
"""Names of people who are not here; no family gives them to its people."""
_DEEDS = (
    *("naps", "paints", "hums a lot", "bakes pies", "mends nets", "ploughs a field", "carves small spoons"),
    *("drives a red tractor", "tunes the organ of a chapel", "has a cousin in the navy", "draws maps of the coast"),
    *("once rode a camel", "knits", "rows a ferry", "grows leeks", "keeps two goats", "dislikes raw onions"),
    *("walks to the lighthouse every Sunday", "writes letters to a museum in another country", "reads old almanacs"),
    *("owns a broken accordion and a good violin case", "builds boats in bottles", "sleeps in a hammock"),
    *("counts the swallows under the roof each spring", "teaches a parrot to whistle", "polishes brass buttons"),
    *("sails", "skates on frozen ponds", "presses apples", "weaves baskets", "shears sheep", "studies clouds"),
    *(
        "saves for a journey to an island with a volcano",
        "forgot an umbrella on the night train",
        "plays chess by post",
    ),
)
_AIMS = (
    *("sell hay", "paint the fence", "mend the kite", "learn to juggle", "find the lost spade", "repair the old gate"),
    *("plant twelve pear trees", "order new candles", "count the chimneys", "write a song about the harbour"),
    *("teach the dog to swim", "borrow a ladder from the sexton", "visit the windmill before it closes"),
    *("wake early", "sort stamps", "clear the attic", "brew some mint tea", "bring the bell back to the tower"),
    *("ask the miller for two sacks of bran", "win the race of wheelbarrows at the fair", "polish the telescope"),
)
_TRADES = (
    *("miller", "cooper", "sexton", "farrier", "glazier", "thatcher", "ferry pilot", "bell founder", "lamp lighter"),
    *("map engraver", "keeper of a toll bridge", "maker of weather vanes", "inspector of lightning rods"),
)
_SHORT_TRADES = ("DJ", "GP", "MP", "spy", "vet", "pro")
_BRIEF = {
    1: tuple("23456789KMT"),
    2: ("12", "30", "47", "52", "64", "86", "ox", "DJ"),
    3: ("row", "nap", "hum", "jog", "mow", "fry", "240", "715"),
    4: ("sail", "rest", "fish", "walk", "farm", "cook", "1890"),
    5: ("paint", "dance", "climb", "march", "skate", "brush"),
    6: ("travel", "garden", "polish", "picnic", "hammer", "stroll"),
    7: ("whistle", "harvest", "plaster", "journey", "compost", "varnish"),
    8: ("exercise", "practice", "champion", "question", "schedule", "sandwich"),
}
"""Words and numbers by length, which can stand for a goal as well as for a fact."""
_AGES = {1: (3, 9), 3: (100, 109)}
"""Ages by their number of digits; all others are of two."""
_OTHER = ("not stated", "not known", "not asked")
"""Values of fields with few possible values, of which any other would tell what the true one is not."""
_ATTEMPTS = 40
_GO_ON = 0.5
"""Probability of one more clause where a single one could fill the rest, so that equal lengths give various texts."""
_SHARED = 3
"""A decoy shares no run of this many words with an item of the scenario."""
_KNOWN_AT_MOST = 2000
_known: dict[tuple[str, AgentView], AgentView | None] = {}


def decoy_of(scenario: Scenario, shown: AgentView) -> AgentView | None:
    """Return the made-up person for what a view hides of an agent; None if it hides nothing."""
    key = (scenario.hash, shown)
    if key not in _known:
        if len(_known) >= _KNOWN_AT_MOST:
            _known.clear()
        _known[key] = _Maker(scenario, scenario.agent(shown.name)).person(shown)
    return _known[key]


class _Maker:
    """Makes the decoys of one agent."""

    def __init__(self, scenario: Scenario, agent: Agent) -> None:
        self._agent = agent
        self._id = scenario.id
        texts = [text.casefold() for text in _items(scenario)]
        self._runs = {run for text in texts for run in _runs(text)}
        self._short = {" ".join(_words(text)) for text in texts if len(_words(text)) < _SHARED}
        place = scenario.names.index(agent.name)
        names = sorted(NAMES, key=lambda name: canonical_hash([scenario.id, name]))
        # Agents take turns in choosing, so that no two have a decoy in common until all names are used.
        own = [name for name in names[place :: len(scenario.names)] if self._is_free(name)]
        self._names = own or list(NAMES)

    def person(self, shown: AgentView) -> AgentView | None:
        """Return the made-up person in place of what `shown` hides of the agent."""
        agent = self._agent
        named = min(self._names, key=lambda name: abs(len(name) - len(agent.name)))
        profile = tuple(self._profile(shown, named))
        seen = {fact.id for fact in shown.facts}
        hidden = [fact for fact in agent.facts if fact.id not in seen]
        others = [name for name in self._names if name != named] or [named]
        facts = tuple(
            Fact(id=f"decoy_{number}", text=self._made(f"fact {number}", len(fact.text), others[number % len(others)]))
            for number, fact in enumerate(hidden)
        )
        goal = None if shown.goal else self._made("goal", len(agent.goal), "")
        secret = None if shown.secret or not agent.secret else self._made("secret", len(agent.secret), named)
        return AgentView(named, profile, goal, secret, facts) if profile or goal or secret or facts else None

    def _profile(self, shown: AgentView, named: str) -> Iterator[tuple[str, str]]:
        """Yield a made-up value for each field of the profile that is hidden."""
        seen = {label for label, _ in shown.profile}
        for field, value in self._agent.profile:
            label = field.replace("_", " ")
            if value is None or label in seen:
                continue
            text = str(value)
            if label == "age" and text.isdigit():
                ages = _AGES.get(len(text), (20, 79))
                yield label, self._until_free(label, lambda rng, ages=ages: str(rng.randint(*ages)))  # type: ignore[misc]
            elif label in ("age", "gender", "pronouns"):
                yield label, self._until_free(label, lambda rng: rng.choice(_OTHER))
            elif label == "occupation":
                trades = _TRADES if len(text) > max(map(len, _SHORT_TRADES)) else _SHORT_TRADES
                lengths = sorted(trades, key=lambda trade: abs(len(trade) - len(text)))[:4]
                yield label, self._until_free(label, lambda rng, near=lengths: rng.choice(near))  # type: ignore[misc]
            else:
                yield label, self._made(label, len(text), named)

    def _made(self, slot: str, length: int, name: str) -> str:
        """Return a text of about `length` characters about a person, or an aim if there is no name."""
        if length in _BRIEF:
            return self._brief(slot, length)
        subject = name if length >= len(_joined("", min(_DEEDS, key=len), name, 0)) else ""  # a name needs room
        return self._until_free(slot, lambda rng: _text(rng, length, subject))

    def _brief(self, slot: str, length: int) -> str:
        """Return a word of exactly `length` characters; question marks if the scenario uses all of them."""
        words = list(_BRIEF[length])
        random.Random(canonical_hash([self._id, self._agent.name, slot])).shuffle(words)
        return next((word for word in words if self._is_free(word)), "?" * length)

    def _until_free(self, slot: str, make: Callable[[random.Random], str]) -> str:
        """Return the first text that shares nothing with the scenario; the last one if all do."""
        text = ""
        for attempt in range(_ATTEMPTS):
            text = make(random.Random(canonical_hash([self._id, self._agent.name, slot, attempt])))
            if self._is_free(text):
                break
        return text

    def _is_free(self, text: str) -> bool:
        words = f" {' '.join(_words(text))} "
        return not (self._runs & set(_runs(text)) or any(f" {short} " in words for short in self._short))


def _items(scenario: Scenario) -> Iterator[str]:
    """Yield the texts that no decoy may share words with."""
    yield from scenario.names
    for agent in scenario.agents:
        yield from (text for text in (agent.goal, agent.secret) if text)
        yield from (str(value) for _, value in agent.profile if value is not None)
        for fact in agent.facts:
            yield from (fact.text, *fact.terms)
        yield from agent.statements
        yield from (passage.text for passage in agent.background)
        yield from (*agent.knows, *agent.never_heard_of)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = _words(text)
    yield from (tuple(words[start : start + _SHARED]) for start in range(len(words) - _SHARED + 1))


def _text(rng: random.Random, length: int, name: str) -> str:
    """Return sentences of up to three clauses each, whose last one is chosen to reach `length`."""
    pool: Sequence[str] = _DEEDS if name else _AIMS
    clauses = rng.sample(pool, len(pool))
    longest = max(map(len, pool))
    text, count = "", 0
    while True:
        clause = clauses[count % len(clauses)]
        room = length - len(text) - 1
        fits = len(_joined("", clause, name, count)) + len(" and naps") <= room
        if room <= longest and not (fits and rng.random() < _GO_ON):
            clause = min(clauses, key=lambda one: abs(room - len(_joined("", one, name, count))))
            longer = _joined(text, clause, name, count)
            better = abs(length - len(longer) - 1) < abs(length - len(text) - 1)
            return f"{longer if better or not text else text}."
        text, count = _joined(text, clause, name, count), count + 1


def _joined(text: str, clause: str, name: str, count: int) -> str:
    """Return a text with one more clause, which begins a new sentence after every third."""
    if count % 3:
        return f"{text}{', ' if count % 3 == 1 else ' and '}{clause}"
    start = f"{name} {clause}" if name else clause[:1].upper() + clause[1:]
    return f"{text}. {start}" if count else f"{text}{start}"
