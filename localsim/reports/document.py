"""What a report is: its values, which `report --json` prints, and the parts of which people read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localsim.annotation.leak_judges import LeakJudge
from localsim.annotation.results import NOTHING, Agreement
from localsim.conversation.measures import Measure
from localsim.families import EVERYDAY, family_of, title_of
from localsim.reports.evidence.playing import SILENT, Playing
from localsim.reports.evidence.turns import Example
from localsim.reports.results import Number, Result
from localsim.reports.validity.correction import Correction
from localsim.reports.validity.findings import UNKNOWN, Bar, Headline
from localsim.reports.validity.instruments import Error
from localsim.reports.validity.judges import Rate, Reliability
from localsim.reports.validity.remarks import Remark
from localsim.reports.validity.thresholds import Thresholds
from localsim.store.queries.reports import Leak

if TYPE_CHECKING:  # these make tables
    from localsim.reports.evidence.interviews import Bank
    from localsim.reports.evidence.rubrics import Choices, Judged
    from localsim.reports.figures.curves import Course
    from localsim.reports.figures.pairs import Paired
    from localsim.reports.figures.references import Reached
    from localsim.reports.validity.robustness import Robustness


@dataclass(frozen=True)
class Run:
    """The run of a report, with what it was made of."""

    run_id: str
    status: str = "finished"
    started_utc: str = ""
    finished_utc: str | None = None
    seed: int = 0
    repro: str = ""
    parallel: int = 1
    episodes_planned: int = 0
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Name of a model -> its identity: a kind, and what is known of its file."""
    versions: Mapping[str, str] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    """The plan as it is stored (`runs.plan`)."""
    scenarios: Sequence[str] = ()
    """The paths of the scenario files, else their ids."""
    title: str = ""
    """The title of its only scenario, or the id of the only file whose variants it played; empty for all others."""
    tokens_generated: int = 0
    tokens_evaluated: int = 0


@dataclass(frozen=True)
class PeopleBeside:
    """A run of people beside the modes."""

    run_id: str
    scenarios: Mapping[str, str]
    """Family -> words that say how many of the people's scenarios are the run's."""


@dataclass(frozen=True)
class Aloud:
    """What is said about a run and others on the same scenarios."""

    runs: Sequence[str]
    """The runs beside the report's own."""
    paragraph: str
    conclusions: Sequence[str]
    bars: Sequence[Bar] = ()
    """What the conclusions are drawn from; JSON leaves them out."""

    def as_json(self) -> dict[str, Any]:
        """Return the object `aloud` of `report --json`."""
        return {"runs": self.runs, "paragraph": self.paragraph, "conclusions": self.conclusions}


