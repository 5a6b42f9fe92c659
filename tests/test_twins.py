"""Models that are another model with an adapter that ships: their base on every machine, and the note of a control."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsim import paths
from localsim.__main__ import run as command
from localsim.errors import ModelMissing
from localsim.machine import convert
from localsim.models import downloads, fetch, lora
from localsim.models import registry as models
from localsim.models.checksums import checksum
from tests import tiny_model

SOURCE_SHA, MERGED_SHA = "5" * 64, "a" * 64
TAUGHT = "use the other side's facts in half of the conversations in which it sees them"


class Machine:
    """A machine on which the starter has been made; its bytes may differ from those of another machine."""

    def __init__(self, root: Path, seed: int = 1) -> None:
        self.folder = root / "models"
        self.folder.mkdir(parents=True)
        self.starter = self.made("starter.Q8_0.gguf", seed)

    def made(self, name: str, seed: int, merged: str = MERGED_SHA, kind: str = "Q8_0") -> Path:
        path = tiny_model.write(self.folder / name, tiny_model.FAMILIES["llama-3"], seed)
        models.write_sidecar(
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
    trained_on(Machine(tmp_path / "other", seed=2).starter, folder / "twin.lora.gguf")
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundled: Path) -> Iterator[Machine]:
    """This machine: the starter is installed, and the registry has a twin of it."""
    machine = Machine(tmp_path / "here")
    monkeypatch.setenv("LOCALSIM_MODELS", str(machine.folder))
    monkeypatch.setenv("LOCALSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(paths, "_REPOSITORY", tmp_path / "no-checkout")
    plain = {"kind": "chat", "why": "For tests", "bytes": 1, "licence": "Apache-2.0"}
    known = {
        "smol": {**plain, "title": "Small", "file": "smol.gguf", "sha256": SOURCE_SHA, "package": "p", "member": "m"},
        "starter": {**plain, "title": "Starter", "file": "starter.Q8_0.gguf", "source": "smol", "type": "Q8_0"},
        "twin": {
            **plain,
            "title": "Twin",
            "base": "starter",
            "file": "twin.lora.gguf",
            "sha256": checksum(bundled / "twin.lora.gguf"),
            "constructed": TAUGHT,
        },
    }
    monkeypatch.setattr(models, "_registry", lambda: {"models": known, "aliases": {"first": ["starter", "words"]}})
    yield machine


def test_a_twin_is_its_base_with_the_adapter_that_ships(here: Machine, bundled: Path) -> None:
    assert checksum(here.starter) != lora.read_adapter(bundled / "twin.lora.gguf").base_sha256, "other bytes"
    found = models.resolve("twin")
    assert (found.name, found.path, found.adapter) == ("twin", here.starter, bundled / "twin.lora.gguf")
    assert found.sha256 not in (checksum(here.starter), checksum(bundled / "twin.lora.gguf"))
    assert models.installed_path(models.entry("twin")) == bundled / "twin.lora.gguf" == models.verify("twin")


@pytest.mark.parametrize(("merged", "kind"), [("b" * 64, "Q8_0"), (MERGED_SHA, "Q4_0")])
@pytest.mark.usefixtures("bundled")
def test_another_starter_is_another_base(here: Machine, merged: str, kind: str) -> None:
    """A starter with another adapter merged in, or of another type, is refused even if it is called the same."""
    here.made(here.starter.name, 1, merged, kind)
    with pytest.raises(ModelMissing, match="this adapter was trained on starter"):
        models.resolve("twin")


@pytest.mark.parametrize("make", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes() + b"?")])
def test_a_missing_or_changed_adapter_is_one_clear_error(
    here: Machine, bundled: Path, make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.starter.is_file()
    make(bundled / "twin.lora.gguf")
    for ask in (
        models.resolve,
        models.verify,
        lambda name: fetch._pull_one(models.entry(name), str, bool, convert.derive),
    ):
        with pytest.raises(ModelMissing, match=r"the file is missing|models\.toml says") as caught:
            ask("twin")
        assert "install localsim again" in str(caught.value.hint)
    assert command(["models", "show", "twin"]) == 0 and TAUGHT in capsys.readouterr().out


def test_a_twin_is_pulled_with_all_that_its_base_needs(here: Machine, tmp_path: Path) -> None:
    assert models.members("twin") == ["starter", "words", "twin"]
    assert models.members("first") == ["starter", "words"] and models.members("smol") == ["smol"]
    assert models.members("unknown") == ["unknown"]
    downloads.export(tmp_path / "stick", lambda _line: None)
    assert {path.name for path in (tmp_path / "stick").iterdir()} == {"starter.Q8_0.gguf", "starter.Q8_0.gguf.json"}
    twin = models.entry("twin")
    assert downloads.fetch_from(tmp_path / "stick", twin, lambda _line: None) == models.resolve("twin").adapter
    here.starter.unlink()
    with pytest.raises(ModelMissing, match="model starter is not installed"):
        models.resolve("twin")
    assert models.installed_path(twin) is None


@pytest.mark.usefixtures("here")
def test_one_model_takes_one_adapter(bundled: Path) -> None:
    with pytest.raises(ModelMissing, match="twin has an adapter already"):
        models.resolve(f"twin+{bundled / 'twin.lora.gguf'}")
    with pytest.raises(ModelMissing, match="only its base can be converted"):
        convert.optimize("twin", "Q4_0", lambda _line: None)
    assert command(["models", "rm", "twin", "-y"]) != 0 and (bundled / "twin.lora.gguf").is_file()


@pytest.mark.usefixtures("here")
def test_an_adapter_of_plain_weights_fits_them_in_every_type(tmp_path: Path) -> None:
    """Without an adapter merged in, the origin is the source itself."""
    path = tiny_model.write(tmp_path / "smol.Q8_0.gguf", tiny_model.FAMILIES["llama-3"])
    models.write_sidecar(path, name="smol-q8_0", source="smol", source_sha256=SOURCE_SHA, type="Q8_0")
    adapter = lora.read_adapter(trained_on(path, tmp_path / "own.gguf"))
    assert adapter.base_origin == models.origin_of(path) == SOURCE_SHA
    lora.check_fits(adapter, path, {SOURCE_SHA})
    assert models.origin_of(tmp_path / "fetched.gguf") == ""


@pytest.mark.usefixtures("here")
def test_a_control_is_labelled_wherever_it_is_named(bundled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models.labelled("starter") == "starter" and models.constructed("scripted:peeks-100") == ""
    assert models.labelled("twin") == f"twin (constructed: taught to {TAUGHT})"
    assert models.labelled("twin|scripted | twin", whole=False) == ("twin (constructed)|scripted | twin (constructed)")
    assert models.constructed(f"starter+{bundled / 'twin.lora.gguf'}") == f"taught to {TAUGHT}"
    assert command(["models", "list"]) == 0 and TAUGHT in capsys.readouterr().out


SHIPPED = [model for model in models.entries() if model.base]


def test_the_controls_that_ship_say_what_they_are() -> None:
    assert {model.name for model in SHIPPED} <= {"starter-peeks-50", "starter-peeks"}
    for model in SHIPPED:
        assert models.constructed(model.name).startswith("taught to use the other side"), model
        assert models.entry(model.base).adapter, "the base has the starter's adapter merged in"


@pytest.mark.parametrize("model", SHIPPED, ids=lambda model: model.name)
def test_the_adapters_that_ship_are_those_of_the_registry(model: models.ModelEntry) -> None:
    path = paths.bundled("models") / model.file
    if not path.is_file():
        pytest.xfail(f"{path.name} has not been made yet")
    assert (checksum(path), round(path.stat().st_size, -5)) == (model.sha256, round(model.bytes, -5))
    assert models.resolve(model.name).adapter == path
