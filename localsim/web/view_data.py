"""Plain values for the viewer's pages, made from rows of the database. No HTML and no SQL here."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from localsim.backends import person
from localsim.backends.endpoint import sent
from localsim.conversation.episode import CONDITIONS, PEOPLE
from localsim.conversation.grants import condition_name
from localsim.conversation.transcript import NARRATOR
from localsim.errors import InvalidInput
from localsim.families import family_of, in_order, title_of
from localsim.families.base import Verdict
from localsim.families.language import has_foreigner
from localsim.families.mentions import Mention
from localsim.reports import sections
from localsim.reports.compose.alone import beginning
from localsim.reports.document import Table
from localsim.reports.evidence.marks import kind_of
from localsim.reports.evidence.rubrics import choices, rubric_rows
from localsim.reports.evidence.turns import MarkedTurn, is_lucky, marked_turns, tenths, verdict_on
from localsim.reports.figures import pairs, references
from localsim.reports.measures import heading_of
from localsim.reports.render.html import Opening, opening
from localsim.reports.validity.thresholds import sentences, thresholds
from localsim.runs import telling
from localsim.stats import grouped
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode, prompt_of, prompts_of
from localsim.store.journal import journal_folder, read_journal
from localsim.store.queries import pages as page_queries
from localsim.store.queries import runs as run_queries
from localsim.store.queries.pages import Attempt, EpisodeFilter, EpisodeRow, RunRow, Sibling

Row = dict[str, Any]
SCENARIOS_ON_A_PAGE = 25
LIVE_EPISODES, LIVE_BYTES = 4, 2_000_000
"""For a run in progress: how many episodes are shown, and how much of the end of its journal is read."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "mode": CONDITIONS,
    "status": ("completed", "failed", "interrupted"),
    "outcome": ("success", "no success", "failures"),
    "leaks": ("any", "early", "omniscient", "hits"),
}
"""The filters of a run's page with their values. Family and words are free texts."""


ANSWERED_AT_ONCE = 200
"""Completed episodes of a run up to which its page computes the answer before it opens."""
_ANSWERS: OrderedDict[tuple[Any, ...], Told] = OrderedDict()
_ANSWERS_KEPT = 64


@dataclass(frozen=True)
class Told:
    """What a run's page says about all of its talks."""

    opening: Opening
    """What its report begins with."""
    tables: Sequence[Table]
    """The measures of each game beside random and best scripted play; what judges answered by rubrics, and chose."""
    foreign: int
    """Talks that people wrote in another language than the scenario's."""


def answer(store: Store, run_id: str) -> Told:
    """What answers a run; kept until the database changes."""
    key = key_of(store, run_id)
    found = _ANSWERS.get(key)
    if found is None:
        # Other threads drop the oldest answers meanwhile, which may be this one: it is not read from there again.
        data = beginning(store, run_id)
        data = replace(data, pairs=pairs.of_runs(store, [run_id]))
        played = references.of_run(store, run_id, data.run.seed) if data.run.status != "running" else ()
        games = sections.games(replace(data, references=played))
        asked = sections.judged(replace(data, rubrics=rubric_rows(store, run_id), choices=choices(store, run_id)))
        found = _ANSWERS[key] = Told(opening(data), [*games, *asked], _foreign(store, run_id))
        while len(_ANSWERS) > _ANSWERS_KEPT:
            _ANSWERS.popitem(last=False)
    return found


def _foreign(store: Store, run_id: str) -> int:
    if not run_queries.run_facts(store, run_id)["people"]:
        return 0
    return sum(in_other_language(load_episode(store, each)) for each in page_queries.episode_ids(store, run_id))


def in_other_language(episode: StoredEpisode) -> bool:
    """True for a talk in which a person wrote in another language than the scenario's, which the rules do not read."""
    return person.has_part(episode.model) and has_foreigner(episode.transcript.turns, episode.scenario)