@dataclass(frozen=True)
class Report:
    """The values of a report. Rows have the keys that `report --json` prints."""

    run: Run
    playing: Playing = SILENT
    measures: Sequence[Measure] = ()
    comparison: Sequence[Result] = ()
    """A row for each family and condition, those of other runs last."""
    curves: Sequence[Course] = ()
    leaks: Sequence[Leak] = ()
    """First disclosures."""
    thresholds: Sequence[Thresholds] = ()
    """The sets of thresholds with which leaks were found; the first is that of the last search."""
    remarks: Sequence[Remark] = ()
    """Warnings, with the families or models that they are about."""
    judges: Sequence[Reliability] = ()
    naturalness: Sequence[Rate] = ()
    annotations: Agreement = NOTHING
    interviews: Sequence[Bank] = ()
    rubrics: Sequence[Judged] = ()
    choices: Sequence[Choices] = ()
    parser_accuracy: Mapping[str, Any] | None = None
    instruments: Sequence[Error] = ()
    leak_sources: Sequence[str] = ()
    leak_judges: Sequence[LeakJudge] = ()
    corrections: Sequence[Correction] = ()
    robustness: Robustness | None = None
    """What the variants of the prompts change; None if the run has none."""
    headline: Headline = UNKNOWN
    people: Sequence[PeopleBeside] = ()
    """The runs of people beside the modes."""
    aloud: Aloud | None = None
    card: Mapping[str, Any] | None = None
    """The simulation card; None if it was not asked for."""
    references: Sequence[Reached] = ()
    """What random and best play reach in the games of the run."""
    talks: Sequence[Example] = ()
    """Conversations to show on a page; JSON leaves them out."""
    pairs: Sequence[Paired] = ()
    """The first picture of a page; JSON leaves it out."""

    def title_of(self, family: str) -> str:
        """The title of a family; where it is of scenarios without one, that of the run's only scenario."""
        return (family == EVERYDAY.name and self.run.title) or title_of(family_of(family))

    @property
    def warnings(self) -> list[str]:
        """The texts of the remarks, each once."""
        return list(dict.fromkeys(each.text for each in self.remarks))

    @property
    def bars(self) -> list[Bar]:
        """The findings that a terminal draws: those of the paragraph about several runs, or the run's own."""
        if self.aloud:
            return list(self.aloud.bars)
        return [bar for each in self.headline.families if (bar := each.bar)]

    def as_json(self) -> dict[str, Any]:
        """Return the object that `report --json` prints."""
        values = {name: _as_json(value) for name, value in vars(self).items() if name not in ("talks", "pairs")}
        # A report is sent to others, and says nothing of the folders of this machine.
        files = [Path(path).name if Path(path).is_absolute() else path for path in values["run"].get("scenarios", ())]
        values["run"] = {**values["run"], "scenarios": files}
        values["comparison"] = [row.as_json(self.measures) for row in self.comparison]
        found: dict[str, Any] = {}
        for name, value in values.items():
            if value or name not in ("people", "aloud", "card"):
                found[name] = value
            if name == "thresholds":
                found["detector"] = self.thresholds[0].accuracy if self.thresholds else None
                found["warnings"] = self.warnings
        rooted = {part for row in self.comparison for part in row.model.split("|") if Path(part).is_absolute()}
        return _without(found, sorted(rooted, key=len, reverse=True)) if rooted else found


def _without(value: Any, rooted: Sequence[str]) -> Any:
    """Return a value in which the paths of models are names."""
    if isinstance(value, Mapping):
        return {_without(key, rooted): _without(each, rooted) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without(each, rooted) for each in value]
    if isinstance(value, str):
        for path in rooted:
            value = value.replace(path, Path(path).name)
    return value


def _as_json(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return list(map(_as_json, value))
    if isinstance(value, Result):
        return value
    if hasattr(value, "as_json"):
        return value.as_json()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


@dataclass(frozen=True)
class Count:
    """Conversations of a condition."""

    completed: int
    of: int
    failed: int = 0

    @classmethod
    def of_row(cls, row: Result) -> Count:
        """Return the conversations of a row."""
        return cls(row.completed, row.n, row.failed)

    def __str__(self) -> str:
        return f"{self.completed} of {self.of}"


@dataclass(frozen=True)
class Column:
    """The heading of a condition's column."""

    name: str
    mode: str = ""
    twin: int = 0
    model: str = ""
    """Empty if all columns have the same model."""

    @classmethod
    def of_row(cls, row: Result, model: str = "") -> Column:
        """Return the heading of a row."""
        return cls(row.condition, row.mode, row.twin or 0, model)

    def __str__(self) -> str:
        return f"{self.name} {self.model}" if self.model else self.name


@dataclass(frozen=True)
class Term:
    """The heading of a measure's line."""

    text: str
    key: str = ""
    of: str = ""
    """The heading of the measure if the values are not the run's own, but those of references or of the paper."""

    def __str__(self) -> str:
        return self.text


Cell = str | Number | Count | Column | Term
"""A terminal or a document prints `str` of it."""


@dataclass(frozen=True)
class Table:
    """A table for people, with sentences below it."""

    title: str
    heads: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    words: int = 0
    """So many columns from the left hold words; all others hold numbers."""

    @property
    def beside(self) -> frozenset[int]:
        """The rows whose values are not the run's own: those of references, or of the paper."""
        return frozenset(place for place, (first, *_) in enumerate(self.rows) if isinstance(first, Term) and first.of)


@dataclass(frozen=True)
class Section:
    """Tables under one heading, with sentences and warnings below them."""

    title: str
    """Empty if the section goes on with what stands before it."""
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    warnings: Sequence[str] = ()
    paragraph: str = ""
    """Sentences that belong together; the section has nothing else then."""
    folded: bool = True
    """False if a page shows it open, under the end of its title."""
    key: str = ""
    """The name to which a link in the page can lead; empty for none."""
    commands: Sequence[str] = ()
    """Lines for a terminal."""
