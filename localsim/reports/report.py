"""The report of a run with all that belongs to it: the one composition for terminal, files, pages and studies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from localsim.reports.card import card
from localsim.reports.compose.alone import beginning, report
from localsim.reports.compose.aloud import with_paragraph
from localsim.reports.compose.beside import with_conditions, with_people
from localsim.reports.document import Report
from localsim.reports.evidence.turns import examples
from localsim.reports.figures import pairs, references
from localsim.reports.validity.remarks import Remark
from localsim.reports.validity.thresholds import warnings
from localsim.store.conditions import Condition
from localsim.store.database import Store


@dataclass(frozen=True)
class Ask:
    """What a report is asked to show."""

    run_id: str
    conditions: Sequence[Condition] = ()
    """Conditions of other runs, to stand beside those of the run; some of its own, if not all are to be shown."""
    people: Sequence[str] = ()
    """Runs of imported conversations of people, to stand beside the modes."""
    figures: bool = False
    """Only what figures show: without the paragraph, the card and the references."""
    talks: bool = False
    """With typical conversations and the first picture, for a page."""

    @property
    def beside(self) -> list[str]:
        """The other runs that the report shows."""
        runs = dict.fromkeys([*(each.run_id for each in self.conditions), *self.people])
        return [run_id for run_id in runs if run_id != self.run_id]


def brief(store: Store, ask: Ask) -> Report:
    """Return what one screen of a terminal shows of a report: rows, measures and conclusions."""
    with store.held() as reader:
        found = with_paragraph(reader, beginning(reader, ask.run_id), ask.conditions)
        return with_conditions(reader, found, ask.conditions)


def of(store: Store, ask: Ask) -> Report:
    """Return the report. Raises InvalidInput for a run that cannot stand beside it.

    The database is not held while scripted players play the references.
    """
    with store.held() as reader:
        alone = report(reader, ask.run_id)
        told = warnings(reader, alone.thresholds[:1], ask.run_id, ask.beside)
        found = with_people(reader, replace(alone, remarks=[*alone.remarks, *map(Remark, told)]), ask.people)
        if ask.figures:
            return with_conditions(reader, found, ask.conditions)
        found = with_conditions(reader, with_paragraph(reader, found, ask.conditions), ask.conditions)
        found = replace(found, card=card(reader, found))
        if ask.talks:
            shown = [ask.run_id, *(found.aloud.runs if found.aloud else ())]
            found = replace(found, talks=[example for each in shown for example in examples(reader, each)])
            runs = dict.fromkeys([ask.run_id, *(each.run_id for each in ask.conditions)])
            found = replace(found, pairs=pairs.of_runs(reader, list(runs)))
    return replace(found, references=references.of_run(store, ask.run_id, found.run.seed))
