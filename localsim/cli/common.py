"""Options that many commands have, and what their values open: stores, thresholds, pages."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsim import paths
from localsim.cli import completion
from localsim.cli.answers import json_option as json_option
from localsim.cli.answers import print_json as print_json
from localsim.cli.progress import Reassurance as Reassurance
from localsim.cli.progress import clean as clean
from localsim.cli.progress import colour_of as colour_of
from localsim.cli.progress import say as say
from localsim.cli.progress import wants_json
from localsim.errors import DatabaseError, InvalidInput, refuse_empty, writing
from localsim.machine import PORT
from localsim.store.database import Store

if TYPE_CHECKING:
    from localsim.leakage.detector import Weights

HERE = "127.0.0.1"
"""The default address of the pages; only this computer can reach it."""


class Named(click.Path):
    """A file or folder; an empty word names none, though Python takes it for the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises InvalidInput for an empty word, and for a folder in place of a file."""
        refuse_empty(os.fsdecode(value), "the name of a file or folder", "give a name, or leave it out")
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise InvalidInput(error.message.rstrip("."), hint="choose another place") from error


db_option = click.option(
    "--db",
    metavar="FILE",
    help="Use this database file [LOCALSIM_DB, else db/localsim.duckdb beside a localsim.toml, else localsim.duckdb].",
)
run_argument = click.argument("run", default="@last", shell_complete=completion.runs)
files_argument = click.argument("files", nargs=-1, required=True, type=Named(path_type=Path), metavar="FILE...")
conditions_argument = click.argument(
    "conditions", nargs=-1, metavar="[RUN[:CONDITION]]...", shell_complete=completion.runs
)


Option = Callable[[Any], Any]
"""A decorator that adds an option or an argument to a command."""


def together(*options: Option) -> Option:
    """Return one decorator for options that several commands have, in the order of the help."""
    return lambda command: reduce(lambda done, option: option(done), reversed(options), command)


def model_option(help_text: str, *names: str) -> Option:
    """Return an option that names a model: -m unless `names` say another one."""
    names = names or ("-m", "--model")
    return click.option(*names, metavar="MODEL", shell_complete=completion.models, help=help_text)


class Listing(click.Group):
    """A group that does what one of its commands does, usually `list`, if none is named."""

    def __init__(self, *arguments: Any, default: str = "list", **options: Any) -> None:
        super().__init__(*arguments, **options | {"subcommand_metavar": "[COMMAND] [ARGS]..."})
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; without any they name the default."""
        return super().parse_args(ctx, args or [self._default])


class Target(Named):
    """A file or folder to write; one that cannot be written is refused before the work for it begins."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises InvalidInput for one that cannot be written."""
        target = super().convert(value, param, ctx)
        refuse_unwritable(Path(os.fsdecode(target)))
        return target


def refuse_unwritable(target: Path) -> None:
    """Raise InvalidInput for a file or folder that cannot be written."""
    if problem := paths.cannot_write(target):
        raise InvalidInput(f"cannot be written: {problem}", where=str(target), hint="choose another place")


def folder_option(help_text: str) -> Option:
    """Return the option -o FOLDER, the current one by default."""
    kind = Target(file_okay=False, path_type=Path)
    return click.option("-o", "--output", type=kind, default=".", help=help_text)


def yes_option(help_text: str = "Delete without a question.") -> Option:
    """Return the option --yes."""
    return click.option("-y", "--yes", is_flag=True, help=help_text)


class Finite(click.FloatRange):
    """A number in a range; nan and inf are refused, which click's range lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises click's usage error."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a number", param, ctx)
        return found

    def _describe_range(self) -> str:  # click's own writes `x<=None` for a number without ends
        return "" if self.min is None and self.max is None else super()._describe_range()


def store_of(db: str | None) -> Store:
    """Open the store that --db names; it says when it must wait for the file, and which run `@last` is."""
    store = Store(paths.database_path(db), waiting=say, took=_say_which)
    if (context := click.get_current_context(silent=True)) is not None:
        context.with_resource(_explained(store))
    return store


@contextmanager
def _explained(store: Store) -> Iterator[None]:
    """Say what is wrong with a database where that explains an error of a command that nobody foresaw."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        problems: list[str] = []
        with suppress(DatabaseError):  # such as one that another process holds: it explains nothing
            problems = store.check() if store.path.exists() else []
        if problems:
            what = f"its rows do not fit together: {'; '.join(problems)}"
            hint = "use a copy of it; localsim runs rm RUN removes a run that is damaged"
            raise DatabaseError(what, where=str(store.path), hint=hint) from error
        raise


