"""Twins: models made from a derived model and an adapter that ships, on every machine, and the note of a control."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsim import paths
from localsim.__main__ import run as command
from localsim.errors import ModelMissing
from localsim.machine import convert
from localsim.models import downloads, fetch, lora, sidecars
from localsim.models import registry as models
from localsim.models.checksums import checksum
from localsim.models.entries import ModelEntry
from tests import tiny_model

FIRST = b"the adapter that is merged into the starter"
SOURCE_SHA, MERGED_SHA = "5" * 64, hashlib.sha256(FIRST).hexdigest()
TAUGHT = "use the other side's facts in half of the conversations in which it sees them"


class Machine:
    """A machine on which the starter has been made; its bytes may differ from those of another machine."""

    def __init__(self, root: Path, seed: int = 1) -> None:
        self.folder = root / "models"
        self.folder.mkdir(parents=True)
        self.starter = self.made("starter.Q8_0.gguf", seed)

    def made(self, name: str, seed: int, merged: str = MERGED_SHA, kind: str = "Q8_0") -> Path:
        path = tiny_model.write(self.folder / name, tiny_model.FAMILIES["llama-3"], seed)
        sidecars.write_sidecar(
            path, name="starter", source="smol", source_sha256=SOURCE_SHA, type=kind, adapter_sha256=merged
        )
        return path


def weights() -> dict[str, Any]:
    """A little adapter of rank 1 on one layer, in peft's names."""
    layer = "base_model.model.model.layers.0.mlp.gate_proj"
    return {
        f"{layer}.lora_A.weight": np.ones((1, tiny_model.WIDTH)),
        f"{layer}.lora_B.weight": np.ones((tiny_model.HIDDEN, 1)),
    }


def tensors(path: Path) -> dict[str, Any]:
    """Name -> values of a file's tensors."""
    import gguf

    found = gguf.GGUFReader(str(path)).tensors
    return {each.name: gguf.quants.dequantize(each.data, each.tensor_type) for each in found}


def trained_on(base: Path, target: Path) -> Path:
    sha256 = checksum(base)
    lora.write_adapter(target, weights(), alpha=2, base=base, base_name="starter", base_sha256=sha256)
    return target


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files that ship; the adapter in it was trained on the starter of another machine."""
    folder = tmp_path / "ships"
    folder.mkdir()
    monkeypatch.setattr(paths, "bundled", lambda _kind: folder)
    (folder / "first.lora.gguf").write_bytes(FIRST)
    trained_on(Machine(tmp_path / "other", seed=2).starter, folder / "twin.lora.gguf")
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundled: Path) -> Iterator[Machine]:
    """This machine: the starter is installed, and the registry has a twin of it."""
    assert (bundled / "twin.lora.gguf").is_file(), "the folder that ships is there before anything is looked up"
    machine = Machine(tmp_path / "here")
    monkeypatch.setenv("LOCALSIM_MODELS", str(machine.folder))
    monkeypatch.setenv("LOCALSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(paths, "_REPOSITORY", tmp_path / "no-checkout")
    plain = {"kind": "chat", "why": "For tests", "bytes": 1, "licence": "Apache-2.0"}
    known = {
        "smol": {**plain, "title": "Small", "file": "smol.gguf", "sha256": SOURCE_SHA, "package": "p", "member": "m"},
        "starter": {
            **plain,
            "title": "Starter",
            "source": "smol",
            "adapter": "first.lora.gguf",
            "type": "Q8_0",
            "file": "starter.Q8_0.gguf",
        },
        "twin": {
            **plain,
            "title": "Twin",
            "source": "starter",
            "adapter": "twin.lora.gguf",
            "type": "Q8_0",
            "file": "twin.Q8_0.gguf",
            "constructed": TAUGHT,
        },
    }
    monkeypatch.setattr(models, "_registry", lambda: {"models": known, "aliases": {"first": ["starter", "words"]}})
    yield machine


@pytest.fixture
def made(here: Machine, bundled: Path) -> Path:
    """The twin's file on this machine, which has the starter."""
    assert here.starter.is_file() and bundled.is_dir()
    return fetch._pull_one(models.entry("twin"), str, bool, convert.derive)


def test_a_twin_is_its_source_with_the_adapter_that_ships_merged_in(made: Path, here: Machine) -> None:
    found = models.resolve("twin")
    assert (found.name, found.path, found.adapter) == ("twin", made, None) and made.parent == here.folder
    before, after = tensors(here.starter), tensors(made)
    changed = [name for name, values in before.items() if np.abs(values - after[name]).max() > 0.1]
    assert changed == ["blk.0.ffn_gate.weight"]
    assert fetch._pull_one(models.entry("twin"), str, bool, convert.derive) == made == models.verify("twin")


