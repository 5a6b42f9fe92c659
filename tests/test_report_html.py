"""The report as one HTML page: well-formed, self-contained, escaped, and honest where there is nothing to show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from localsim.conversation.episode import MODES, Observation
from localsim.conversation.scenario import Agent, AnswerKey, Fact, Info, LoadedScenario, Scenario
from localsim.conversation.transcript import Action, Turn
from localsim.families import FAMILIES, PLAYERS
from localsim.families.mentions import first_mentions
from localsim.reports.compose.alone import report
from localsim.reports.document import Report
from localsim.reports.evidence.turns import Example, examples
from localsim.reports.measures import measures_of
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown
from localsim.reports.results import Number, Result
from localsim.reports.validity.remarks import Remark
from localsim.runs.runner import Plan, start
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store

VOID = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE = (
    '<script>alert(1)</script></td></table><img src=x onerror="alert(2)"> \u202etxet\u202e \x00 {{ 7*7 }} &amp; "\''
)


class Silent(Watcher):
    """A watcher that watches nothing."""


class Page(HTMLParser):
    """Reads a page and insists that every element is closed in its place and every id stands once."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == []
        ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        named = {name for _, found in self.tags for name in (found.get("aria-labelledby") or "").split()}
        assert named <= set(ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]} at {self.getpos()}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self, tag: str | None = None) -> str:
        return " ".join(" ".join(text for where, text in self.texts if tag in (None, where)).split())

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.tags if name == tag and attributes.items() <= found.items()]


def everyday() -> LoadedScenario:
    agents = (
        Agent(name="Noor", goal="Say that you will move out.", secret="You are tired of the noise.", facts=(
            Fact(id="room", text="Noor has signed for a room in Mill Street.", terms=("Mill Street",)),)),
        Agent(name="Tom", goal="Get Noor to stay.", facts=(
            Fact(id="lease", text="Tom renewed the lease.", terms=("renewed",), disclosure="late"),)),
    )  # fmt: skip
    scenario = Scenario(
        version=1, id="flat", title="Two in a flat", info=Info(what="Test."), setting="A kitchen.", agents=agents
    )
    return LoadedScenario(scenario, AnswerKey(), "flat.yaml")


def generated(family: str, seed: int, **parameters: Any) -> LoadedScenario:
    file = FAMILIES[family].generate(f"{family}_{seed}", seed, parameters)
    return LoadedScenario(*file.split(), f"{file.id}.yaml")


def simulate(path: Path, *scenarios: LoadedScenario, **options: Any) -> tuple[Store, str]:
    store = Store(path)
    plan = Plan(scenarios, **{"modes": MODES, "model": "scripted:auto", **options})
    return store, start(plan, store, Silent(), lambda _: None).run_id


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Report, list[Example]]]:
    """Report data and examples of a small run with every family in every mode."""
    scenarios = [generated("mutual_friends", 1), generated("craigslist", 1), generated("craigslist", 2), everyday()]
    store, run_id = simulate(tmp_path_factory.mktemp("db") / "x.duckdb", *scenarios, model="scripted:omniscient")
    yield report(store, run_id), examples(store, run_id)


def written(data: Report, talks: list[Example], **changes: Any) -> str:
    """The page of a report with other talks and values."""
    return render(replace(data, talks=talks, **changes))


def test_page_is_well_formed_and_self_contained(made: tuple[Report, list[Example]]) -> None:
    text = written(*made)
    page = Page(text)
    assert text.lstrip().startswith("<!DOCTYPE html>")
    assert page.all("html", lang="en")
    assert not page.all("script") and not page.all("link") and not page.all("img") and not page.all("iframe")
    assert not re.search(r"https?://|url\(|@import|javascript:", text)
    assert not any(name.startswith("on") or name == "src" for _, found in page.tags for name in found)
    ids = {f"#{found['id']}" for _, found in page.tags if "id" in found}
    links = [found["href"] for _, found in page.tags if "href" in found]
    assert len(links) > 6 and set(links) <= ids, "links lead to other parts of the page, nowhere else"
    text.encode("utf-8")


