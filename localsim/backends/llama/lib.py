"""The one place that imports llama_cpp, and a small typed layer over its C functions.

A `LlamaModel` is a file's weights and vocabulary; contexts, batches and schedules are the engine's (engine.py).
llama.cpp's log goes to Python's logging, because `verbose=False` of the high-level class redirects file descriptors
of the whole process.
"""

from __future__ import annotations

import copy
import ctypes
import logging
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from localsim import paths
from localsim.backends.evaluator import BATCH
from localsim.errors import BackendUnavailable, ModelMissing

_log = logging.getLogger("localsim.llama_cpp")
_MARK = re.compile(
    r"<(?!0x[0-9A-F]{2}>)[^\s<>]{2,60}>|<[|｜][^<>\n]{1,60}[|｜]>|\[/?[A-Z][A-Z_0-9]{2,30}\]|◁[^◁▷\n]{1,30}▷"
)
_SPECIAL = 1 << 1 | 1 << 3 | 1 << 4  # LLAMA_TOKEN_ATTR_UNUSED, _CONTROL and _USER_DEFINED


@lru_cache(maxsize=1)
def library() -> ModuleType:
    """llama.cpp's low-level bindings, initialised. Raises BackendUnavailable where they cannot be loaded."""
    try:
        import llama_cpp.llama_cpp as bindings
    except (ImportError, OSError, RuntimeError) as error:
        raise BackendUnavailable(f"llama-cpp-python cannot be loaded: {error}", hint=paths.rebuilding()) from error
    bindings.llama_log_set(_log_callback(bindings), None)
    bindings.llama_backend_init()
    return cast(ModuleType, bindings)


@lru_cache(maxsize=1)
def _log_callback(bindings: ModuleType) -> Any:
    levels = {2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}

    def forward(level: int, text: bytes, _user_data: Any) -> None:
        message = text.decode("utf-8", "replace").rstrip()
        if message:
            _log.log(min(levels.get(level, logging.DEBUG), logging.INFO), "%s", message)

    return bindings.llama_log_callback(forward)


def build_description() -> str:
    """The version of the bindings and the processor features that the build uses, stored with every run."""
    system = library().llama_print_system_info().decode()
    import llama_cpp

    return f"llama-cpp-python {llama_cpp.__version__}; {' '.join(system.split())}"


def new_context(model: LlamaModel, *, sequences: int, context: int, threads: int) -> Any:
    """Make a llama.cpp context in the layout that was fastest in measurements (docs/performance.md).

    A cache of `context` tokens for each sequence, flash attention on. Raises BackendUnavailable.
    """
    lib = library()
    params = lib.llama_context_default_params()
    params.n_ctx = context * sequences
    params.n_seq_max = sequences
    params.n_batch = params.n_ubatch = BATCH
    params.n_threads = params.n_threads_batch = threads
    params.flash_attn_type = 1
    params.kv_unified = False
    pointer = lib.llama_init_from_model(model.pointer, params)
    if not pointer:
        raise BackendUnavailable(
            f"llama.cpp cannot make a context of {sequences} x {context} tokens for {model.path.name}",
            hint="try fewer parallel episodes (-j) or a smaller --ctx",
        )
    if model.adapter is not None:
        adapters = (lib.llama_adapter_lora_p_ctypes * 1)(model.adapter)
        lib.llama_set_adapters_lora(pointer, adapters, 1, (ctypes.c_float * 1)(1.0))
    return pointer


def is_mark(text: str) -> bool:
    """Return True for a text that vocabularies have for a mark, such as `<start_of_turn>`, `[INST]` or `<|end|>`."""
    return _MARK.fullmatch(text) is not None


