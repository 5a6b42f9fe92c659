"""The verdict on a search for friends in common, in words: who is agreed on, and who is on both lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from localsim.conversation.episode import Score
from localsim.families.base import Verdict, listed, sentence


def verdict(scores: Mapping[str, Score], true: Sequence[str]) -> Verdict | None:
    """Return the verdict from the scores of the whole episode by name; None if success was not scored."""
    success = scores.get("success")
    if success is None or success.value is None:
        return None
    false = scores.get("false_affirmed")
    names = false.label if false is not None and false.label else ""
    wrong = f" {listed(names.split(', '))} {'are' if ', ' in names else 'is'} not on both lists." if names else ""
    said = re.sub(r" \(not in common: .*\)$", "", success.reason)
    return Verdict(success.value == 1, sentence(said), f"{_truth(true)}{wrong}")


def _truth(true: Sequence[str]) -> str:
    if not true:
        return "Nobody is on both lists."
    return f"{listed(list(true))} {'is' if len(true) == 1 else 'are'} on both lists."
