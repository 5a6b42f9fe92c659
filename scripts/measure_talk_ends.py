"""Measure where the rules `closing` and `stale` would have ended conversations, and what was said after that.

    python scripts/measure_talk_ends.py tests/data/endings_people.jsonl [FILE...] [--show]

Each line of FILE is a conversation: {"id", "turns": [{"speaker", "text"}]}; for other corpora, write such lines from
their files. `stale` is measured for every number of repeated turns. `--show` prints the turns around each end.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from localsim.conversation.rules.endings import all_took_leave, nothing_new
from localsim.conversation.transcript import Action, Transcript, Turn


def main() -> int:
    """Print one table for each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="print the turns around each end")
    options = parser.parse_args()
    for file in options.files:
        talks = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
        measure(file.name, {str(each["id"]): read(each["turns"]) for each in talks}, show=options.show)
    return 0


def read(turns: list[dict[str, str]]) -> Transcript:
    """Return the conversation; a turn without words is left out."""
    said = [(turn["speaker"], turn["text"]) for turn in turns if turn["text"].strip()]
    return Transcript(tuple(Turn(index, name, Action("speak", text)) for index, (name, text) in enumerate(said)))


def measure(name: str, talks: dict[str, Transcript], *, show: bool) -> None:
    """Print the numbers of conversations that each rule would have ended, and of those in which more was said."""
    closed = {key: end for key, talk in talks.items() if (end := closing(talk)) is not None}
    later = {key: end for key, end in closed.items() if end < len(talks[key])}
    print(f"{name}: {len(talks)} conversations; closing ends {len(closed)}, after {len(later)} more was said")
    for key, end in later.items() if show else ():
        print(f"  {key}: " + " / ".join(turn.line for turn in talks[key].turns[end - 2 : end + 3]))
    runs = [longest(talk) for talk in talks.values()]
    ended, on = Counter(whole for whole, _ in runs), Counter(before for _, before in runs)
    for number in range(2, 1 + max(ended, default=0)):
        many, too_soon = (sum(n for run, n in found.items() if run >= number) for found in (ended, on))
        print(f"  stale: {number}: ends {many}, after {too_soon} something new was said")


def closing(talk: Transcript) -> int | None:
    """Return after how many turns all have said goodbye; None if they never do."""
    names = {turn.speaker for turn in talk.turns}
    lengths = range(len(names), len(talk) + 1)
    return next((n for n in lengths if all_took_leave(Transcript(talk.turns[:n]), tuple(names))), None)


def longest(talk: Transcript) -> tuple[int, int]:
    """Return the longest run of turns that repeat earlier ones, and the longest after which something new came."""
    repeats = [nothing_new(Transcript(talk.turns[: number + 1]), 1) for number in range(len(talk))]
    last_new = max((number for number, same in enumerate(repeats) if not same), default=0)
    run, runs = 0, []
    for same in repeats:
        run = run + 1 if same else 0
        runs.append(run)
    return max(runs, default=0), max(runs[:last_new], default=0)


if __name__ == "__main__":
    sys.exit(main())