def test_every_family_and_mode_is_there(made: tuple[Report, list[Example]]) -> None:
    page = Page(written(*made))
    assert [word for word in page.text("h2").split() if word in ("Mutual", "Bargaining", "Everyday")] == [
        "Mutual",
        "Bargaining",
        "Everyday",
    ]
    for mode in MODES:
        assert page.text("th").count(mode) == 3
        assert len(page.all("rect", **{"class": f"bar {mode}"})) >= 3 * 2
        assert page.all("h5", **{"class": mode})
    assert made[0].run.run_id in page.text("title")
    assert "How much of what the models achieve comes from knowing everything?" in page.text("h1")


def test_each_condition_has_one_colour_and_a_place_in_the_legend(made: tuple[Report, list[Example]]) -> None:
    """Granted conditions and those of other runs: also where a family lacks some of them."""
    data, shown = made
    agents = next(row for row in data.comparison if (row.family, row.mode) == ("mutual_friends", "agents"))
    more = [
        replace(agents, see="goal", condition="agents+goal"),
        replace(agents, condition="taught", other_run="r2", model="m"),
        replace(agents, family="craigslist", condition="taught", other_run="r2", model="m"),
    ]
    page = Page(written(data, shown, comparison=[*data.comparison, *more]))
    legend = [found["class"] for found in page.all("li") if str(found.get("class")).startswith(MODES)]
    assert legend == ["script", "agents", "mindreaders", "agents twin t1", "agents twin t2"]
    assert len(page.all("rect", **{"class": "bar agents twin t1"})) >= 3
    only = Page(written(data, shown, comparison=[agents]))
    assert [found["class"] for found in only.all("li") if found.get("class") in MODES] == ["agents"]


def test_figures_tell_what_they_show(made: tuple[Report, list[Example]]) -> None:
    page = Page(written(*made))
    assert len(page.all("svg")) == len(page.all("desc")) == 14, "without those of measures that are equal in all modes"
    assert all(found["role"] == "img" and found["aria-labelledby"] for found in page.all("svg"))
    told = page.text("desc")
    assert "95% interval" in told, "of the family with two scenarios"
    assert "from 1 conversation." in told
    assert "Paper’s GPT-3.5, script: 0.13. Paper’s GPT-3.5, agents: 0.39." in told
    assert "script: 94%" in told and "agents: 30%" in told and "agents: 29.8" in told
    assert "compare directions, not absolute numbers" in page.text("figcaption")


def test_tables_leave_out_empty_columns_and_mark_missing_values(made: tuple[Report, list[Example]]) -> None:
    data, shown = made
    rows = [
        replace(row, numbers={**row.numbers, "in_zone_rate": Number("share")})
        if (row.family, row.mode) == ("craigslist", "agents")
        else row
        for row in data.comparison
    ]
    page = Page(written(data, shown, comparison=rows))
    assert "–" in page.text("td")
    assert len(page.all("table")) == len(page.all("caption")) == 8, "two of three families, errors, and how it was made"
    assert page.text("dt").count("first mention") == 1
    assert page.text("dt").count("deal deal with zone") == 1
    assert "None" not in page.text() and "nan" not in page.text("td")
    assert all(found.get("scope") in ("col", "row") for found in page.all("th"))


def test_warnings_stand_before_the_figures(made: tuple[Report, list[Example]]) -> None:
    data, shown = made
    text = written(data, shown, remarks=[Remark("Mind <this>.")])
    assert text.index("Mind &lt;this&gt;.") < text.index("<table")
    assert "<aside" not in written(data, shown, remarks=[])


def test_what_models_wrote_is_escaped(made: tuple[Report, list[Example]]) -> None:
    data, shown = made
    episode = shown[0].episodes[0]
    turns = [{**turn, "text": HOSTILE, "action": "speak"} for turn in episode.turns]
    text = written(data, [Example(shown[0].family, (replace(episode, turns=turns), *shown[0].episodes[1:]))])
    page = Page(text)
    assert not page.all("script") and not page.all("img")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;/td&gt;" in text
    assert "{{ 7*7 }}" in text and "&amp;amp;" in text
    assert "\x00" not in text
    assert re.search(r'<bdi dir="auto"[^>]*>[^<]*\u202e', text)