def answer_is_near(store: Store, run: RunRow) -> bool:
    """Return True if the answer of a run is known, or so quickly computed that its page can wait for it."""
    if key_of(store, run.run_id) in _ANSWERS:
        return True
    return run.completed <= ANSWERED_AT_ONCE and (
        run.status == "running" or references.are_known(store, run.run_id, run.seed)
    )


def key_of(store: Store, run_id: str) -> tuple[Any, ...]:
    """Return what changes whenever the database does: what was computed for a run is kept under it."""
    return *store.state(), run_id


Key = tuple[str, str]
"""Condition and model."""


@dataclass(frozen=True)
class ScenarioLine:
    """The episodes of one scenario."""

    scenario_id: str
    title: str
    family: str
    cells: Mapping[Key, Sequence[EpisodeRow]]


@dataclass(frozen=True)
class Column:
    """The totals of a condition and model in one family, over all pages."""

    condition: str
    model: str
    rows: Sequence[EpisodeRow]
    all: int | None = None
    """The number of talks from which these were selected by how they went; None if none was left out."""

    @property
    def scored(self) -> list[float]:
        """The successes of completed talks that are known."""
        return [row.success for row in self.rows if row.status == "completed" and row.success is not None]

    @property
    def success(self) -> float | None:
        """The share of successes; selected talks tell nothing about how often talks go so."""
        return sum(self.scored) / len(self.scored) if self.scored and self.all is None else None

    @property
    def turns(self) -> float | None:
        """The mean length of completed talks."""
        turns = [row.turns for row in self.rows if row.status == "completed"]
        return sum(turns) / len(turns) if turns else None

    @property
    def lucky(self) -> bool:
        """True if its untold hits are luck, since nobody sees the other side."""
        return all(map(is_lucky, self.rows))

    @property
    def by_chance(self) -> float:
        """The number of untold hits to expect by chance."""
        return sum(row.by_chance for row in self.rows)

    def total(self, count: str) -> int:
        """The sum of `disclosed`, `omniscient` or `hits`."""
        return round(sum(float(getattr(row, count)) for row in self.rows))


@dataclass(frozen=True)
class Group:
    """The lines of one page in one family."""

    title: str
    columns: Sequence[Column]
    lines: Sequence[ScenarioLine]


@dataclass(frozen=True)
class Matrix:
    """Scenario x condition x model of a run: one page of it, by family."""

    groups: Sequence[Group]
    scenarios: int
    episodes: int
    pages: int


