"""Functions that depend on the machine: derived models, memory, windows, shared openings."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localsim import paths
from localsim.backends import open as engines
from localsim.backends.llama import libraries
from localsim.backends.llama.engine import LlamaBackend
from localsim.backends.llama.lib import LlamaModel
from localsim.errors import InvalidInput, ModelMissing
from localsim.machine import forecast
from localsim.models import registry as models
from localsim.models import sidecars
from localsim.runs import preview
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.database import Store
from tests.conftest import Quiet, generated
from tests.test_llama import SharedModel, converse, short, spec_of

# ---- derived models ------------------------------------------------------------------------------------------------


@pytest.mark.model
def test_a_derived_model_is_checked_against_its_sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from localsim.machine import convert as derived

    source = models.resolve("smollm2-135m")
    monkeypatch.setenv("LOCALSIM_MODELS", str(tmp_path))
    made = derived.optimize("smollm2-135m", "Q4_0", print)
    assert made.name == "smollm2-135m-q4_0" and made.path.stat().st_size < source.path.stat().st_size
    assert derived.optimize("smollm2-135m", "Q4_0", print) == made, "what is there is left alone"
    assert models.resolve("smollm2-135m-q4_0") == made
    with made.path.open("r+b") as file:
        file.seek(5_000_000)
        file.write(b"damaged")
    with pytest.raises(ModelMissing, match="checksum"):
        models.verify("smollm2-135m-q4_0")
    sidecars.sidecar_path(made.path).write_text("{}")
    with pytest.raises(ModelMissing, match="no model is called"):
        models.resolve("smollm2-135m-q4_0")


# ---- memory and GPU ------------------------------------------------------------------------------------------------


@pytest.mark.model
def test_j_auto_follows_memory_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan((generated("mutual_friends"),), ("agents",), model="starter", episodes=8)
    said: list[str] = []
    assert preview.side_by_side(plan, said.append) == 8 and said == []
    eight, two = (engines.memory_plans(preview.needs_of(plan, number))[0].wanted for number in (8, 2))
    assert two < eight
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=two + 1))
    assert preview.side_by_side(plan, said.append) == 2
    assert len(said) == 1 and "2 at a time instead of 8" in said[0]
    assert preview.side_by_side(replace(plan, parallel=8), said.append) == 8, "what was asked for is not shrunk"


@pytest.mark.model
def test_layers_on_a_gpu_that_is_not_there_are_refused() -> None:
    from localsim.backends.llama.lib import library

    if library().llama_supports_gpu_offload():
        pytest.skip("this build has a GPU")
    assert engines.gpu_layers("auto") == engines.gpu_layers("off") == engines.gpu_layers("0") == 0
    with pytest.raises(InvalidInput, match="processor only"):
        engines.gpu_layers("12")


# ---- windows -------------------------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize(("mode", "turns", "context"), [("agents", 6, 288), ("script", 8, 320)])
def test_a_window_goes_on_where_the_context_is_full(store: Store, mode: Any, turns: int, context: int) -> None:
    loaded = short(turns=turns)
    limits = loaded.scenario.limits.model_copy(update={"closing": False, "stale": 0})
    staying = loaded.scenario.model_copy(update={"actions": ("speak",), "limits": limits})
    plan = Plan((replace(loaded, scenario=staying),), (mode,), model="starter", seed=3, context=context)
    failed = start(plan, store, Quiet(), print, leaks=False)
    assert failed.summary.failed == 1, "the policy is `error` unless said otherwise"
    error = store.rows("SELECT error FROM episodes")[0]["error"]
    assert "outgrew the context" in error

    whole = start(replace(plan, overflow="window"), store, Quiet(), print, leaks=False)
    assert whole.summary.completed == 1
    rows = store.rows("SELECT turn, dropped_messages AS d FROM v_turns WHERE run_id = ? ORDER BY turn", [whole.run_id])
    dropped = [row["d"] for row in rows]
    assert dropped[0] == 0 and dropped[-1] > 0, "it stands with the turn how much its writer did not see"


# ---- openings ------------------------------------------------------------------------------------------------------


@pytest.mark.model
def test_another_seed_takes_over_the_opening(engine_model: LlamaModel) -> None:
    backend = LlamaBackend(SharedModel(engine_model), name="m", sha256="0" * 64, sequences=2, context=1024, threads=2)
    spec = spec_of(short(turns=2), models=dict.fromkeys(("Ana", "Bo"), "m"))
    found: list[Any] = []
    finish = backend._finish

    def finishing(job: Any, cause: Any) -> Any:
        done = finish(job, cause)
        found.append(done.result)
        return done

    backend._finish = finishing  # type: ignore[method-assign]  # to look at what is counted
    converse(backend, [spec])
    converse(backend, [replace(spec, index=1)])
    backend.close()
    assert [one.shared_tokens > 0 for one in found] == [False, False, True, True]
    assert found[2].evaluated_tokens <= 1 and found[2].shared_tokens >= found[2].prompt_tokens - 1


def test_the_default_is_a_file_made_here() -> None:
    model = models.entry(paths.default_model())
    assert model.source and model.type in ("Q8_0", "Q4_0")


def test_a_forecast_goes_by_earlier_episodes_of_the_model(store: Store) -> None:
    loaded = generated("mutual_friends")
    plan = Plan((loaded,), ("agents", "script"), model="scripted", episodes=2, seed=1)
    rates = forecast.Rates(heard=500.0, written=250.0)
    unseen = forecast.forecast(plan.specs(), rates, store)
    assert unseen.low < unseen.minutes < unseen.high
    assert "no earlier" in unseen.based_on
    twice = forecast.forecast(replace(plan, episodes=4).specs(), rates, store)
    assert unseen.minutes < twice.minutes < 2 * unseen.minutes, "openings are evaluated once for all seeds"
    start(plan, store, Quiet(), print)
    with store.writing() as connection:
        connection.execute("UPDATE generations SET generated_tokens = 30, evaluated_tokens = 50")
    texts = store.rows("SELECT count(*) AS n FROM generations")[0]["n"]
    seen = forecast.forecast(plan.specs(), rates, store)
    assert seen.tokens == pytest.approx(30 * texts)
    wanted = (30 * texts / rates.written + 50 * texts / rates.heard) / forecast.ENGINE / 60
    assert seen.minutes == pytest.approx(wanted)
    assert (seen.low, seen.high) == pytest.approx((0.75 * wanted, 1.25 * wanted))


@pytest.mark.parametrize(("load", "own", "spins"), [(0.0, None, None), (64.0, None, "1000"), (64.0, "7", "7")])
def test_threads_sleep_soon_on_a_busy_machine_only(
    monkeypatch: pytest.MonkeyPatch, load: float, own: str | None, spins: str | None
) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", own or "")
    if own is None:
        monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    libraries._wait_politely()
    assert os.environ.get("GOMP_SPINCOUNT") == spins