def test_a_twin_is_made_from_any_machines_starter_and_from_no_other(here: Machine, bundled: Path) -> None:
    """The starter's bytes differ between machines; another adapter in it or another type make another starter."""
    adapter = lora.read_adapter(bundled / "twin.lora.gguf")
    assert checksum(here.starter) != adapter.base_sha256 and sidecars.origin_of(here.starter) == adapter.base_origin
    for merged, kind in (("b" * 64, "Q8_0"), (MERGED_SHA, "Q4_0")):
        other = here.made("other.gguf", 1, merged, kind)
        with pytest.raises(ModelMissing, match="this adapter was trained on starter"):
            lora.check_fits(adapter, other, {checksum(other), sidecars.origin_of(other)})


@pytest.mark.parametrize("ships", ["first.lora.gguf", "twin.lora.gguf"])
def test_a_twin_is_made_again_when_its_adapter_or_its_source_has_changed(made: Path, bundled: Path, ships: str) -> None:
    assert models.is_whole(models.entry("twin"), made)
    (bundled / ships).write_bytes(b"another adapter")
    assert not models.is_whole(models.entry("twin"), made)
    with pytest.raises(ModelMissing, match="expected one in its sidecar"):
        models.resolve("twin")


def test_a_twin_is_pulled_with_all_that_its_source_needs(made: Path, here: Machine, tmp_path: Path) -> None:
    assert models.members("twin") == ["starter", "words", "twin"]
    assert models.members("first") == ["starter", "words"] and models.members("smol") == ["smol"]
    assert models.members("unknown") == ["unknown"]
    downloads.export(tmp_path / "stick", lambda _line: None)
    assert {path.name for path in (tmp_path / "stick").iterdir()} >= {made.name, f"{made.name}.json"}
    before = checksum(made)
    assert command(["models", "rm", "twin", "-y"]) == 0 and not made.exists() and here.starter.is_file()
    with pytest.raises(ModelMissing, match="model twin is not installed"):
        models.resolve("twin")
    assert downloads.fetch_from(tmp_path / "stick", models.entry("twin"), lambda _line: None) == made
    assert checksum(made) == before


@pytest.mark.usefixtures("here")
def test_one_model_takes_one_adapter(bundled: Path) -> None:
    own = f"starter+{bundled / 'twin.lora.gguf'}"
    with pytest.raises(ModelMissing, match="has an adapter already"):
        models._with_adapter(models.resolve(own), bundled / "twin.lora.gguf")
    with pytest.raises(ModelMissing, match="only its base can be converted"):
        convert.optimize(own, "Q4_0", lambda _line: None)


@pytest.mark.usefixtures("here")
def test_an_adapter_of_plain_weights_fits_them_in_every_type(tmp_path: Path) -> None:
    """Without an adapter merged in, the origin is the source itself."""
    path = tiny_model.write(tmp_path / "smol.Q8_0.gguf", tiny_model.FAMILIES["llama-3"])
    sidecars.write_sidecar(path, name="smol-q8_0", source="smol", source_sha256=SOURCE_SHA, type="Q8_0")
    adapter = lora.read_adapter(trained_on(path, tmp_path / "own.gguf"))
    assert adapter.base_origin == sidecars.origin_of(path) == SOURCE_SHA
    lora.check_fits(adapter, path, {SOURCE_SHA})
    assert sidecars.origin_of(tmp_path / "fetched.gguf") == ""


@pytest.mark.usefixtures("here")
def test_a_control_is_labelled_wherever_it_is_named(bundled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models.labelled("starter") == "starter" and models.constructed("scripted:peeks-100") == ""
    assert models.labelled("twin") == f"twin (constructed: taught to {TAUGHT})"
    assert models.labelled("twin|scripted | twin", whole=False) == ("twin (constructed)|scripted | twin (constructed)")
    assert models.constructed(f"starter+{bundled / 'twin.lora.gguf'}") == f"taught to {TAUGHT}"
    assert command(["models", "list"]) == 0 and TAUGHT in capsys.readouterr().out


SHIPPED = [model for model in models.entries() if model.constructed]


def test_the_controls_that_ship_say_what_they_are() -> None:
    assert {model.name for model in SHIPPED} == {"starter-peeks"}
    for model in SHIPPED:
        assert models.constructed(model.name).startswith("taught to use the other side"), model
        assert models.entry(model.source).adapter, "the starter's adapter is merged into the source"


@pytest.mark.parametrize("model", SHIPPED, ids=lambda model: model.name)
def test_the_adapters_that_ship_fit_the_starter(model: ModelEntry) -> None:
    adapter = lora.read_adapter(models.merged_adapter(model))
    source = models.resolve(model.source)
    lora.check_fits(adapter, source.path, {source.sha256, sidecars.origin_of(source.path)})