def matrix(store: Store, run_id: str, chosen: EpisodeFilter, size: int = SCENARIOS_ON_A_PAGE) -> Matrix:
    """The episodes of a run that pass a filter, `size` scenarios on a page."""
    counted = [family.hits for family in map(family_of, page_queries.families_of_run(store, run_id)) if family.hits]
    hits, chances = [each.score for each in counted], [each.chance for each in counted]
    rows = page_queries.episodes_of_run(store, run_id, chosen, hits, chances)
    every: Counter[tuple[str, Key]] | None = None
    if chosen.status or chosen.outcome or chosen.leaks or chosen.words:
        unselected = replace(chosen, status="", outcome="", leaks="", words="")
        found = page_queries.episodes_of_run(store, run_id, unselected, hits)
        every = Counter((row.family, (row.condition, row.model)) for row in found)
    by_scenario = grouped((row.scenario_id, row) for row in rows)
    begin = size * (chosen.page - 1)
    shown = list(by_scenario.values())[begin : begin + size]
    lines = [ScenarioLine(own[-1].scenario_id, own[-1].title, own[-1].family, _by_key(own)) for own in shown]
    groups = []
    for family in in_order(line.family for line in lines):
        cells = _by_key(sorted((row for row in rows if row.family == family), key=lambda row: row.place))
        columns = [Column(*key, own, None if every is None else every[family, key]) for key, own in cells.items()]
        here = [line for line in lines if line.family == family]
        groups.append(Group(title_of(family_of(family)), columns, here))
    pages = max(1, -(-len(by_scenario) // size))
    return Matrix(groups, len(by_scenario), len(rows), pages)


def _by_key(rows: Iterable[EpisodeRow]) -> dict[Key, list[EpisodeRow]]:
    return grouped(((row.condition, row.model), row) for row in rows)


@dataclass(frozen=True)
class Instrument:
    """How sure the marks of an episode are. Empty where names decide, and no threshold."""

    tenths: Mapping[str, int] = field(default_factory=dict)
    """Kind of mark -> of ten such marks, how many are right, on labelled examples."""
    pairs: Mapping[str, Any] | None = None
    """Precision and recall on labelled pairs."""
    found_with: Sequence[str] = ()
    """Sentences on thresholds that are not the built-in ones."""


@dataclass(frozen=True)
class ShownTurn(MarkedTurn):
    """A turn with its marks, and what its page tells of them."""

    first: Sequence[tuple[str, Mention, int]] = ()
    """First mentions: kind, mention, and its number in the turn."""


@dataclass(frozen=True)
class MarkedEpisode:
    """An episode with everything that its page marks."""

    episode: StoredEpisode
    turns: tuple[ShownTurn, ...]
    leaks: tuple[Row, ...]
    """Disclosures and hints by the newest detector, in order of turns."""
    siblings: Sequence[Sibling]
    """The other conditions on the same scenario and seed, in the order of modes."""
    verdict: Verdict | None = None
    """What they settled on and what is true; None if no outcome is right or wrong."""
    instrument: Instrument = Instrument()

    @property
    def hits(self) -> int:
        """The number of turns that are untold hits."""
        return sum(bool(turn.hit) for turn in self.turns)

    @property
    def lucky(self) -> bool:
        """True if its untold hits are luck, since nobody sees the other side."""
        return is_lucky(self.episode)

    @property
    def foreign(self) -> bool:
        """True if a person wrote in another language than the scenario's."""
        return in_other_language(self.episode)

    @property
    def strange(self) -> bool:
        """True where a turn is marked as the first mention by a person who has no such fact."""
        return any(kind == "strange" for turn in self.turns for kind, _, _ in turn.first)

    @property
    def scores(self) -> list[Row]:
        """The scores, each with its `heading`."""
        family = self.episode.scenario.family
        return [{**row, "heading": heading_of(row["name"], family)} for row in self.episode.scores]

    @property
    def disclosed(self) -> bool:
        """True where any fact was disclosed."""
        return any(leak["label"] == "disclosed" for leak in self.leaks)

    @property
    def found(self) -> list[Row]:
        """The first disclosure of each fact, as the marks in the turns show them."""
        return [leak for leak in self.leaks if leak["label"] == "disclosed" and leak["first"]]

    @property
    def scored_for_leaks(self) -> bool:
        """True where the episode was searched for leaks."""
        return any(telling.is_search(each["evaluator"], each["value"]) for each in self.episode.scores)


def marked_episode(store: Store, episode_id: str) -> MarkedEpisode:
    """An episode by its whole id. Raises InvalidInput where no episode has it."""
    if not page_queries.has_episode(store, episode_id):
        raise InvalidInput(f"no episode {episode_id}", hint="the list of runs has links to all of them")
    stored = load_episode(store, episode_id)
    leaks = page_queries.newest_leaks(store, episode_id)
    # A fact is no secret once it is disclosed, and a hint is weak evidence: repeats and hints are in the timeline only.
    disclosed = [leak for leak in leaks if leak["label"] == "disclosed" and leak["first"]]
    family = family_of(stored.scenario.family)
    terms = {fact.id: fact.terms for agent in stored.scenario.agents for fact in agent.facts}
    said = {turn["turn"]: turn["text"] or "" for turn in stored.turns}
    for leak in leaks:
        leak["by_name"] = family.terms_disclose and leak["evidence"] != ""
        uttered = (family.utters(said.get(leak["turn"], ""), term) for term in terms.get(leak["fact_id"], ()))
        leak["by_term"] = not leak["by_name"] and any(uttered)
    turns = [_turn(turn, every=not disclosed) for turn in marked_turns(stored, disclosed)]
    verdict = verdict_on(stored, page_queries.answer_key(store, episode_id))
    marked = MarkedEpisode(stored, tuple(turns), tuple(leaks), page_queries.siblings(store, episode_id), verdict)
    return replace(marked, instrument=_instrument(store, marked))


def _instrument(store: Store, marked: MarkedEpisode) -> Instrument:
    """Return how sure the marks are; own thresholds have no accuracy on examples that they were not fitted to."""
    if not marked.scored_for_leaks or family_of(marked.episode.scenario.family).terms_disclose:
        return Instrument()
    used = thresholds(store, marked.episode.run_id)
    if not used or not all(each.built_in for each in used):
        return Instrument(found_with=sentences(used))
    accuracy = used[0].accuracy
    return Instrument(tenths(accuracy), accuracy.get("pairs"))


def _turn(turn: MarkedTurn, *, every: bool) -> ShownTurn:
    """Return a turn for a page; `every` first mention is told, or only those by a person who has no such fact."""
    first = [] if turn.leaks else [(kind_of(each), each, number) for number, each in enumerate(turn.mentions)]
    return ShownTurn(**vars(turn), first=[one for one in first if every or one[0] == "strange"])


@dataclass(frozen=True)
class Prompt:
    """What was read before some turns, word for word."""

    turns: Sequence[int]
    """Adjacent turns; all those of a script come from one prompt."""
    messages: Sequence[Row]
    attempts: Sequence[Attempt]


def prompt(store: Store, episode_id: str, turn: int) -> Prompt:
    """The prompt of one turn and every generation for it. Raises InvalidInput where there is none."""
    messages = prompt_of(store, episode_id, turn, sent)
    return Prompt([turn], messages, [each for each in page_queries.attempts(store, episode_id) if each.turn == turn])


def prompts(store: Store, marked: MarkedEpisode) -> list[Prompt]:
    """The prompts of all turns of an episode; none where people wrote it."""
    if marked.episode.mode == PEOPLE:
        return []
    attempts = page_queries.attempts(store, marked.episode.episode_id)
    found: list[Prompt] = []
    for turn, messages in sorted(prompts_of(store, marked.episode.episode_id, sent).items()):
        if found and messages == found[-1].messages:
            found[-1] = replace(found[-1], turns=[*found[-1].turns, turn])
        else:
            found.append(Prompt([turn], messages, [each for each in attempts if each.turn == turn]))
    return found


@dataclass(frozen=True)
class FactLine:
    """A private fact that comes up."""

    fact: str
    owner: str
    points: Sequence[Row]
    """Its disclosures and hints."""


def timeline(marked: MarkedEpisode) -> list[FactLine]:
    """A line for each private fact that comes up."""
    points = grouped((leak["fact_id"], leak) for leak in marked.leaks)
    return [FactLine(own[0]["fact"], own[0]["owner"], own) for own in points.values()]


@dataclass(frozen=True)
class LiveEpisode:
    """An episode in progress that is not in the database yet."""

    mode: str
    title: str
    turns: list[tuple[str, str]] = field(default_factory=list)
    """Speaker and text."""


def live(store: Store, run_id: str) -> list[LiveEpisode]:
    """The newest episodes in progress that have a turn."""
    journal = journal_folder(store.path) / f"{run_id}.jsonl"
    try:
        events = read_journal(journal, last=LIVE_BYTES)
    except FileNotFoundError:  # the run has ended: its journal is deleted as soon as the database holds all of it
        return []
    episodes: dict[str, LiveEpisode] = {}
    titles = page_queries.scenario_titles(store)
    for event in events:
        if event["event"] == "scenario":
            titles[event["scenario_hash"]] = event["title"]
        elif event["event"] == "episode":
            name = condition_name(event["mode"], event.get("see"))
            episodes[event["episode_id"]] = LiveEpisode(name, titles.get(event["scenario_hash"], ""))
        elif event["event"] == "turn" and event["episode_id"] in episodes:
            episodes[event["episode_id"]].turns.append((event["speaker"] or NARRATOR, event["text"]))
        elif event["event"] == "episode_ended":
            episodes.pop(event["episode_id"], None)
    return [each for each in episodes.values() if each.turns][-LIVE_EPISODES:]
