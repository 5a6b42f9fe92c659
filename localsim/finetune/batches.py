"""Batches of training rows: rows of similar length together, as tensors, prepared ahead of the step that needs them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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

    @property
    def padding(self) -> int:
        """The number of tokens of padding."""
        return int(self.ids.numel()) - self.tokens

    def to(self, device: Any) -> Batch:
        """Copy the tensors to a device; from pinned memory the copies run beside the computation."""
        ids, places, targets, weights = (
            each.to(device, non_blocking=True) for each in (self.ids, self.places, self.targets, self.weights)
        )
        return Batch(ids, places, targets, weights, self.weight, self.tokens)


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
    tensors = (ids, places, ids.roll(-1, 1).flatten()[places], weights.flatten()[places])
    if pinned:
        ids, places, targets, weights = (each.pin_memory() for each in tensors)
    else:
        ids, places, targets, weights = tensors
    return Batch(ids, places, targets, weights, float(weights.sum()), sum(len(row.tokens) for row in rows))


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
