"""Opening GGUF files without their vocabulary.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from functools import lru_cache
from pathlib import Path
from typing import Any


def opened(path: Path) -> Any:
    """A `gguf.GGUFReader` of the tensors and single values of a file; arrays such as the vocabulary have no content.

    gguf makes three arrays of each entry, which takes seconds for 150,000 tokens and as many merges. Raises OSError or
    ValueError where the file is no GGUF file.
    """
    try:
        return _reader()(str(path))
    except (struct.error, IndexError) as error:
        raise ValueError(f"the file ends in its header: {error}") from error


@lru_cache(maxsize=1)
def _reader() -> type[Any]:
    import gguf

    string, array = gguf.GGUFValueType.STRING, gguf.GGUFValueType.ARRAY

    class Reader(gguf.GGUFReader):  # type: ignore[misc]  # gguf has no types
        def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[Any]]:
            data = memoryview(self.data)
            if raw_type == array:
                kind, count = struct.unpack_from("<IQ", data, orig_offs)
                sizes = {int(kind): type_().itemsize for kind, type_ in self.gguf_scalar_to_np.items()}
                end = orig_offs + 12
                if kind == string:
                    length = struct.Struct("<Q").unpack_from
                    for _ in range(count):
                        end += 8 + length(data, end)[0]
                elif kind in sizes:
                    end += count * sizes[kind]
                if kind == string or kind in sizes:
                    return end - orig_offs, [], [], [array]
            found: tuple[int, list[Any], list[int], list[Any]] = super()._get_field_parts(orig_offs, raw_type)
            return found

    return Reader