_BLIND = {"annotate", "play"}
"""Commands for people who must not see the modes of a run, which its name can hold."""


def _say_which(store: Store, reference: str, run_id: str) -> None:
    """Print which run `@last` or `@last-N` is; nothing with --json, nor for a request of a page."""
    from localsim.runs import telling
    from localsim.store.queries.runs import run_facts, run_list

    context = click.get_current_context(silent=True)
    if context is None or wants_json():
        return
    row = run_facts(store, run_id)
    named = "" if _BLIND & set(context.command_path.split()) else f" ({clean(telling.name_of(store, row))})"
    when = telling.clock_of(row["started_utc"])
    runs = len(run_list(store)) if context.info_name == "report" else 1
    of = f", 1 of {runs} runs of this database" if runs > 1 else ""
    say(f"{reference} is {run_id}{named}, {telling.episodes_of(row)}, {when}{of}")


def _cluster(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from localsim.runs.cluster.connect import checked_address

    try:
        return checked_address(value)
    except InvalidInput as error:
        raise click.BadParameter(f"{error}; it is {error.hint}") from error


def cluster_option(help_text: str) -> Option:
    """Return the option --cluster, the address of a Ray cluster."""
    return click.option("--cluster", metavar="auto|ray://HOST:PORT", callback=_cluster, help=help_text)


def weights_option(help_text: str) -> Option:
    """Return the options --weights FILE and --sensitivity SHARE; `weights_from` reads their values."""
    return together(click.option("--weights", metavar="FILE", help=help_text), sensitivity_option)


sensitivity_option = click.option(
    "--sensitivity",
    metavar="SHARE",
    type=Finite(0, 1, min_open=True, max_open=True),
    help="Allow this share of false alarms among the facts that stay private; a higher share finds more leaks. The "
    "built-in thresholds have 0.1, and go from 0.01 to 0.3 [that of the thresholds].",
)


def weights_from(value: str | None, sensitivity: float | None = None) -> Weights | None:
    """Return the weights of the leakage detector that --weights and --sensitivity name; None without both.

    Raises InvalidInput.
    """
    from localsim.leakage.detector import BUILT_IN, Weights

    if value is None and sensitivity is None:
        return None
    return Weights.named(BUILT_IN if value is None else value).at(sensitivity)


def write_file(file: Path, text: str) -> None:
    """Write a text to a file, whose folder is made. Raises InvalidInput."""
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def output_option(help_text: str) -> Option:
    """Return the option -o FILE."""
    return click.option("-o", "--output", type=Target(dir_okay=False), help=help_text)


web_options = together(
    click.option("--host", default=HERE, help="Listen on this address; by default only this computer can connect."),
    click.option("--port", type=click.IntRange(1, 65535), help=f"Listen on this port [{PORT}, or the next free one]."),
    click.option("--open", "open_browser", is_flag=True, help="Also open the page in a browser."),
)


def _language(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Return the name of a language, or the whole path of a file, with which the same command goes on anywhere."""
    return str(Path(value).absolute()) if value.endswith(".toml") else value


language_option = click.option(
    "--language",
    default="en",
    metavar="NAME",
    callback=_language,
    help="Show the pages in this language: en, de, es, fr, that of a plugin, or a file of phrases that ends in .toml.",
)


def serve_pages(store: Store, host: str, port: int | None, path: str, *, open_browser: bool, **content: Any) -> None:
    """Serve pages until Ctrl-C, `path` first; `content` are more arguments of `web.serve.serve`.

    Raises InvalidInput if the packages for it are not installed.
    """
    with paths.needing("the pages need", "web"):
        from localsim.web.serve import Address, serve
    place = Address(host, port or PORT, fixed=port is not None)
    serve(store, place, path, say, open_browser=open_browser, during=Reassurance, **content)


def _gpu(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value not in ("auto", "off") and not value.isdecimal():
        raise click.BadParameter("auto, off, or a number of layers")
    return value


gpu_option = click.option(
    "--gpu", default="auto", callback=_gpu, help="Put this many layers on the GPU: auto, off or a number."
)
