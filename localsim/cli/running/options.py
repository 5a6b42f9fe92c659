"""Options that commands which simulate have in common, and the reading of their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from localsim.backends.open import chosen_model
from localsim.cli.common import Finite, Option, model_option, together
from localsim.conversation.episode import MODES, REPRO_LEVELS, SIMULATED, Mode
from localsim.conversation.grants import ANNOUNCED, DECOYS, NONE, parse
from localsim.errors import suggest
from localsim.runs import telling
from localsim.runs.plan import sampling_of


def modes_of(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> tuple[Mode, ...]:
    """Return the modes that --mode names, each once; `all` means the three of the paper."""
    chosen = tuple(dict.fromkeys(part.strip() for value in values for part in value.split(",")))
    unknown = [part for part in chosen if part not in (*SIMULATED, "all")]
    if unknown:
        meant = suggest(unknown[0], [*SIMULATED, "all"], inline=True)
        raise click.BadParameter(f"unknown mode {unknown[0]!r}{meant}; modes are {', '.join(SIMULATED)} and all")
    whole = [mode for part in chosen for mode in (MODES if part == "all" else (part,))]
    return tuple(dict.fromkeys(whole))  # type: ignore[arg-type]  # checked against SIMULATED


class ModesOption(click.Option):
    """An option that may be repeated on the command line, and is one text in a variable or localsim.toml."""

    def value_from_envvar(self, ctx: click.Context) -> Any:
        """Take the whole variable, blanks included, for a list of one."""
        return self.resolve_envvar_value(ctx)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Take one text for a list of one."""
        return super().type_cast_value(ctx, (value,) if isinstance(value, str) else value)


def modes_option(help_text: str) -> Option:
    """Return the option --mode."""
    return click.option(
        "--mode",
        "modes",
        cls=ModesOption,
        multiple=True,
        default=("agents",),
        callback=modes_of,
        metavar="MODE",
        help=help_text,
    )


def roles_of(_ctx: click.Context, _param: click.Parameter, values: Iterable[str]) -> dict[str, str]:
    """Return role -> model from texts such as NAME=MODEL."""
    found = {}
    for value in values:
        name, equals, model = value.partition("=")
        if not (name and equals and model):
            raise click.BadParameter(f"{value!r} is not NAME=MODEL")
        found[name] = model
    return found


def grants_of(texts: Sequence[str], *, announced: bool, decoys: bool) -> list[str]:
    """Return the texts of --see with the flags; what grants nothing cannot be announced."""
    flagged = []
    for text in texts or [NONE] * (announced or decoys):
        given = parse(text)
        granted = bool(given.everyone or given.single)
        words = [given.text] if given else []
        words += [ANNOUNCED] * (announced and (granted or not texts)) + [DECOYS] * decoys
        flagged.append("+".join(dict.fromkeys("+".join(words).split("+"))) or NONE)
    return flagged


def _parallel(_ctx: click.Context, _param: click.Parameter, value: str) -> int | None:
    if value == "auto":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter("a number from 1, or auto")
    return int(value)


def _name(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    return None if value is None else telling.checked_name(value)


fail_option = click.option(
    "--fail-on-error",
    type=Finite(0),
    default=0.2,
    help="Exit with code 6 if more episodes than this fail: a share below 1, or a number from 1.",
)
live_option = click.option("--live", is_flag=True, help="Print each turn as soon as it is written.")
simulated_model_option = model_option(
    "Simulate with this model: a name, a .gguf file, or scripted[:PLAYER] [LOCALSIM_MODEL, else starter]."
)
_seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=1, help="Derive the seeds of all episodes from this one."
)
parallel_option = click.option(
    "-j",
    "--parallel",
    default="auto",
    callback=_parallel,
    help="Simulate this many episodes at a time: a number, or auto.",
)
_temperature_option = click.option(
    "--temperature",
    type=Finite(0, 5),
    help="Sample with this temperature; 0 always takes the likeliest token [that of the model's layout].",
)
_grammar_option = click.option(
    "--no-grammar", is_flag=True, help="Do not force the model to write in the format of actions."
)
_repro_option = click.option(
    "--repro",
    type=click.Choice(REPRO_LEVELS),
    default="stable",
    help="Repeat the same text (exact, slower), or the same seeds and schedule (stable); fast runs as stable today.",
)
_context_option = click.option(
    "--ctx",
    "context",
    type=click.IntRange(256),
    help="Reserve this many tokens for each conversation [as many as the longest one needs].",
)
drawing_options = together(
    _seed_option, parallel_option, _temperature_option, _grammar_option, _repro_option, _context_option
)
"""How commands that simulate draw and write the turns."""
threads_option = click.option(
    "--threads", type=click.IntRange(1), help="Compute with this many threads [one for each physical core]."
)
name_option = click.option(
    "--name",
    metavar="TEXT",
    callback=_name,
    help="Give the run this name, by which commands find it [scenarios, model and modes].",
)


def settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a plan that all commands with these options share."""
    same = ("modes", "episodes", "seed", "repro", "parallel", "context", "gpu", "threads")
    model = chosen_model(options["model"])
    usual = sampling_of(model)
    warm = usual.temperature if options["temperature"] is None else options["temperature"]
    return {
        **{name: options[name] for name in same},
        "model": model,
        "sampling": replace(usual, temperature=warm, grammar=not options["no_grammar"]),
    }