def test_names_and_facts_of_files_are_escaped(tmp_path: Path) -> None:
    flat = everyday().scenario
    first = flat.agents[0].model_copy(update={"goal": HOSTILE, "secret": HOSTILE})
    scenario = flat.model_copy(update={"title": HOSTILE, "setting": HOSTILE, "agents": (first, flat.agents[1])})
    store, run_id = simulate(tmp_path / "x.duckdb", LoadedScenario(scenario, AnswerKey(), "flat.yaml"))
    page = Page(render(replace(report(store, run_id), talks=examples(store, run_id))))
    assert not page.all("script") and not page.all("img")
    assert page.text().count("<script>alert(1)</script>") >= 4


def test_first_mentions_are_marked_and_strangers_labelled(made: tuple[Report, list[Example]]) -> None:
    data, shown = made
    example = next(example for example in shown if example.family == "everyday")
    said = [("Tom", "You took a room in mill street, did you?"), ("Noor", "And you renewed the lease!")]
    turns: list[dict[str, Any]] = [
        {"turn": number, "speaker": who, "action": "speak", "text": text, "words": 5, "truncated": False}
        for number, (who, text) in enumerate(said)
    ]
    turns.append({"turn": 2, "speaker": "Tom", "action": "non-verbal communication", "text": "sighs", "words": 0,
                  "truncated": False})  # fmt: skip
    for turn in turns:
        turn |= {"values_json": None, "readers_json": None, "beat": turn["turn"], "phase": "", "repaired": False}
        turn["given"] = False
    values = [Turn(turn["turn"], turn["speaker"], Action(turn["action"], turn["text"])) for turn in turns]
    mentions = first_mentions(values, example.episodes[0].scenario)
    text = written(data, [Example("everyday", (replace(example.episodes[0], turns=turns, mentions=mentions),))])
    assert '<mark class="strange">mill street</mark>' in text and '<mark class="strange">renewed</mark>' in text
    page = Page(text)
    assert "does not hold this fact:" in page.text("span")
    assert page.all("bdi", **{"class": "does"})


def test_shared_friend_and_price_are_marked(made: tuple[Report, list[Example]]) -> None:
    data, shown = made
    text = written(data, shown)
    friends = next(example for example in shown if example.family == "mutual_friends")
    held = [{fact.terms[0] for fact in agent.facts} for agent in friends.episodes[0].scenario.agents]
    (friend,) = held[0] & held[1]
    assert f'<mark class="shared">{friend}</mark>' in text
    bargain = next(example for example in shown if example.family == "craigslist").episodes[0]
    price = bargain.scenario.agents[0].facts[0].terms[0]
    turns = [{**bargain.turns[0], "text": f"I want {price} for it."}]
    values = [Turn(0, turns[0]["speaker"], Action("speak", turns[0]["text"]))]
    changed = replace(bargain, turns=turns, mentions=first_mentions(values, bargain.scenario))
    assert f'<mark class="own">{price}</mark>' in written(data, [Example("craigslist", (changed,))])


def test_examples_are_of_one_scenario_and_seed(made: tuple[Report, list[Example]]) -> None:
    assert sorted(example.family for example in made[1]) == ["craigslist", "everyday", "mutual_friends"]
    for example in made[1]:
        assert [episode.mode for episode in example.episodes] == list(MODES)
        assert len({(episode.scenario.id, episode.seed) for episode in example.episodes}) == 1


def test_the_first_model_of_each_mode_is_shown(tmp_path: Path) -> None:
    """tests/test_typical.py has the rule; a run of several models does not show the same mode twice."""
    store, run_id = simulate(tmp_path / "x.duckdb", everyday(), episodes=3, modes=("script", "agents"))
    with store.writing() as connection:
        connection.execute("UPDATE episodes SET model = 'another' WHERE mode = 'agents' AND episode_index = 2")
    (shown,) = examples(store, run_id)
    assert [(episode.mode, episode.model) for episode in shown.episodes][1] == ("agents", "another")
    assert len(shown.episodes) <= 2


