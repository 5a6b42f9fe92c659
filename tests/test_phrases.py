"""The table of phrases: complete in every language, used as a whole, and the only source of words on these pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from localsim import plugins
from localsim.errors import InvalidInput
from localsim.web.phrases.table import OWN, Phrases, Refused, english, faults, find, languages
from tests.test_class import app_of, hall_at, joined

WEB = Path(__file__).parent.parent / "localsim" / "web"
TEMPLATES = [path for folder in ("class", "experiment", "play") for path in (WEB / "templates" / folder).iterdir()]
SHARED = [WEB / "templates" / name for name in ("base.html.j2", "error.html.j2")]
SOURCES = [*TEMPLATES, *SHARED, *(path for path in WEB.rglob("*.py") if path.parent.name != "phrases")]
WORDS = re.compile(r"[^\W\d_]{2,}")


def used() -> tuple[set[str], set[str]]:
    """The names of phrases in templates and code, and what those begin with that end in a value."""
    names, beginnings = set(), set()
    for path in SOURCES:
        text = path.read_text()
        names |= set(re.findall(r"""["']([a-z_]+(?:\.[a-z_]+)+)["']""", text))
        names |= {
            f"refused.{name}.{part}" for name in re.findall(r'Refused\("(\w+)"', text) for part in ("what", "hint")
        }
        beginnings |= set(re.findall(r't(?:\.plain)?\("([a-z_.]+)" ~', text))
        beginnings |= set(re.findall(r"""f["']([a-z_.]+)\{""", text))
    return names, {each for each in beginnings if "." in each}


@pytest.mark.parametrize("language", OWN)
def test_a_language_has_every_phrase_with_its_placeholders(language: str) -> None:
    assert not list(faults(find(language)))
    assert find(language).code == language


def test_every_phrase_is_used_and_every_used_phrase_is_there() -> None:
    names, beginnings = used()
    texts = english().texts
    assert not [name for name in texts if name not in names and not name.startswith(tuple(beginnings))]
    sections = {name.partition(".")[0] for name in texts}
    asked = {name for name in names if name.partition(".")[0] in sections and not name.endswith("_")}
    known = texts.keys() | {name.rpartition(".")[0] for name in texts}
    assert not [name for name in asked - known if re.search(rf't(?:\.plain)?\("{re.escape(name)}"', everything())]


def everything() -> str:
    return "\n".join(path.read_text() for path in SOURCES)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}")
def test_a_template_has_no_words_of_its_own(path: Path) -> None:
    text = re.sub(r"\{#.*?#\}", "", path.read_text(), flags=re.S)
    attributes = re.findall(r'(?:aria-label|title|placeholder|alt)="([^"{]+)"', text)
    text = re.sub(r"<code>.*?</code>", "", text)
    shown = re.sub(r"<[^<>]*>", "", re.sub(r"\{[{%].*?[%}]\}", "", text, flags=re.S))
    assert not WORDS.findall(shown) and not attributes
    literals = re.findall(r'[ (~]"([A-Z][a-z]+ [^"]*)"', " ".join(re.findall(r"\{[{%].*?[%}]\}", text)))
    assert not literals


def test_values_are_escaped_and_counts_choose_their_text() -> None:
    t = english()
    assert t("talk.you_are", role="<b>") == "You are &lt;b&gt;"
    assert t.plain("sure.going", count=1) == "One talk goes on." and "3 talks" in t.plain("sure.going", count=3)
    assert find("fr").plain("sure.going", count=0) == "0 conversation continue."
    assert find("de").number(4.26) == "4,3" and t.number(4.0) == "4"
    assert [t.number(value) for value in (5.25, 3.25, 6.75, 3.15, -3.25, -0.04)] == [
        "5.3",
        "3.3",
        "6.8",
        "3.2",
        "−3.3",
        "0",
    ]
    message, hint = find("de").told(Refused("full", seats=3))
    assert message == find("de").plain("refused.full.what", seats=3) and hint and str(Refused("full", seats=3)) in (
        "3 seats are taken", "3 seats are taken (ask the teacher to free one)",
    )  # fmt: skip
    assert find("de").told(InvalidInput("no phrase", hint="none")) == ("no phrase", "none")


@pytest.mark.parametrize("language", [code for code in OWN if code != "en"])
def test_a_phone_says_nothing_in_english_but_what_the_scenario_says(language: str, tmp_path: Path) -> None:
    with hall_at(tmp_path / "c.duckdb", "a_favour_asked") as hall:
        phones = [app_of(hall, language), app_of(hall, language)]
        for phone in phones:
            joined(phone)
        page = phones[0].get("/class").text
    assert re.search(r'lang="(\w+)"', page)[1] == language  # type: ignore[index]
    shown = re.sub(r"<bdi [^>]*lang=.en.>.*?</bdi>|<(script|style).*?</\1>|<[^<>]*>", " ", page, flags=re.S)
    words = set(re.findall(r"[a-z]+", shown.casefold()))
    assert not words & {"the", "and", "are", "of", "you", "age", "occupation", "acquaintances", "with"}, shown
    assert all(find(language).plain(f"profile.{each}") in shown for each in ("age", "occupation"))


def table(path: Path, *changes: tuple[str, str]) -> Path:
    """Write the English table as another language, with changes."""
    text = (WEB / "phrases" / "en.toml").read_text().replace('code = "en"', 'code = "it"')
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    return path


def test_a_file_of_ones_own_and_a_plugin_add_a_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = table(tmp_path / "it.toml", ('seat = "Take a seat"', 'seat = "Prendi posto"'))
    assert find(str(own)).plain("join.seat") == "Prendi posto"
    monkeypatch.setattr(plugins, "names", lambda kind: ["it"] if kind == "languages" else [])
    monkeypatch.setattr(plugins, "make", lambda *_: own)
    assert languages()[-1] == "it"
    found = find("it")
    assert isinstance(found, Phrases) and found.code == "it" and found.plain("join.seat") == "Prendi posto"
    with pytest.raises(InvalidInput, match="no phrases in the language 'xx'"):
        find("xx")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('seat = "Take a seat"\n', ""), "join.seat is missing"),
        (('seat = "Take a seat"', 'seet = "Take a seat"\nseat = "x"'), "join.seet is not known"),
        (('you_are = "You are {role}"', 'you_are = "You are {name}"'), "needs {role}"),
        (('you_are = "You are {role}"', 'you_are = "You are {role.__class__}"'), "no placeholder"),
        (('code = "it"', ""), "no table of phrases"),
        (("[join]", "[join"), "no table of phrases"),
    ],
)
def test_a_table_that_is_not_complete_is_refused(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)) as refused:
        find(str(table(tmp_path / "it.toml", change)))
    assert refused.value.where == str(tmp_path / "it.toml")
