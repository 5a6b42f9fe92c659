"""Measure how often the parsers of endings and names agree with the labels in a file of conversations.

    python scripts/measure_endings.py tests/data/endings_heldout.jsonl [--json] [--errors] [--write [PATH]]
    python scripts/measure_endings.py tests/data/endings_people.jsonl --half heldout --write --key people
    python scripts/measure_endings.py tests/data/endings_voices.jsonl --half heldout --by source

Each line of FILE is a conversation: {"id", "kind": a family, "turns": [{"speaker", "action", "text"}], "label": ...}
with seller, buyer and list_price (dollars), or with friends (agent -> names), and "half" where a file has two halves.
Intervals are Wilson's, 95%. tests/data/README.md says who wrote and labelled the files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.conversation.transcript import Action, Turn  # noqa: E402
from localsim.families.craigslist.endings import bargain_ending  # noqa: E402
from localsim.families.mutual_friends.names import friends_outcome  # noqa: E402

DEFAULT_TARGET = ROOT / "localsim" / "families" / "accuracy.json"
KINDS = ("deal", "no_deal", "unknown")


@dataclass
class Tally:
    """Count the right answers of one measure, and keep the ids of the wrong ones."""

    right: int = 0
    n: int = 0
    wrong_ids: list[str] = field(default_factory=list)

    def add(self, correct: bool, row_id: str) -> None:
        """Count one answer."""
        self.n += 1
        self.right += correct
        if not correct:
            self.wrong_ids.append(row_id)

    @property
    def accuracy(self) -> float:
        """Share of right answers, 0 to 1; nan without answers."""
        return self.right / self.n if self.n else float("nan")

    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95% interval of the share."""
        if not self.n:
            return (float("nan"), float("nan"))
        bounds = binomtest(self.right, self.n).proportion_ci(method="wilson")
        return (float(bounds.low), float(bounds.high))


