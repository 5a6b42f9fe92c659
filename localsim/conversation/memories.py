"""What an agent remembers, and which of it comes to mind: the best for the present turn, by a named rank.

The ranks C-A, C-M, S-C and S-S combine meaning and emotion as Emotional RAG does (arXiv 2410.23041): d_s is the
Euclidean distance of two texts' embeddings, d_e the cosine distance of two vectors of eight emotions, and a sequence
takes twice as many by the first and then the best by the second. This room has no embeddings: `Encode` comes with the
spec.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import mul
from typing import Annotated, Literal, get_args

from pydantic import Field

from localsim.conversation.rules.farewells import SMALL
from localsim.conversation.rules.values import Text, Value

Emotion = Literal["joy", "acceptance", "fear", "surprise", "sadness", "disgust", "anger", "anticipation"]
"""Plutchik's eight, in the order of a vector."""
Rank = Literal["words", "meaning", "emotion", "recency"]
Combined = Literal["C-A", "C-M", "S-C", "S-S"]
Encode = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Gives texts unit vectors of their meaning."""
Score = Annotated[float, Field(ge=1, le=10)]
DECAY = 0.995
"""A memory's recency is this to the power of its age (Park et al. 2023, arXiv 2304.03442)."""
_K1, _B = 1.5, 0.75
"""Constants of BM25 (Robertson and Zaragoza 2009)."""


class Memory(Value):
    """Something that an agent remembers."""

    text: Text
    """What happened, or what was said. A prompt has it only in a turn that recalls it."""
    age: Annotated[float, Field(ge=0)] = 0.0
    """How long ago, such as in turns."""
    emotion: Emotion | Annotated[tuple[Score, ...], Field(min_length=8, max_length=8)] | None = None
    """An emotion, or the strength of all eight from 1 to 10; those that its words tell if not given."""


class Recall(Value):
    """Which memories come to mind before a turn."""

    k: Annotated[int, Field(ge=0, le=20)] = 3
    """At most so many; 0: none."""
    by: Rank | Combined | dict[Rank, Annotated[float, Field(gt=0)]] = "words"
    """A rank, one of the four combinations of meaning and emotion, or the weight of each rank in a sum."""
    span: bool = False
    """True if an agent to whom something comes to mind says a sentence of it, word by word."""

    @property
    def means(self) -> bool:
        """True if it compares meanings, so that it needs an `Encode`."""
        return self.by in get_args(Combined) or "meaning" in ([self.by] if isinstance(self.by, str) else self.by)


def recalled(
    memories: Sequence[Memory], recall: Recall, query: str, encode: Encode | None = None
) -> tuple[Memory, ...]:
    """Return the memories that come to mind, the best first. Of equals the younger one is better, then the later one.

    None comes to mind where meanings are to be compared without `encode`.
    """
    if recall.means and encode is None:
        return ()
    places = sorted(range(len(memories)), key=lambda at: (memories[at].age, -at))
    found = [memories[at] for at in places]  # sorts are stable, so this order decides among equals
    order = _order(found, recall, query, encode) if query and found else range(len(found))
    return tuple(found[at] for at in order)[: recall.k]


def _order(found: Sequence[Memory], recall: Recall, query: str, encode: Encode | None) -> Sequence[int]:
    places = range(len(found))
    if recall.by in get_args(Combined):
        assert encode is not None
        meant = _distances(encode([query, *(each.text for each in found)]))
        felt = [1 - _cosine(emotions_of(query), _felt(each)) for each in found]
        return _combined(str(recall.by), recall.k, meant, felt)
    weights: Mapping[Rank, float] = {recall.by: 1.0} if isinstance(recall.by, str) else recall.by  # type: ignore[dict-item]
    value = [0.0] * len(found)
    for rank, weight in weights.items():
        for at, part in enumerate(_similarity(rank, found, query, encode)):
            value[at] += weight * part
    return sorted(places, key=lambda at: -value[at])


