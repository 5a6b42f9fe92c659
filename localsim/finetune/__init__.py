"""Fine-tuning on simulated episodes: chats -> rows of tokens -> a LoRA adapter that llama.cpp loads."""

from __future__ import annotations

from importlib.util import find_spec

from localsim import paths
from localsim.errors import BackendUnavailable


def require_packages() -> None:
    """Raise BackendUnavailable if the packages of the extra `finetune` are not installed."""
    missing = [name for name in ("torch", "transformers", "peft", "gguf") if find_spec(name) is None]
    if missing:
        raise BackendUnavailable(f"fine-tuning needs {', '.join(missing)}", hint=paths.installing("finetune"))