@dataclass
class Result:
    """Tallies by measure, and the counts of (labelled ending, parsed ending)."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, measure: str, correct: bool, row_id: str) -> None:
        """Count one answer to `measure`."""
        self.tallies.setdefault(measure, Tally()).add(correct, row_id)


def turns_of(row: dict[str, Any]) -> list[Turn]:
    """Return the turns of a labelled conversation."""
    return [
        Turn(number, turn["speaker"], Action(turn["action"], turn["text"])) for number, turn in enumerate(row["turns"])
    ]


def measure_bargain(row: dict[str, Any], result: Result) -> None:
    """Compare the ending of a conversation with its label, and the price if the label is a deal."""
    label = row["label"]
    found = bargain_ending(turns_of(row), seller=row["seller"], buyer=row["buyer"], list_price=float(row["list_price"]))
    result.confusion[label["ending"], found.kind] += 1
    result.add("ending", found.kind == label["ending"], row["id"])
    if label["ending"] == "deal":
        right = found.price is not None and abs(found.price - float(label["price"])) < 0.01
        result.add("deal_price", right, row["id"])


def measure_friends(row: dict[str, Any], result: Result) -> None:
    """Compare the named friend, turn, speaker, confirmation and number of wrong guesses with the label."""
    label = row["label"]
    found = friends_outcome(turns_of(row), row["friends"])
    wrong = label["wrong_guesses"]
    count = wrong if isinstance(wrong, int) else len(wrong)
    result.add("first_named", found.first_named == label["first_named"], row["id"])
    result.add("named_turn", found.named_turn == label["named_turn"], row["id"])
    result.add("confirmed", found.confirmed == label["confirmed"], row["id"])
    result.add("wrong_guesses", len(found.wrong_guesses) == count, row["id"])
    for key in ("named_by", "confirmed_friend"):
        if key in label:
            result.add(key, getattr(found, key) == label[key], row["id"])


MEASURES: dict[str, Callable[[dict[str, Any], Result], None]] = {
    "craigslist": measure_bargain,
    "mutual_friends": measure_friends,
}
FAMILY_OF_MEASURE = {
    **dict.fromkeys(("ending", "deal_price"), "craigslist"),
    **dict.fromkeys(
        ("first_named", "named_turn", "confirmed", "wrong_guesses", "named_by", "confirmed_friend"), "mutual_friends"
    ),
}


def measure(rows: Iterable[dict[str, Any]]) -> Result:
    """Measure labelled conversations."""
    result = Result()
    for row in rows:
        MEASURES[row["kind"]](row, result)
    return result


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the conversations of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def by_ending(result: Result) -> dict[str, dict[str, int]]:
    """Return for each labelled ending how many the parser reads right, of how many, and how often it says this."""
    return {
        kind: {
            "right": result.confusion[kind, kind],
            "n": sum(result.confusion[kind, found] for found in KINDS),
            "said": sum(result.confusion[label, kind] for label in KINDS),
        }
        for kind in KINDS
    }


def as_json(result: Result, file: str, n: int) -> dict[str, Any]:
    """Return the summary that is stored with the package: counts without ids.

    `endings`: by label; recall is right / n, precision is right / said. `confusion`: label -> parser's answer -> count.
    """
    measures = {
        name: {"right": tally.right, "n": tally.n, "family": FAMILY_OF_MEASURE[name]}
        for name, tally in result.tallies.items()
    }
    confusion = {label: {found: result.confusion[label, found] for found in KINDS} for label in KINDS}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "file": file,
        "n": n,
        "measures": measures,
        **({"endings": by_ending(result), "confusion": confusion} if result.confusion else {}),
    }


def store(summary: dict[str, Any], target: Path, key: str | None) -> None:
    """Write a summary into the JSON file `target`: under `key`, or as its own keys; other keys stay."""
    stored = json.loads(target.read_text(encoding="utf-8")) if target.is_file() else {}
    stored |= {key: summary} if key else summary
    target.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


def print_table(result: Result) -> None:
    """Print the measures and the confusion table of endings."""
    for name, tally in result.tallies.items():
        low, high = tally.interval()
        print(f"{name:18} {tally.right:4} of {tally.n:4}  {tally.accuracy:.3f}  [{low:.3f}, {high:.3f}]")
    if result.confusion:
        print("\nendings: rows are labels, columns are the parser's answers")
        print(f"{'':10}" + "".join(f"{kind:>10}" for kind in KINDS) + f"{'n':>10}{'recall':>10}")
        for label in KINDS:
            counts = [result.confusion[label, kind] for kind in KINDS]
            recall = result.confusion[label, label] / sum(counts) if sum(counts) else float("nan")
            print(f"{label:10}" + "".join(f"{count:10}" for count in counts) + f"{sum(counts):10}{recall:10.3f}")
        shares = [part["right"] / part["said"] if part["said"] else float("nan") for part in by_ending(result).values()]
        print(f"{'precision':10}" + "".join(f"{share:10.3f}" for share in shares))


def main() -> None:
    """Read the command line, measure, print and store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--errors", action="store_true", help="list the ids of wrong answers")
    parser.add_argument(
        "--write", type=Path, nargs="?", const=DEFAULT_TARGET, help=f"store the summary in PATH [{DEFAULT_TARGET.name}]"
    )
    parser.add_argument("--key", help="store the summary under this key, beside what PATH holds")
    parser.add_argument("--half", choices=("dev", "heldout"), help="measure only the conversations of this half")
    parser.add_argument("--by", metavar="FIELD", help="print each value of this field first, such as source")
    options = parser.parse_args()
    rows = [row for row in read_rows(options.file) if options.half in (None, row.get("half"))]
    values = sorted({str(row[options.by]) for row in rows if options.by in row})
    if options.by and not values:
        parser.error(f"{options.file}: no conversation has a field {options.by!r} (--by)")
    for value in values:
        print(f"== {value}")
        print_table(measure(row for row in rows if str(row.get(options.by)) == value))
        print()
    result = measure(rows)
    summary = as_json(result, options.file.name, len(rows)) | ({"half": options.half} if options.half else {})
    if options.json:
        print(json.dumps(summary, indent=2))
    else:
        print_table(result)
    if options.errors:
        for name, tally in result.tallies.items():
            print(f"{name}: {' '.join(tally.wrong_ids) or 'none wrong'}", file=sys.stderr)
    if options.write:
        store(summary, options.write, options.key)


if __name__ == "__main__":
    main()
