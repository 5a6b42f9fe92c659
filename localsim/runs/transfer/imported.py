"""Conversations of people, or of another tool's models, as a run: scored, and stored in one transaction.

A run of people has the mode `people`, which cannot be simulated; conversations of models keep the mode in which they
were made. Neither has prompts or generations, and there is nothing to resume. The same files are stored once, which
their sha256 decides.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from localsim.conversation.episode import CONDITIONS, Subject
from localsim.conversation.human_talks import HumanTalk
from localsim.conversation.scenario import LoadedScenario, canonical_hash
from localsim.conversation.transcript import Transcript, Turn
from localsim.errors import InvalidInput, ModelMissing, writing
from localsim.evaluators.evaluate import Notify, Outcome, evaluated
from localsim.evaluators.leaks import search
from localsim.families import FAMILIES
from localsim.runs.recorder import scenario_record, turn_record
from localsim.runs.runner import begun_record, new_run_id
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.formats import privacylens, sotopia_talks
from localsim.scenarios.formats.reading import Unmapped
from localsim.scenarios.parse import dump_scenario
from localsim.scenarios.talks.read import AUTO, formats, read_talks
from localsim.store.database import Store
from localsim.store.episodes import stored_scenario, stored_scenarios
from localsim.store.queries import runs as queries
from localsim.store.records import EpisodeEnded, EpisodeRecord, Record, RunEnded, score_records

EVALUATOR = "corpus"
"""Evaluator of the scores that a corpus itself gives: its own account of the outcome."""
VERSION = "1"
OWN = "corpus_"
"""Start of the names of these scores; the rest is the name of the score that localsim reads from the words."""
_CENT = 0.005
LONGEST_LABEL = 60
MANY = 500
"""Conversations from which on the import says that it takes a while."""


class Agreement(NamedTuple):
    """Counts of conversations: of `n` whose outcome the corpus gives, localsim reads `equal` the same way."""

    equal: int
    unread: int
    """Conversations in which localsim reads no such outcome."""
    n: int


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    run_id: str
    new: bool
    """False if the same files were imported before, as this run."""
    conversations: int = 0
    scenarios: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """Reason -> number of conversations."""
    notes: dict[str, int] = field(default_factory=dict)
    """Limitation -> number of conversations."""
    agreement: dict[str, Agreement] = field(default_factory=dict)
    """Score -> how often localsim's reading of the words equals the corpus's own account."""

    def as_json(self) -> dict[str, Any]:
        """The object that `import talks --json` prints."""
        return {**vars(self), "agreement": {name: each._asdict() for name, each in self.agreement.items()}}


@dataclass(frozen=True)
class Options:
    """The choices of an import."""

    form: str = AUTO
    label: str = "people"
    """Name of the people in tables, in the place of a model."""
    family: str | None = None
    leaks: bool = True
    """Search the conversations for leaks, if the embedding model is installed."""
    kind: Literal["people", "imported"] = "people"
    """`imported`: conversations of another tool's models."""


def import_talks(store: Store, files: Sequence[Path], options: Options, say: Notify) -> Imported:
    """Store the conversations of files as a run. Raises InvalidInput for a defect; then nothing is stored."""
    if options.form not in formats():
        raise InvalidInput(f"unknown format {options.form!r}", hint=f"formats: {', '.join(formats())}")
    return store_talks(store, files, options, say, lambda: _talks(store, files, options))


Talks = tuple[list[HumanTalk], Mapping[str, int]]
"""Conversations, and reason -> number of those left out."""


def store_talks(
    store: Store, files: Sequence[Path], options: Options, say: Notify, read: Callable[[], Talks]
) -> Imported:
    """Store the conversations that `read` returns as a run of these files. Raises InvalidInput."""
    if not options.label.isprintable() or not 0 < len(options.label.strip()) <= LONGEST_LABEL:
        hint = f"printable text of at most {LONGEST_LABEL} characters"
        raise InvalidInput(f"the label {options.label[:80]!r} cannot be used", where="--label", hint=hint)
    source = _source(files, options)
    store.ensure_usable()
    known = _run_of(store, source)
    if known is not None:
        return Imported(known, new=False)
    talks, left_out = read()
    if len(talks) >= MANY:
        say(f"{len(talks)} conversations are read; scoring them takes a while")
    if not talks:
        reasons = "; ".join(f"{reason}: {n}" for reason, n in left_out.items()) or "it has none"
        where = ", ".join(map(str, files))
        raise InvalidInput(f"no conversation can be imported ({reasons})", where=where, hint="try another --format")
    run_id, records = _records(talks, options, source)
    store.take_in(records)
    if options.leaks:
        _search(store, run_id, say)
    return Imported(
        run_id,
        new=True,
        conversations=len(talks),
        scenarios=len({talk.scenario.hash for talk in talks}),
        left_out=dict(left_out),
        notes=dict(Counter(talk.note for talk in talks if talk.note)),
        agreement=_agreement(talks),
    )


