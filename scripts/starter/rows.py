"""Training rows made in parts on every core, and kept in a compressed file until their sources change."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import zipfile
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.finetune.chats import Chat, TrainingRow, clipped, row_of
from localsim.models.registry import ModelFile

P = TypeVar("P")
Made = tuple[Iterable[Chat], Counter[str]]
"""The chats of a part, and any counts."""


@dataclass
class Rows:
    """Rows of all parts in their order, with their counts."""

    rows: list[TrainingRow] = field(default_factory=list)
    longer: int = 0
    """Rows that were left out because they are too long."""
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def tokens(self) -> int:
        """The number of tokens, prompts included."""
        return sum(len(row.tokens) for row in self.rows)


def made_rows(
    make: Callable[[P], Made],
    parts: Sequence[P],
    base: ModelFile,
    *,
    longest: int,
    cache: Path | None = None,
    sources: Sequence[Path] = (),
    processes: int | None = None,
) -> Rows:
    """Rows of at most `longest` tokens from make(part) for each part, made by one process for each core.

    `make` is a function of a module, because the processes import it. The result does not depend on their number.
    `cache` is a file that keeps the rows; it is made anew if the parts, the base or a file in `sources` changes.
    """
    key = _key(make, parts, base, longest, sources)
    found = read_rows(cache, key) if cache else None
    if found is not None:
        return found
    found = Rows()
    count = min(len(parts), processes or multiprocessing.cpu_count())
    one = partial(_part, make, base.path, longest)
    # New processes instead of copies of this one, in which torch and llama.cpp may have threads.
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        for each in pool.map(one, parts):
            found.rows += each.rows
            found.longer += each.longer
            found.counts += each.counts
    if cache:
        write_rows(cache, key, found)
    return found


def _part(make: Callable[[P], Made], base: Path, longest: int, part: P) -> Rows:
    model = LlamaModel(base, vocab_only=True)
    tokenizer = ChatTokenizer(model)
    chats, counts = make(part)
    rows, longer = clipped([_compact(row_of(chat, tokenizer)) for chat in chats], longest)
    model.free()
    return Rows(rows, longer, counts)


def _compact(row: TrainingRow) -> TrainingRow:
    """The same row in 8 bytes a token instead of 16 and more."""
    return TrainingRow(array("i", row.tokens), array("f", row.weights), row.group)


def _key(make: Callable[[P], Made], parts: Sequence[P], base: ModelFile, longest: int, sources: Sequence[Path]) -> str:
    """A hash of all that the rows depend on; a folder stands for the files in it."""
    digest = hashlib.sha256(f"{make.__qualname__} {list(parts)!r} {base.sha256} {longest}".encode())
    for source in sources:
        for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()


def write_rows(path: Path, key: str, found: Rows) -> None:
    """Write rows as a compressed npz file with their key and a digest of their content."""
    import numpy as np

    about = {
        "key": key,
        "longer": found.longer,
        "counts": found.counts,
        "groups": [row.group for row in found.rows],
    }
    content: dict[str, Any] = {
        "tokens": np.frombuffer(b"".join(array("i", row.tokens).tobytes() for row in found.rows), np.int32),
        "weights": np.frombuffer(b"".join(array("f", row.weights).tobytes() for row in found.rows), np.float32),
        "lengths": np.array([len(row.tokens) for row in found.rows], np.int32),
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez_compressed(file, **content, digest=np.frombuffer(_digest(content), np.uint8))
    part.replace(path)


def read_rows(path: Path, key: str) -> Rows | None:
    """The rows in a file; None if there is none, if it was made from something else, or if it is damaged."""
    import numpy as np

    try:
        with np.load(path) as file:
            content = {name: file[name] for name in ("tokens", "weights", "lengths", "about")}
            whole = file["digest"].tobytes() == _digest(content)
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    about = json.loads(content["about"].tobytes())
    if not whole or about["key"] != key:
        return None
    ends = content["lengths"].cumsum().tolist()
    rows = [
        TrainingRow(
            array("i", content["tokens"][begin:end].tobytes()),
            array("f", content["weights"][begin:end].tobytes()),
            group,
        )
        for begin, end, group in zip([0, *ends], ends, about["groups"], strict=False)
    ]
    return Rows(rows, about["longer"], Counter(about["counts"]))


def _digest(content: dict[str, Any]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(content):
        digest.update(content[name].tobytes())
    return digest.digest()
