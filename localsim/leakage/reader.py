"""The pair reader: the embedding model once more, fine-tuned to read fact and utterance together.

Two separate embeddings cannot distinguish a statement from its denial, or from the same words about another person. A
model that reads both sentences together can, within the limits of 22 million parameters. Its training result (changes
of the encoder's six layers in 8 bits per weight, and a head of three classes) is in `reader.npz`, made by
`scripts/train_leakage.py reader`. This is the only module that imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from localsim.errors import ModelMissing
from localsim.leakage import wording
from localsim.leakage.embeddings import encoder_and_tokenizer
from localsim.leakage.pairs import Pair

if TYPE_CHECKING:
    import torch

FILE = Path(__file__).with_name("reader.npz")
MAX_TOKENS = 160
BEFORE, WORDS = 2, 45
"""A pair is read with so many turns before it, and with more of them while all together have at most so many words."""
PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
"""The linear layers of each encoder layer that were trained."""


def texts_of(pair: Pair) -> tuple[str, str]:
    """Return the fact in the speaker's person, and the last turns with roles instead of names.

    Short turns are read with more turns before them: an answer may stand far from what it answers.
    """

    def line(text: str) -> str:
        name, _, said = text.partition(": ")
        role = "me" if name == pair.speaker else "you" if name == pair.owner else name
        return f"{role}: {said}"

    words, count = len(pair.utterance.split()), 0
    for before in reversed(pair.context):
        words += len(before.split())
        if count >= BEFORE and words > WORDS:
            break
        count += 1
    conversation = " ".join([*map(line, pair.context[len(pair.context) - count :]), f"me: {pair.utterance}"])
    return wording.person(pair.fact, pair.owner, pair.speaker), conversation


class PairReader:
    """Returns log-probabilities of none, hint and disclosed. Making one loads them or raises ModelMissing."""

    def __init__(self, file: Path = FILE) -> None:
        import torch

        self._torch = torch
        self._encoder, self._tokenizer = encoder_and_tokenizer()
        try:
            with np.load(file) as stored:
                arrays = {name: torch.from_numpy(stored[name].astype(np.float32)) for name in stored.files}
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            hint = "install localsim again; --no-leaks leaves the search for leaks out of a run"
            raise ModelMissing(f"missing or damaged: {error}", where=str(file), hint=hint) from error
        self._head = (arrays["head.weight"], arrays["head.bias"])
        merge(self._encoder, arrays)
        self._encoder.eval()

    def read(self, pairs: Sequence[Pair], batch: int = 32) -> npt.NDArray[np.float32]:
        """(pairs, 3), in the order given."""
        texts = [texts_of(pair) for pair in pairs]
        # Pairs of one length in one batch: padding is work for nothing.
        order = sorted(range(len(pairs)), key=lambda place: sum(map(len, texts[place])))
        found = np.zeros((len(pairs), 3), dtype=np.float32)
        with self._torch.inference_mode():
            for start in range(0, len(order), batch):
                places = order[start : start + batch]
                scores = classify(self._encoder, self._tokenizer, self._head, [texts[place] for place in places])
                found[places] = self._torch.log_softmax(scores, -1).numpy()
        return found


def classify(
    encoder: Any, tokenizer: Any, head: tuple[torch.Tensor, torch.Tensor], texts: Sequence[tuple[str, str]]
) -> torch.Tensor:
    """Return scores (pairs, 3) from the mean of all tokens and the first token."""
    import torch

    first, second = [one for one, _ in texts], [other for _, other in texts]
    tokens = tokenizer(
        first, second, padding=True, truncation="only_second", max_length=MAX_TOKENS, return_tensors="pt"
    ).to(encoder.device)
    states = encoder(**tokens).last_hidden_state
    mask = tokens["attention_mask"][..., None]
    mean = (states * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.linear(torch.cat([mean, states[:, 0]], -1), *head)


def merge(encoder: Any, arrays: dict[str, torch.Tensor]) -> None:
    """Add the trained changes to the weights: `change` (out, in) times `scale` (out, 1) for each layer."""
    for number, layer in enumerate(encoder.encoder.layer):
        for part in PARTS:
            change = arrays[f"{number}.{part}.change"] * arrays[f"{number}.{part}.scale"]
            layer.get_submodule(part).weight.data += change