def write_scenarios(store: Store, run_id: str, folder: Path) -> list[Path]:
    """Write the scenarios of a run as files, so that models can be simulated on them. Raises InvalidInput."""
    return write_files(stored_scenarios(store, run_id).values(), folder)


def write_files(scenarios: Iterable[LoadedScenario], folder: Path) -> list[Path]:
    """Write scenarios as files named after their ids. Raises InvalidInput."""
    files: list[Path] = []
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for loaded in scenarios:
            file = folder / f"{loaded.scenario.id}.yaml"
            if file in files:  # two files of a corpus may use one id for two scenarios
                file = folder / f"{loaded.scenario.id}_{loaded.hash[:8]}.yaml"
            file.write_text(dump_scenario(loaded.document), encoding="utf-8")
            files.append(file)
    return files


def _search(store: Store, run_id: str, say: Notify) -> None:
    try:
        search(store, [run_id], say)
    except ModelMissing as error:
        say(f"leaks were not looked for: {error.message} ({error.hint})")


# ---- the files -----------------------------------------------------------------------------------------------------


def _source(files: Sequence[Path], options: Options) -> dict[str, Any]:
    """Return what identifies an import: the files with their sha256, and the choices that change what is stored."""
    parts = []
    for file in files:
        try:
            parts.append({"name": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()})
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", where=str(file)) from error
    hashes = [part["sha256"] for part in parts]
    twice = next((part["name"] for part in parts if hashes.count(part["sha256"]) > 1), None)
    if twice is not None:
        raise InvalidInput("the same file is given twice", where=twice)
    return {
        "kind": options.kind,
        "source": ", ".join(part["name"] for part in parts),
        "sha256": hashes[0] if len(hashes) == 1 else canonical_hash(sorted(hashes)),
        "files": parts,
        "format": options.form,
        "family": options.family,
    }


def _run_of(store: Store, source: dict[str, Any]) -> str | None:
    """Return the run that holds these files already."""
    if not store.path.exists():
        return None
    same = ("sha256", "format", "family")
    for run_id, identities in queries.imported_runs(store).items():
        if any(all(identity.get(key) == source[key] for key in same) for identity in identities):
            return run_id
    return None


def _talks(store: Store, files: Sequence[Path], options: Options) -> tuple[list[HumanTalk], Counter[str]]:
    talks: list[HumanTalk] = []
    left_out: Counter[str] = Counter()
    for file in files:
        for talk in read_talks(file, options.form, _finder(store, file.parent), options.family):
            if isinstance(talk, HumanTalk):
                talks.append(talk)
            else:
                left_out[str(talk)] += 1
    return talks, left_out


def _finder(store: Store, folder: Path) -> Callable[[str, str], LoadedScenario]:
    """Return what finds the scenario that a file in a folder names: a file, or one in the database by id or hash."""
    known: dict[str, LoadedScenario] = {}

    def found(reference: str, where: str) -> LoadedScenario:
        for path in (folder / reference, Path(reference)):
            with suppress(OSError):  # a text that is too long for a file name names no file
                if path.is_file():
                    return find_scenarios([str(path)])[0]
        stored = queries.scenario_named(store, reference) if store.path.exists() else None
        if stored is not None:
            return stored_scenario(store, stored)
        try:
            return find_scenarios([reference])[0]
        except InvalidInput as error:
            hint = "name a scenario file, a bundled scenario, or the id or hash of one in the database"
            raise InvalidInput(f"no scenario {reference!r}", where=where, hint=hint) from error

    def find(reference: str, where: str) -> LoadedScenario:
        if reference not in known:
            known[reference] = found(reference, where)
        return known[reference]

    return find


# ---- the records ---------------------------------------------------------------------------------------------------


def _records(talks: Sequence[HumanTalk], options: Options, source: dict[str, Any]) -> tuple[str, list[Record]]:
    now = datetime.now(UTC)
    run_id = new_run_id(now)
    plan, identities = _plan(talks, options, source), _identities(talks, options.label, source)
    text = json.dumps(plan, sort_keys=True)
    records: list[Record] = [begun_record(run_id, now, text, identities, 0, "imported", 1, len(talks))]
    records += [scenario_record(loaded) for loaded in {talk.scenario.hash: talk.scenario for talk in talks}.values()]
    index: Counter[str] = Counter()
    for talk in talks:
        records += _of_talk(talk, run_id, options.label, index[talk.scenario.hash])
        index[talk.scenario.hash] += 1
    finished = datetime.now(UTC).replace(tzinfo=None).isoformat()
    return run_id, [*records, RunEnded("finished", finished)]


def _plan(talks: Sequence[HumanTalk], options: Options, source: dict[str, Any]) -> dict[str, Any]:
    """Return the plan of an imported run, with the fields of other plans that make sense for it."""
    return {
        "modes": [mode for mode in CONDITIONS if mode in {talk.mode for talk in talks}],
        "model": options.label,
        "roles": {},
        "scenarios": sorted({talk.scenario.hash for talk in talks}),
        "source": source,
    }


