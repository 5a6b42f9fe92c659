"""Reads the table of phrases: `en.toml` names every phrase, and each other language has the same ones.

A phrase is a text with placeholders such as `{role}`, or one text for `one` and another for `other` counts. Its words
are escaped on a page; values keep the markup of the template that gives them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

from markupsafe import Markup, escape

from localsim import paths, plugins
from localsim.errors import InvalidInput, suggest

Text = str | Mapping[str, str]
"""A phrase, or its texts for `one` and `other` counts."""
_FORMS = {"one", "other"}
OWN = ("en", "de", "es", "fr")
"""The languages that localsim ships, in the order in which they are offered."""


@dataclass(frozen=True, eq=False)
class Phrases:
    """All phrases of a language. Called with the name of a phrase, it returns the phrase for a page."""

    code: str
    """For the attribute `lang` of a page (BCP 47)."""
    name: str
    """What the language calls itself."""
    one: frozenset[float]
    """The counts that take the text for `one`."""
    decimal: str
    """What stands before the decimals of a number."""
    texts: Mapping[str, Text]

    def __call__(self, name: str, /, **values: Any) -> Markup:
        """Return a phrase as HTML; `count` chooses between its texts. Values that are no Markup are escaped."""
        return Markup(escape(self._text(name, values))).format(**values)

    def plain(self, name: str, /, **values: Any) -> str:
        """Return a phrase as a text without markup."""
        return self._text(name, values).format(**values)

    def number(self, value: float) -> str:
        """Return a number with at most one decimal, rounded `half_up`, as people write it."""
        return f"{half_up(value):.1f}".removesuffix(".0").replace(".", self.decimal).replace("-", "−")

    def told(self, error: InvalidInput) -> tuple[str, str]:
        """Return what is wrong and what to do; in English where the table has no phrase for it."""
        if not isinstance(error, Refused):
            return error.message, error.hint or ""
        return tuple(self.plain(f"refused.{error.name}.{part}", **error.values) for part in ("what", "hint"))  # type: ignore[return-value]

    def _text(self, name: str, values: Mapping[str, Any]) -> str:
        text = self.texts[name]
        return text if isinstance(text, str) else text["one" if values["count"] in self.one else "other"]


class Refused(InvalidInput):
    """What a person sent cannot be taken. Its page says why in the language of the page, the terminal in English."""

    def __init__(self, name: str, **values: Any) -> None:
        """`name`: that of the phrases `refused.NAME.what` and `refused.NAME.hint`."""
        what, hint = (english().plain(f"refused.{name}.{part}", **values) for part in ("what", "hint"))
        super().__init__(what, hint=hint)
        self.name, self.values = name, values


def half_up(value: float) -> float:
    """Round to a tenth as pupils do by hand, a half away from zero: 5.25 is 5.3, where `round` gives 5.2."""
    return float(Decimal(repr(value)).quantize(Decimal("0.1"), ROUND_HALF_UP)) + 0.0


def languages() -> list[str]:
    """Return the names of all languages that are shipped or installed."""
    return [*OWN, *(name for name in plugins.names("languages") if name not in OWN)]


@cache
def find(name: str) -> Phrases:
    """Return the phrases of a language: a shipped one, an installed one, or those in a file that ends in .toml.

    Raises InvalidInput for a language that is not there, and for a table that is not complete.
    """
    if name.endswith(".toml"):
        return _complete(Path(name))
    if name in OWN:
        return _read(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")
    if name not in plugins.names("languages"):
        hint = suggest(name, languages()) or f"choose one of {', '.join(languages())}, or a file that ends in .toml"
        raise InvalidInput(f"there are no phrases in the language {name!r}", hint=hint)
    return _complete(Path(plugins.make("languages", name)))


def english() -> Phrases:
    """Return the phrases that name all others."""
    return find("en")


def faults(phrases: Phrases) -> Iterator[str]:
    """Yield what differs from the English table: missing phrases, unknown ones, and other placeholders."""
    own, wanted = phrases.texts, english().texts
    for name in wanted.keys() - own.keys():
        yield f"the phrase {name} is missing"
    for name in own.keys() - wanted.keys():
        yield f"the phrase {name} is not known{suggest(name, list(wanted), inline=True)}"
    for name in own.keys() & wanted.keys():
        has, needs = placeholders(own[name]), placeholders(wanted[name])
        if isinstance(own[name], str) is not isinstance(wanted[name], str):
            yield f"the phrase {name} needs {'one text' if isinstance(wanted[name], str) else 'one and other'}"
        elif has != needs:
            yield f"the phrase {name} has the placeholders {_named(has)}, and needs {_named(needs)}"


def placeholders(text: Text) -> set[str]:
    """Return the names of the values that a phrase takes."""
    texts = [text] if isinstance(text, str) else text.values()
    return {field for each in texts for _, field, _, _ in Formatter().parse(each) if field is not None}


def _named(names: set[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "none"


def _complete(path: Path) -> Phrases:
    """Read the phrases of another language. Raises InvalidInput."""
    found = _read(paths.read_text(path), str(path))
    wrong = sorted(faults(found))
    if wrong:
        more = f"; {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise InvalidInput("; ".join(wrong[:5]) + more, where=str(path), hint="localsim class --help names the table")
    return found


def _read(text: str, where: str) -> Phrases:
    try:
        data = tomllib.loads(text)
        head = data.pop("language")
        one = frozenset(map(float, head["one"]))
        phrases = Phrases(str(head["code"]), str(head["name"]), one, str(head["decimal"]), dict(_flat(data, "")))
        odd = [name for text in phrases.texts.values() for name in placeholders(text) if not name.isidentifier()]
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"this is no table of phrases: {error}", where=where) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        hint = "[language] needs code, name, one and decimal, and each phrase is a text; en.toml shows how"
        raise InvalidInput(f"this is no table of phrases: {error!r}", where=where, hint=hint) from error
    if odd:
        hint = "write a name in braces, such as {role}"
        raise InvalidInput(f"{{{odd[0]}}} is no placeholder", where=where, hint=hint)
    return phrases


def _flat(table: Mapping[str, Any], before: str) -> Iterator[tuple[str, Text]]:
    """Yield name and text of each phrase of nested tables."""
    for key, value in table.items():
        if isinstance(value, str) or (isinstance(value, dict) and value.keys() == _FORMS):
            yield before + key, value
        elif isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            raise TypeError(f"{before}{key} is no text")
