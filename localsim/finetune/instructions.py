"""Whether this machine can compute with bfloat16: some name instructions for it that end a process.

A virtual machine can show a processor's matrix instructions (AMX) and forbid them. torch then chooses them for products
of bfloat16 numbers, and the system ends the process (illegal instruction). So a process of its own tries one product.
oneDNN's control of instructions: https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

LIMIT = "ONEDNN_MAX_CPU_ISA"
"""The environment variable that limits the instructions, read when torch first needs it."""
WITHOUT_MATRICES = "AVX512_CORE_BF16"
CPU = Path("/proc/cpuinfo")
_TRIAL = (
    "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(a, a).float().sum().item()"
)


@cache
def bf16_runs() -> bool:
    """Return True if a product of bfloat16 numbers works in this process, if need be without matrix instructions.

    Call it before torch is imported: only then can it keep torch from them.
    """
    named = CPU.is_file() and " amx_" in CPU.read_text(encoding="utf-8", errors="replace")
    if not named or _tried({}):
        return True
    if LIMIT in os.environ or _torch_is_there() or not _tried({LIMIT: WITHOUT_MATRICES}):
        return False
    os.environ[LIMIT] = WITHOUT_MATRICES
    return True


def _torch_is_there() -> bool:
    return "torch" in sys.modules


def _tried(environment: dict[str, str]) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", _TRIAL], env=os.environ | environment, capture_output=True, check=False
    )
    return done.returncode == 0