def _identities(talks: Sequence[HumanTalk], label: str, source: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the name of each model, or of the people, with its source."""
    found = {model: {**source, "name": model} for talk in talks for _, model in talk.models}
    return found if found and all(talk.models for talk in talks) else {label: source, **found}


def _of_talk(talk: HumanTalk, run_id: str, label: str, index: int) -> Iterator[Record]:
    """Yield the records of a conversation, with its scores."""
    loaded = talk.scenario
    # People make no moves, so values are no part of what is hashed.
    said: list[Any] = [(name, {"type": action.type, "text": action.text}) for name, action in talk.turns]
    private = [{str(number): readers for number, readers in sorted(talk.readers.items())}] if talk.readers else []
    content = canonical_hash(said + private)
    spec_hash = canonical_hash([loaded.scenario.hash, talk.mode, talk.name, content])
    models = dict.fromkeys(loaded.scenario.names, label) | dict(talk.models)
    episode_id = canonical_hash([run_id, spec_hash, index])[:16]
    transcript = Transcript(
        tuple(
            Turn(number, name, action, readers=talk.readers.get(number))
            for number, (name, action) in enumerate(talk.turns)
        )
    )
    subject = _subject(episode_id, talk, transcript, index)
    yield EpisodeRecord(
        episode_id=episode_id,
        run_id=run_id,
        scenario_hash=loaded.hash,
        mode=talk.mode,
        model="|".join(dict.fromkeys(models.values())),
        episode_index=index,
        seed=0,
        spec_hash=spec_hash,
        spec_json=json.dumps({"models": models, "conversation": talk.name}),
    )
    for turn in transcript.turns:
        yield turn_record(episode_id, turn, -1)
    yield EpisodeEnded(episode_id, "completed", talk.stop_reason, None, len(transcript), 0.0)
    yield from evaluated(subject)
    yield from score_records(episode_id, EVALUATOR, VERSION, talk.outcome)


# ---- the corpus's own outcome --------------------------------------------------------------------------------------


def _agreement(talks: Sequence[HumanTalk]) -> dict[str, Agreement]:
    """Return score -> agreement for each score that the corpus and the family of a conversation both give.

    The family reads the words alone: with the buttons that people pressed, both accounts would have one source.
    """
    found: dict[str, list[bool | None]] = defaultdict(list)
    known: set[str] = set()
    for talk in talks:
        family = talk.scenario.scenario.family
        if family is None or family not in FAMILIES or not talk.outcome:
            continue
        words = (turn for turn in talk.turns if turn[1].type != "action")
        transcript = Transcript(tuple(Turn(number, name, action) for number, (name, action) in enumerate(words)))
        subject = _subject("", talk, transcript, 0)
        read = {(each.name, each.agent): each.value for each in Outcome(FAMILIES[family]).evaluation(subject).scores}
        known |= {name for name, _ in read}
        for own in talk.outcome:
            name, value = own.name.removeprefix(OWN), own.value
            if value is not None:
                other = read.get((name, own.agent))
                found[name].append(None if other is None else abs(other - value) < _CENT)
    return {
        name: Agreement(equal=each.count(True), unread=each.count(None), n=len(each))
        for name, each in sorted(found.items())
        if name in known
    }


def _subject(episode_id: str, talk: HumanTalk, transcript: Transcript, index: int) -> Subject:
    return Subject(episode_id, talk.scenario.scenario, talk.scenario.answer, talk.mode, index, 0, transcript)


# ---- files of other tools --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Brought:
    """What came in."""

    files: tuple[Path, ...]
    """The scenario files that were written."""
    unmapped: tuple[Unmapped, ...]
    run: Imported | None = None
    """The run of the conversations; None if the files hold none."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of conversations."""

    def as_json(self) -> dict[str, Any]:
        """The object that `scenarios import --json` prints."""
        return {
            "scenarios": [str(file) for file in self.files],
            "run": self.run.as_json() if self.run else None,
            "left_out": dict(self.left_out),
            "unmapped": [vars(each) for each in self.unmapped],
        }


def bring_sotopia(store: Store, files: Sequence[Path], folder: Path, pairs: int, leaks: bool, say: Notify) -> Brought:
    """Write the scenarios of Sotopia's files to a folder, and store their conversations as a run.

    `pairs` is the most pairs of characters for a situation. Raises InvalidInput for a defect; then nothing is stored.
    """
    found = sotopia_talks.read(files, pairs)
    run = None
    if found.talks:
        options = Options(form="sotopia", label="unknown model", leaks=leaks, kind="imported")
        run = store_talks(store, files, options, say, lambda: (list(found.talks), found.left_out))
    return Brought(tuple(write_files(found.scenarios, folder)), found.unmapped, run, found.left_out)


def bring_privacylens(files: Sequence[Path], folder: Path) -> Brought:
    """Write the seeds of PrivacyLens's files as scenarios to a folder. Raises InvalidInput."""
    scenarios, unmapped = privacylens.read(files)
    return Brought(tuple(write_files(scenarios, folder)), unmapped)