def _combined(name: str, k: int, meant: Sequence[float], felt: Sequence[float]) -> Sequence[int]:
    """Return places in the order of a published combination of two distances."""
    places = range(len(meant))
    if name == "C-A":
        return sorted(places, key=lambda at: meant[at] + felt[at])
    if name == "C-M":
        return sorted(places, key=lambda at: meant[at] * felt[at])
    first, second = (meant, felt) if name == "S-C" else (felt, meant)
    return sorted(sorted(places, key=lambda at: first[at])[: 2 * k], key=lambda at: second[at])


def _similarity(rank: Rank, found: Sequence[Memory], query: str, encode: Encode | None) -> Sequence[float]:
    """Return how near each memory is to the query by one rank, each at most 1."""
    if rank == "recency":
        return [DECAY**each.age for each in found]
    if rank == "emotion":
        return [_cosine(emotions_of(query), _felt(each)) for each in found]
    if rank == "meaning":
        assert encode is not None
        asked, *others = encode([query, *(each.text for each in found)])
        return [_cosine(asked, each) for each in others]
    scores = bm25(query, [each.text for each in found])
    return [score / (max(scores) or 1.0) for score in scores]


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """Return the BM25 of each text for a query; small words do not count."""
    bags = [Counter(_words(text)) for text in texts]
    mean = sum(map(Counter.total, bags)) / len(bags) or 1.0
    scores = [0.0] * len(bags)
    for word in set(_words(query)):
        holders = sum(word in bag for bag in bags)
        rarity = math.log(1 + (len(bags) - holders + 0.5) / (holders + 0.5))
        for at, bag in enumerate(bags):
            count = bag[word]
            scores[at] += rarity * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * bag.total() / mean))
    return scores


def _words(text: str) -> list[str]:
    found = re.findall(r"[^\W_]+", text.casefold())
    return [word.removesuffix("s") if len(word) > 3 else word for word in found if word not in SMALL]


def _distances(vectors: Sequence[Sequence[float]]) -> list[float]:
    asked, *others = vectors
    return [math.dist(asked, each) for each in others]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    dot: float = sum(map(mul, one, other))
    return dot / ((math.hypot(*one) * math.hypot(*other)) or 1.0)


def _felt(memory: Memory) -> Sequence[float]:
    if isinstance(memory.emotion, str):
        return [10.0 if name == memory.emotion else 1.0 for name in get_args(Emotion)]
    return memory.emotion or emotions_of(memory.text)


def emotions_of(text: str) -> Sequence[float]:
    """Return the strength of the eight emotions that English words tell: 1, and 3 more for each word, at most 10."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return [float(min(10, 1 + 3 * sum(word in stems for word in words))) for stems in _TOLD.values()]


_TOLD: Mapping[str, frozenset[str]] = {
    "joy": frozenset("happy happily glad joy joyful delighted love loved lovely wonderful laugh laughed smile smiled "
                     "celebrate celebrated fun great enjoy enjoyed proud cheerful".split()),
    "acceptance": frozenset("trust trusted agree agreed accept accepted thank thanks welcome friend friends kind "
                            "helped forgive forgave promise promised support".split()),
    "fear": frozenset("afraid fear feared scared frightened terrified worry worried nervous panic danger dangerous "
                      "anxious dread threat".split()),
    "surprise": frozenset("surprise surprised surprising sudden suddenly unexpected unexpectedly amazed astonished "
                          "shocked wow incredible".split()),
    "sadness": frozenset("sad sadly cry cried grief mourn lost lose alone lonely sorry miss missed tears died death "
                         "funeral hopeless unhappy".split()),
    "disgust": frozenset("disgust disgusting disgusted gross rotten filthy dirty nasty awful stink stank revolting "
                         "sick".split()),
    "anger": frozenset("angry anger furious mad hate hated rage annoyed shouted yelled unfair insult insulted quarrel "
                       "argued betrayed cheated".split()),
    "anticipation": frozenset("hope hoped hoping expect expected plan planned soon tomorrow wait waiting eager excited "
                              "wish ready prepare prepared".split()),
}  # fmt: skip
