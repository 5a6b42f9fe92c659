"""bfloat16 where a machine forbids the instructions that its processor names: the process lives, and trains."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localsim.errors import BackendUnavailable
from localsim.finetune import instructions, trainer
from localsim.finetune.instructions import LIMIT, WITHOUT_MATRICES, bf16_runs


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test tries anew, without a limit from outside."""
    before = os.environ.pop(LIMIT, None)
    bf16_runs.cache_clear()
    trainer.bf16_is_faster.cache_clear()
    yield
    os.environ.pop(LIMIT, None)
    if before is not None:
        os.environ[LIMIT] = before
    bf16_runs.cache_clear()
    trainer.bf16_is_faster.cache_clear()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """A machine that names matrix instructions, and on which a trial with an environment works or not."""
    cpu = tmp_path / "cpuinfo"
    cpu.write_text("flags : avx512f amx_bf16 amx_tile\n")

    def made(works: Callable[[dict[str, str]], bool], *, torch: bool = False) -> None:
        monkeypatch.setattr(instructions, "CPU", cpu)
        monkeypatch.setattr(instructions, "_tried", works)
        monkeypatch.setattr(instructions, "_torch_is_there", lambda: torch)

    return made


def test_after_torch_was_imported_it_is_too_late_to_limit_it(machine: Callable[..., None]) -> None:
    machine(lambda environment: LIMIT in environment, torch=True)
    assert not bf16_runs() and LIMIT not in os.environ


def test_a_processor_without_matrix_instructions_needs_no_trial(
    monkeypatch: pytest.MonkeyPatch, machine: Callable[..., None], tmp_path: Path
) -> None:
    machine(lambda _environment: False)
    monkeypatch.setattr(instructions, "CPU", tmp_path / "none")
    assert bf16_runs()


def test_without_matrix_instructions_bfloat16_may_work(machine: Callable[..., None]) -> None:
    machine(lambda environment: LIMIT in environment)
    assert bf16_runs() and os.environ[LIMIT] == WITHOUT_MATRICES


def test_where_nothing_works_training_takes_float32(machine: Callable[..., None]) -> None:
    machine(lambda _environment: False)
    assert not bf16_runs() and LIMIT not in os.environ and not trainer.bf16_is_faster()
    with pytest.raises(BackendUnavailable, match="illegal instruction") as refused:
        trainer.load_base(Path("none.gguf"), bf16=True)
    assert "--float32" in str(refused.value.hint)


def test_a_trial_that_is_ended_by_the_system_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "_TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert not instructions._tried({})
    monkeypatch.setattr(instructions, "_TRIAL", f"import os; assert os.environ['{LIMIT}'] == 'x'")
    assert instructions._tried({LIMIT: "x"})
