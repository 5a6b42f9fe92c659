"""Style of a conversation: verbosity (arXiv 2403.05020, section 4.2: words a turn) and repetition."""

from __future__ import annotations

from localsim.episode import Score
from localsim.transcript import Transcript

VERSION = "1"


def score(transcript: Transcript) -> list[Score]:
    """words_per_turn (over turns that say something), turns, repeated_turns (share said before, by anybody)."""
    said = [turn for turn in transcript.turns if turn.said]
    scores = [Score("turns", float(len(transcript)))]
    if not said:
        return scores
    scores.append(Score("words_per_turn", sum(turn.words for turn in said) / len(said)))
    seen: set[str] = set()
    repeated = []
    for turn in said:
        words = " ".join("".join(c for c in turn.action.text.casefold() if c.isalnum() or c.isspace()).split())
        if words in seen:
            repeated.append(turn.index)
        seen.add(words)
    scores.append(Score("repeated_turns", len(repeated) / len(said), turns=tuple(repeated)))
    return scores
