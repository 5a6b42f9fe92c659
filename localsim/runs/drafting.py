"""Draft situations from a premise: a model writes the words under a grammar, and every draft is checked or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from localsim.backends.base import Backend
from localsim.backends.open import Needs, absolute, open_backends
from localsim.conversation.episode import Sampling, derive_seed
from localsim.conversation.requests import Form, Message, Request
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.evaluators.asking import ask
from localsim.scenarios.casting.cast import cast
from localsim.scenarios.casting.draft import LONGEST_PREMISE, Deal, Field, composed, deal_of, fields_of, read_draft
from localsim.scenarios.casting.rules import parse_situation
from localsim.scenarios.find import people_beside
from localsim.scenarios.writing import free_file, write_file

Lint = Callable[[LoadedScenario], Iterable[str]]
"""Returns the reasons why a casting tells nothing; none for a good one."""
_TOKENS = 900
_TEMPERATURE = 0.8
"""Higher than in talks: the next try must differ."""
_SYSTEM = (
    "You write a short situation in which two people must settle one thing together. They have five options, and each "
    "of them has private reasons against some. Give each role as a noun, such as seller. Give five different options "
    "of one to three words. Write each reason in the third person, as a new plain fact that the other person cannot "
    "know. Write one line for each label."
)


@dataclass(frozen=True)
class DraftForm(Form):
    """The form of a draft: one labelled line for each field of its deal."""

    fields: tuple[Field, ...]

    def grammar(self) -> str:
        lines = " ".join(
            (f'"{field.start}" ' if number else "") + f'" " field-{number} "\\n"'
            for number, field in enumerate(self.fields)
        )
        rules = "\n".join(f"field-{number} ::= {field.grammar}" for number, field in enumerate(self.fields))
        return f"root ::= {lines}\n{rules}\n"

    def finished(self, text: str) -> bool:
        return text.count("\n") >= len(self.fields)

    def forced(self, text: str) -> str:
        """Return the next label where a line has just been closed."""
        done = text.count("\n")
        return self.fields[done].start if text.endswith("\n") and 0 < done < len(self.fields) else ""


@dataclass(frozen=True)
class Draft:
    """What became of one try."""

    name: str
    seed: int
    text: str
    """What the model wrote."""
    problems: tuple[str, ...]
    """The reasons why it is refused; none for one that passes."""
    document: str | None = None
    """The YAML of the situation; None where the lines could not be read."""


def drafts(
    premise: str, model: str, names: Iterable[tuple[str, int]], tries: int, lint: Lint, say: Callable[[str], None]
) -> Iterator[Draft]:
    """Yield each try, refused ones too; `names` are (name, seed) of the wanted situations, `tries` the most for each.

    Raises InvalidInput for a premise that is empty or too long, ModelMissing and BackendUnavailable.
    """
    words = " ".join(premise.split()).replace("{", "(").replace("}", ")")
    if not words or len(words) > LONGEST_PREMISE:
        raise InvalidInput(f"a premise has 1 to {LONGEST_PREMISE} characters, and this one {len(words)}")
    name = absolute(model)
    with open_backends([name], Needs(sequences=1, question=2048), say) as backends:
        for called, seed in names:
            for attempt in range(tries):
                draft = _drafted(backends[name], words, model, called, derive_seed("draft", seed, attempt), lint)
                yield draft
                if not draft.problems:
                    break


def write_drafts(
    premise: str,
    model: str,
    seeds: Iterable[int],
    folder: Path,
    tries: int,
    lint: Lint,
    say: Callable[[str], None],
    *,
    force: bool,
) -> Iterator[tuple[Draft, Path | None]]:
    """Yield what `drafts` yields for `premise_SEED`, with the file in the folder if the draft passes and is written.

    Raises InvalidInput, before the first try, for a file that exists already; and what `drafts` raises.
    """
    files = {seed: free_file(folder, f"premise_{seed:02d}", force=force) for seed in seeds}
    for draft in drafts(premise, model, [(file.stem, seed) for seed, file in files.items()], tries, lint, say):
        file = None if draft.problems or draft.document is None else folder / f"{draft.name}.yaml"
        if file is not None:
            write_file(file, str(draft.document))
        yield draft, file


def _drafted(backend: Backend, premise: str, model: str, name: str, seed: int, lint: Lint) -> Draft:
    deal = deal_of(seed)
    (answer,) = ask(backend, [request(premise, deal, seed)])
    if answer.text is None:
        return Draft(name, seed, "", (str(answer.reply),))
    text = f"{fields_of(deal)[0].start}{answer.text}"
    try:
        words = read_draft(text, deal)
    except ValueError as error:
        return Draft(name, seed, text, (str(error),))
    source = f"Drafted by {model} from the premise: {premise} No person has edited it."
    document = composed(words, deal, name, source)
    return Draft(name, seed, text, tuple(_problems(document, name, lint)), document)


def request(premise: str, deal: Deal, seed: int) -> Request:
    """Return what a model is asked for a draft. The premise is content: it never becomes control."""
    fields = tuple(fields_of(deal))
    labels = "\n".join(field.start for field in fields)
    return Request(
        session=f"draft/{seed}",
        speaker="draft",
        messages=(Message("system", _SYSTEM), Message("user", f"Premise: {premise}\n\nLabels:\n{labels}")),
        prefill=fields[0].start,
        seed=seed,
        max_tokens=_TOKENS,
        sampling=Sampling(temperature=_TEMPERATURE),
        form=DraftForm(fields),
    )


def _problems(document: str, name: str, lint: Lint) -> Iterator[str]:
    """Yield why a draft is refused: a rule of situations, people who do not suit, or what `lint` finds."""
    file = Path(f"{name}.yaml")
    try:
        situation = parse_situation(document, file.name)
        scenario = cast(situation, *people_beside(file), 1)
    except ScenarioInvalid as error:
        yield from dict.fromkeys(f"{problem.path}: {problem.message}" for problem in error.problems)
    except InvalidInput as error:
        yield error.message
    else:
        yield from lint(LoadedScenario(*scenario.split(), f"{file}@1"))


def counted_problems(found: Iterable[Draft]) -> list[tuple[str, int]]:
    """Return (reason, number of refused drafts with it), the most frequent first."""
    return Counter(reason for draft in found for reason in dict.fromkeys(draft.problems)).most_common()
