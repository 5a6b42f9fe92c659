"""Batches of training rows: rows of similar length together, as tensors, prepared ahead of the step that needs them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from localsim.finetune.chats import TrainingRow

T = TypeVar("T")
R = TypeVar("R")
AHEAD = 2
"""Batches prepared while a step runs."""


@dataclass(frozen=True)
class Batch:
    """Rows as tensors. The places of the targets are computed here, because finding them on a GPU would make the host
    wait for it.
    """

    ids: Any
    """Tokens, one line for each row, with padding after its end."""
    places: Any
    """The positions before the targets, counted through the lines."""
    targets: Any
    weights: Any
    """The weight of each target."""
    weight: float
    """The sum of the weights."""
    tokens: int
    """The number of tokens without padding."""
    positions: Any = None
    """The place of each token in its prompt, where rows have asides."""
    seen: Any = None
    """True where a token (third axis) sees another (fourth), where rows have asides."""

    @property
    def padding(self) -> int:
        """The number of tokens of padding."""
        return int(self.ids.numel()) - self.tokens

    def to(self, device: Any) -> Batch:
        """Copy the tensors to a device; from pinned memory the copies run beside the computation."""
        return self._mapped(lambda each: each.to(device, non_blocking=True))

    def pinned(self) -> Batch:
        """Put the tensors in memory from which a GPU copies without help of the host."""
        return self._mapped(lambda each: each.pin_memory())

    def _mapped(self, change: Callable[[Any], Any]) -> Batch:
        names = ("ids", "places", "targets", "weights", "positions", "seen")
        found = {name: getattr(self, name) for name in names}
        return replace(self, **{name: change(each) for name, each in found.items() if each is not None})


def collated(rows: Sequence[TrainingRow], *, pinned: bool) -> Batch:
    """The tensors of a batch; `pinned` puts them in memory from which a GPU copies without help of the host."""
    import torch

    shape = (len(rows), max(len(row.tokens) for row in rows))
    ids, weights = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
    for line, row in enumerate(rows):
        size = len(row.tokens)
        ids[line, :size] = torch.tensor(row.tokens)
        weights[line, : size - 1] = torch.tensor(row.weights[1:])
    places = weights.flatten().nonzero().squeeze(1)
    targets, sizes = ids.roll(-1, 1).flatten()[places], sum(len(row.tokens) for row in rows)
    weights = weights.flatten()[places]
    batch = Batch(ids, places, targets, weights, float(weights.sum()), sizes)
    if any(row.asides for row in rows):
        batch = replace(batch, **_sight(rows, shape[1]))
    return batch.pinned() if pinned else batch


def _sight(rows: Sequence[TrainingRow], length: int) -> dict[str, Any]:
    """Return positions and seen: a token sees all before it, but in an aside only the lines that the aside follows."""
    import torch

    positions = torch.arange(length).repeat(len(rows), 1)
    seen = torch.ones(length, length, dtype=torch.bool).tril().repeat(len(rows), 1, 1, 1)
    for line, row in enumerate(rows):
        for start, end, at in row.parts:
            positions[line, start:end] = torch.arange(at, at + end - start)
            seen[line, 0, start:end, at:start] = False
    return {"positions": positions, "seen": seen}


def batches(rows: Sequence[TrainingRow], tokens: int, rng: random.Random) -> list[list[TrainingRow]]:
    """Batches of rows of similar length, each up to `tokens` with padding, in random order."""
    keyed = sorted(rows, key=lambda row: len(row.tokens) + rng.random() * 32)
    found: list[list[TrainingRow]] = []
    longest = 0
    for row in keyed:
        longest = max(longest, len(row.tokens))
        if found and (len(found[-1]) + 1) * longest <= tokens:
            found[-1].append(row)
        else:
            found.append([row])
            longest = len(row.tokens)
    rng.shuffle(found)
    return found


def ahead(items: Sequence[T], make: Callable[[T], R]) -> Iterator[R]:
    """Yield make(item) for each item in order; a thread makes the next ones meanwhile."""
    left = iter(items)
    with ThreadPoolExecutor(1) as pool:
        waiting = deque(pool.submit(make, item) for item in islice(left, AHEAD))
        while waiting:
            found = waiting.popleft().result()
            waiting.extend(pool.submit(make, item) for item in islice(left, 1))
            yield found