def test_run_without_completed_episodes_is_explained(
    tmp_path: Path, made: tuple[Report, list[Example]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_seen: Observation, _rng: Any) -> Action:
        return Action("speak", "")

    monkeypatch.setitem(PLAYERS, "auto", broken)
    store, run_id = simulate(tmp_path / "x.duckdb", everyday(), generated("craigslist", 1))
    data = report(store, run_id)
    assert sum(row.failed for row in data.comparison) == 6
    page = Page(render(replace(data, talks=examples(store, run_id))))
    assert "Nothing to compare yet" in page.text("h2")
    assert "6 were planned, 6 failed" in page.text("p")
    assert not page.all("rect") and not page.all("article")
    page = Page(written(made[0], [], comparison=[]))
    assert "Nothing to compare yet" in page.text("h2")
    assert len(page.all("table")) == 1, "how it was made"


def test_the_models_of_roles_are_named_and_can_be_given_again(tmp_path: Path) -> None:
    scenario = generated("craigslist", 3)
    roles = {scenario.scenario.names[0]: "scripted:firm"}
    store, run_id = simulate(tmp_path / "x.duckdb", scenario, roles=roles)
    page = Page(render(replace(report(store, run_id), talks=examples(store, run_id))))
    assert "scripted:firm" in page.text("bdi")
    assert f"--role {scenario.scenario.names[0]}=scripted:firm" in page.text("pre")


def test_family_of_ones_own_and_odd_numbers(made: tuple[Report, list[Example]]) -> None:
    data, _ = made
    numbers = {
        "success_rate": Number("share", 0.5, 0.09, 0.91),
        "turns": Number("number", 3.0, -35.1, 41.1),
        "seller_surplus": Number("number", -0.25),
        "words_per_turn": Number("number", 0.0),
        "first_mention": Number("position", 0.4, -0.3, 1.2, 0),
    }
    row = Result("tea_party", "agents", "m", "agents", n=2, completed=2, numbers=numbers)
    page = Page(written(data, [], comparison=[row]))
    assert "Tea party" in page.text("h2")
    assert "−0.25" in page.text("td")
    assert "9–91%" in page.text("small") and "−35.10 to 41.10" in page.text("small")
    assert "−0.30 to 1.20" in page.text("small"), "the ends are printed as they are in the JSON"
    assert len(page.all("svg")) == 3


def test_how_it_was_made_holds_what_is_needed_to_make_it_again(made: tuple[Report, list[Example]]) -> None:
    data, shown = made
    llama = {"kind": "llama", "file": "small.gguf", "sha256": "0123456789abcdef0123", "build": "b1234"}
    plan = data.run.plan
    plan = {**plan, "model": "a b.gguf", "sampling": {**plan["sampling"], "temperature": 1.5, "grammar": False}}
    plan["secondary"] = ["turns:both"]
    run = replace(data.run, models={"a b.gguf": llama}, tokens_generated=1234567, plan=plan)
    accuracy = {"date": "2026-01-02", "file": "held.jsonl", "n": 80, "measures": {"ending": {"right": 60, "n": 80}}}
    page = Page(written(data, shown, run=run, parser_accuracy=accuracy))
    made_of = page.text()
    assert "0123456789ab" in made_of and "0123456789abc" not in made_of
    assert "1,234,567 generated" in made_of
    assert "80 labelled conversations" in made_of and "75% (60 of 80)" in made_of and "held.jsonl" in made_of
    assert "-m 'a b.gguf' --mode all -n 1 --seed 1 " in page.text("pre")
    assert "--temperature 1.5 --secondary turns:both --no-grammar" in page.text("pre")
    assert f"localsim report {run.run_id} -o report.html" in page.text("pre")
    told = "primary success_rate:information; secondary turns:both, whose p are corrected together (Holm); every other"
    assert told in made_of and "```\nlocalsim run " in as_markdown(data)
    unknown = Page(written(data, shown, parser_accuracy=None)).text("bdi")
    assert "has not been measured" in unknown and "unknown" in unknown


def test_same_data_gives_the_same_page(made: tuple[Report, list[Example]]) -> None:
    assert written(*made) == written(*made)
    assert len(written(*made).encode()) < 150_000


def test_meanings_cover_every_column(made: tuple[Report, list[Example]]) -> None:
    data, shown = made
    half = {measure.key: Number(measure.kind, 0.5) for measure in measures_of()}
    full = [replace(row, numbers=half) for row in data.comparison]
    text = written(data, shown, comparison=full)
    assert "<dd></dd>" not in text and '<p class="meaning"></p>' not in text