class LlamaModel:
    """A GGUF file in memory: weights (unless `vocab_only`), vocabulary, metadata, and an adapter for its contexts."""

    def __init__(
        self, path: Path, *, vocab_only: bool = False, gpu_layers: int = 0, adapter: Path | None = None
    ) -> None:
        lib = library()
        params = lib.llama_model_default_params()
        params.vocab_only = vocab_only
        params.n_gpu_layers = gpu_layers
        self.path = path
        self.gpu_layers = gpu_layers
        self.pointer = lib.llama_model_load_from_file(str(path).encode(), params)
        if not self.pointer:
            raise ModelMissing(
                "llama.cpp cannot load this file; it is damaged, cut off or not a GGUF model",
                where=str(path),
                hint="check it with: localsim models verify",
            )
        self._users = [1]
        self.adapter = self._loaded(adapter)
        self.vocab = lib.llama_model_get_vocab(self.pointer)
        self.n_vocab: int = lib.llama_vocab_n_tokens(self.vocab)
        self._pieces: dict[int, bytes] = {}
        self._texts: Sequence[str] | None = None
        # SentencePiece vocabularies put a space before any text; a line break in front takes it.
        self._lead = self._raw_tokens("\n", False) if self.text_of(self._raw_tokens("a", False)) != b"a" else []

    def beside(self, adapter: Path | None) -> LlamaModel:
        """The same weights in memory with another adapter, or none; they are freed with their last user."""
        other = copy.copy(self)
        other.adapter = self._loaded(adapter)
        self._users[0] += 1
        return other

    def _loaded(self, adapter: Path | None) -> Any:
        """An adapter of these weights; llama.cpp frees it with them."""
        if adapter is None:
            return None
        pointer = library().llama_adapter_lora_init(self.pointer, str(adapter).encode())
        if not pointer:
            raise ModelMissing("llama.cpp cannot load this adapter", where=str(adapter))
        return pointer

    @property
    def n_ctx_train(self) -> int:
        """Tokens of context that the model was trained for."""
        return self._numbers("context_length", [4096])[0]

    @property
    def n_layers(self) -> int:
        """Number of blocks of the transformer, by the header."""
        return self._numbers("block_count", [1])[0]

    @property
    def width(self) -> int:
        """Numbers that stand for one token between the layers, by the header."""
        return self._numbers("embedding_length", [0])[0]

    @property
    def n_weights(self) -> int:
        """Number of weights in the file; known with `vocab_only` too."""
        return int(library().llama_model_n_params(self.pointer))

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of one token in the cache: keys and values in 16 bits, over all layers.

        Read from the header alone: with `vocab_only` llama.cpp leaves its own fields unset and aborts when asked.
        """
        layers = self.n_layers
        heads = self._numbers("attention.head_count", [1])
        width = self.width // max(*heads, 1)
        key = self._numbers("attention.key_length", [width])[0]
        value = self._numbers("attention.value_length", [width])[0]
        kv_heads = self._numbers("attention.head_count_kv", heads)
        total = sum(kv_heads) if len(kv_heads) == layers else layers * kv_heads[0]
        return 2 * total * (key + value)

    def _numbers(self, key: str, default: list[int]) -> list[int]:
        """A number, or one number for each layer, from the architecture's part of the header."""
        raw = self.metadata(f"{self.metadata('general.architecture')}.{key}")
        return [int(part) for part in re.findall(r"\d+", raw)] if raw else default

    def metadata(self, key: str) -> str | None:
        """A value of the file's header as text, or None."""
        lib = library()
        size = 1 << 10
        while True:
            buffer = ctypes.create_string_buffer(size)
            length = lib.llama_model_meta_val_str(self.pointer, key.encode(), buffer, size)
            if length < 0:
                return None
            if length < size:
                return buffer.value.decode("utf-8", "replace")
            size = length + 1

    def chat_template(self) -> str | None:
        """The Jinja source of the model's chat template, or None. Raises ModelMissing if it is damaged."""
        raw = library().llama_model_chat_template(self.pointer, None)
        try:
            return raw.decode() if raw else None
        except UnicodeDecodeError as error:
            hint = "check it with: localsim models verify"
            raise ModelMissing(f"its chat template is damaged: {error}", where=str(self.path), hint=hint) from None

    def token_text(self, token: int) -> str:
        """The text of a token such as BOS in templates ('' for none)."""
        return library().llama_vocab_get_text(self.vocab, token).decode("utf-8", "replace") if token >= 0 else ""

    def texts(self) -> Sequence[str]:
        """The texts of all tokens, read once."""
        if self._texts is None:
            self._texts = [self.token_text(token) for token in range(self.n_vocab)]
        return self._texts

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Token ids whose pieces make up `text`; `special` decides whether control tokens written in it become such."""
        if not self._lead:
            return self._raw_tokens(text, special)
        return self._raw_tokens("\n" + text, special)[len(self._lead) :]

    def _raw_tokens(self, text: str, special: bool) -> list[int]:
        lib = library()
        data = text.encode("utf-8", "replace")
        size = len(data) + 8
        buffer = (lib.llama_token * size)()
        count = lib.llama_tokenize(self.vocab, data, len(data), buffer, size, False, special)
        if count < 0:
            raise BackendUnavailable(f"the tokenizer of {self.path.name} needs {-count} tokens for {len(data)} bytes")
        return list(buffer[:count])

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for; nothing for control tokens."""
        known = self._pieces.get(token)
        if known is None:
            lib = library()
            buffer = ctypes.create_string_buffer(256)
            length = lib.llama_token_to_piece(self.vocab, token, buffer, 256, 0, False)
            known = buffer.raw[: max(length, 0)]
            self._pieces[token] = known
        return known

    def text_of(self, tokens: Iterable[int]) -> bytes:
        """The bytes that tokens stand for together."""
        return b"".join(self.piece(token) for token in tokens)

    def silent_tokens(self) -> list[int]:
        """Tokens without text that do not end a reply either, such as the marks of roles; no reply may hold them."""
        return [token for token in range(self.n_vocab) if not self.piece(token) and not self.ends_text(token)]

    def mark_tokens(self) -> list[int]:
        """Tokens whose text looks like a mark, whatever kind of token the vocabulary calls them."""
        marks = [token for token, text in enumerate(self.texts()) if is_mark(text)]
        return [token for token in marks if self.piece(token) in (b"", self.texts()[token].encode())]

    def is_special(self, token: int) -> bool:
        """True for a token that is no ordinary text: control, user-defined or unused."""
        return bool(library().llama_vocab_get_attr(self.vocab, token) & _SPECIAL)

    def ends_text(self, token: int) -> bool:
        """True if a token ends a generation (EOS, EOT and the like)."""
        return bool(library().llama_vocab_is_eog(self.vocab, token))

    def begin_tokens(self) -> tuple[int, ...]:
        """The BOS token where the vocabulary demands one at the start, else ()."""
        lib = library()
        return (lib.llama_vocab_bos(self.vocab),) if lib.llama_vocab_get_add_bos(self.vocab) else ()

    def free(self) -> None:
        """Release the memory with its last user."""
        if self.pointer:
            self._users[0] -= 1
            if not self._users[0]:
                library().llama_model_free(self.pointer)
            self.pointer = None
