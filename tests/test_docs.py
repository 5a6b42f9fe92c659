"""The documentation is true: commands, outputs, queries, links and counts; the site builds with its generated pages."""

from __future__ import annotations

import json
import logging
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

import localsim
from localsim import errors
from localsim.cli import cli
from localsim.conversation.scenario import ScenarioFile
from localsim.families import FAMILIES
from localsim.leakage.detector import Weights
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.scenarios.casting.people import load_people
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.find import find_scenarios, shipped_sources
from localsim.store.database import Store
from localsim.store.schema import TABLES, VIEWS
from scripts import make_docs
from tests.conftest import Quiet, generated

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "reference.md"
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "scenarios/README.md",
    ROOT / "models/README.md",
    ROOT / "models/starter.md",
]
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "log"]
"""Pages about localsim as it is; the others are history, and may show commands as they were."""
QUERIES = sorted((ROOT / "db" / "queries").glob("*.sql"))
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


# ---- queries, links, the map of the code ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("docs") / "d.duckdb")
    scenarios = (generated("mutual_friends"), generated("craigslist"))
    runner.start(Plan(scenarios, ("script", "agents"), "scripted", episodes=2), store, Quiet(), print)
    return store


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_every_worked_query_runs_and_is_documented(file: Path, filled: Store) -> None:
    columns, _ = filled.sql(file.read_text())
    assert columns
    assert file.read_text().strip() in (ROOT / "docs" / "sql.md").read_text(), "run make verify"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text()))
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(#[^)]*)?", prose):
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor and linked.suffix == ".md":
            headings = re.findall(r"^#+ (.*)", FENCE.sub("", linked.read_text()), re.MULTILINE)
            assert anchor[1:] in map(slug, headings), f"{page.name} links to {target}{anchor}"


def slug(heading: str) -> str:
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower())).strip("-")


def test_the_readme_names_every_folder_and_file_of_the_package_and_no_other() -> None:
    chapter = README.read_text().partition("## Where things are")[2].partition("\n## ")[0]
    inside = [path for path in (ROOT / "localsim").iterdir() if not path.name.startswith("__")]
    folders = {path.name for path in inside if path.is_dir()}
    assert set(re.findall(r"^(\w+)/ ", chapter, re.MULTILINE)) == folders
    assert set(re.findall(r"\b\w+\.py\b", chapter)) == {path.name for path in inside if path.suffix == ".py"}


def test_examples_of_play_name_roles_that_exist() -> None:
    texts = [page.read_text() for page in PAGES] + [(ROOT / "localsim" / "cli" / "play.py").read_text()]
    examples = [found for text in texts for found in re.findall(r"localsim play (\w+) --as (\w+)", text)]
    named = [(scenario, role) for scenario, role in examples if scenario.islower()]
    assert len(named) >= 3
    for scenario, role in named:
        assert role in find_scenarios([scenario])[0].scenario.names, f"{scenario} has no {role}"


# ---- every command line of every page ------------------------------------------------------------------------------


def command_lines(text: str) -> Iterator[str]:
    """Yield the localsim commands of a page, from blocks of shell lines and from code within a sentence.

    Code within a sentence may end with an option whose value the sentence leaves open; it gets one here.
    """
    for block in FENCE.finditer(text):
        if block["language"] in ("", "console", "bash", "sh"):
            for line in re.sub(r"\\\n", " ", block["text"]).splitlines():
                yield from re.findall(r"(?:^|[$;|(&] *|\bdo |/bin/)(localsim [a-z].*)", line.strip())
    for line in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)):
        for found in re.findall(r"^(?:\.venv/bin/)?(localsim (?:-|[a-z]).*)", line):
            yield f"{found} X" if re.search(r" --\w[\w-]*$", found) and problem_of(found) else found


def problem_of(line: str) -> str | None:
    """Return what is wrong with a documented command line, if anything."""
    words = shlex.split(re.split(r"\s(?:#|;|&&|\||>|2>)(?:\s|$)", line.replace("; done", ""))[0].replace("...", "…"))[
        1:
    ]
    if not words or words[0].startswith("-"):
        return None if set(words) <= {"-h", "--help", "--version"} else f"no option {words[0]}"
    command: click.Command = cli
    context = click.Context(cli, info_name="localsim")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        child = command.get_command(context, words[0])
        if child is None:
            return f"no command {words[0]!r}"
        command, context = child, click.Context(child, parent=context, info_name=words.pop(0))
    arguments = [word for word in words if word != "…"]
    try:
        values, _, _ = command.make_parser(context).parse_args(arguments)
    except click.UsageError as error:
        return error.format_message()
    return next(filter(None, (bad_value(param, values.get(param.name or "")) for param in command.params)), None)


def bad_value(param: click.Parameter, value: Any) -> str | None:
    """Return why a value does not suit its option; a word in capitals stands for any value."""
    if isinstance(value, str) and not value.isupper() and isinstance(param.type, click.Choice | click.IntRange):
        try:
            param.type.convert(value, param, None)
        except click.UsageError as error:
            return error.format_message()
    return None


@pytest.mark.parametrize("page", CURRENT, ids=name_of)
def test_every_command_line_of_a_page_exists(page: Path) -> None:
    wrong = [f"{line}: {problem}" for line in command_lines(page.read_text()) if (problem := problem_of(line))]
    assert not wrong, f"{name_of(page)} shows commands that do not work: {wrong}"


def test_command_lines_are_found_and_wrong_ones_noticed() -> None:
    assert sum(len(list(command_lines(page.read_text()))) for page in CURRENT) > 200
    for wrong in (
        "localsim dance",
        "localsim models fetch starter",
        "localsim run roommates --modes all",
        "localsim export @last -f xml",
        "localsim run roommates -n 0",
        "localsim show @last --prompt",
    ):
        assert problem_of(wrong), wrong
    for right in (
        "localsim run FILE... -n N --live  # a comment",
        "localsim runs",
        "localsim --help",
        "localsim sql -f x",
    ):
        assert problem_of(right) is None, right


# ---- generated pages and the site ----------------------------------------------------------------------------------


def test_the_reference_is_complete() -> None:
    pages = make_docs.pages()
    for name, command in make_docs.all_commands():
        assert f" localsim {name}\n" in pages["reference/commands.md"]
        for option in command.params:
            assert not isinstance(option, click.Option) or f"`{option.envvar}`" in pages["reference/commands.md"]
    for name in (*TABLES, *VIEWS):
        assert f"### {name}\n" in pages["reference/views.md"]
    for line in pages["reference/views.md"].splitlines():
        assert not line.endswith("|  |"), f"a column without a meaning: {line}"
    for name in localsim.__all__:
        assert name.startswith("__") or f"localsim.{name}" in pages["reference/python.md"]


def test_a_generated_page_is_printed_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["make_docs.py", "controls"])
    assert make_docs.main() == 0
    assert capsys.readouterr().out == make_docs.pages()["reference/controls.md"]


def test_every_generated_page_is_only_in_the_site_and_has_a_section_of_the_reference() -> None:
    headings = re.findall(r"^## (.*)", REFERENCE.read_text(), re.MULTILINE)
    assert [heading.lower() for heading in headings] == [*make_docs.PAGES, "exit codes"]
    assert not [name for name in make_docs.pages() if (ROOT / "docs" / name).exists()]


def test_the_site_builds_offline_without_a_warning_and_its_links_lead_somewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In this process, so that the guard of conftest.py refuses every connection."""
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site"), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    with caplog.at_level(logging.WARNING, "mkdocs"):
        build(config)
    assert not [record for record in caplog.records if record.name.startswith("mkdocs")]
    built = {page: page.read_text() for page in (tmp_path / "site").rglob("*.html")}
    assert len(built) > 20
    for page, text in built.items():
        loaded = re.findall(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=\"((?:https?:)?//[^\"]*)", text)
        assert not loaded, f"{page.name} loads {loaded}"
        for target in set(re.findall(r"(?:href|src)=\"(?!https?:|mailto:|data:|/)([^\"#?]+)", text)):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
        unled = re.findall(rf"reference\.html#({'|'.join(make_docs.PAGES)})\"", text)
        assert not unled, f"{page.name} has a link that does not lead to a generated page: {unled}"
    assert {tmp_path / "site" / name.replace(".md", ".html") for name in make_docs.pages()} <= set(built)


# ---- names and numbers ---------------------------------------------------------------------------------------------

ELSEWHERE = {
    "ray start": {"--num-cpus"},
    "inspect eval": {"--model-role"},
    "train_leakage.py": {"--no-mined", "--device"},
    "train_starter.py": {"--scale"},
    "bench_engine.py": {"--workload"},
    "gcc": {"-fno-dse"},
}
"""Options of other programs that a page may name alone, if it names the program too."""


@cache
def known_options() -> frozenset[str]:
    """Every option of every command."""
    params = [param for _, command in make_docs.all_commands() for param in command.params]
    options = [param for param in params if isinstance(param, click.Option)]
    return frozenset(name for option in options for name in (*option.opts, *option.secondary_opts)) | {
        "-h",
        "--help",
        "--version",
    }


@pytest.mark.parametrize("page", CURRENT, ids=name_of)
def test_every_option_and_view_that_a_sentence_names_exists(page: Path) -> None:
    text = page.read_text()
    known = known_options().union(*(names for tool, names in ELSEWHERE.items() if tool in text))
    named = {code.partition(" ")[0] for code in re.findall(r"`(--?[a-z][^`\n]*)`", FENCE.sub("", text))}
    named |= {found for line in command_lines(text) for found in re.findall(r" (--[a-z][\w-]*)", line)}
    assert not {name.partition("=")[0] for name in named} - known, name_of(page)
    assert not set(re.findall(r"\bv_[a-z_]+", text)) - set(VIEWS), name_of(page)


WORDS = {
    word: number for number, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), 2)
}
WORDS["seventeen"] = 17
NUMBER = rf"(\d[\d,]*|{'|'.join(WORDS)})"
PACKAGE = ROOT / "localsim"
COUNTS = {
    rf"{NUMBER} scenarios: two generated families": lambda: len([*shipped_sources(), *shipped_files("situations")]),
    rf"\b{NUMBER} (?:generated|task) (?:task )?families\b": lambda: len(FAMILIES.own),
    r"\b(\d+) \[?games\b": lambda: len(FAMILIES.games),
    r"\b(\d+) \[?situations\b": lambda: len(shipped_files("situations")),
    r"\b(\d+) people\b": lambda: len(load_people()),
    rf"\b{NUMBER} banks\b": lambda: len(shipped_files("banks")),
    rf"\b{NUMBER} folders\b": lambda: len([path for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]),
    rf"(?:2 to|up to) {NUMBER} agents\b": lambda: most_agents(),
}
"""What a page counts -> how many there are."""
COUNTING = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "scenarios/README.md"]


def most_agents() -> int:
    """The most agents that a scenario file may have."""
    schema = ScenarioFile.model_json_schema()
    return int(schema["properties"]["agents"]["maxItems"])


@pytest.mark.parametrize("pattern", COUNTS)
def test_counts_are_those_of_the_code(pattern: str) -> None:
    told = [(page.name, *found.groups()) for page in COUNTING for found in re.finditer(pattern, flat(page), re.I)]
    assert told, "no page says it any more: remove the pattern"
    for page, number in told:
        value = WORDS.get(number.lower()) or int(number.replace(",", ""))
        assert value == COUNTS[pattern](), f"{page}: {number}"


def flat(page: Path) -> str:
    """The sentences of a page in one line, without blocks of code."""
    return " ".join(FENCE.sub("", page.read_text()).split())


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("games.md", lambda: FAMILIES.games),
        ("interviews.md", lambda: (file.stem for file in shipped_files("banks"))),
        ("rubrics.md", lambda: (file.stem for file in shipped_files("rubrics"))),
    ],
)
def test_a_table_lists_what_there_is(page: str, names: Any) -> None:
    tables = re.split(r"\n\n", (ROOT / "docs" / page).read_text())
    rows = [set(re.findall(r"^\| `([a-z0-9_]+)`", table, re.MULTILINE)) for table in tables]
    assert set(names()) in rows


def test_exit_codes_are_those_of_the_errors() -> None:
    told = {
        int(code): set(re.findall(r"`(\w+)`", named))
        for code, named in re.findall(r"^\| (\d+) \|[^|]*\|(.*)\|$", REFERENCE.read_text(), re.MULTILINE)
    }
    codes: dict[int, set[str]] = {0: set(), 2: set(), 128 + signal.SIGTERM: {"Interrupted"}}
    for kind in vars(errors).values():
        stored = (errors.MalformedReply, errors.GenerationFailed)
        if isinstance(kind, type) and issubclass(kind, errors.LocalsimError) and kind not in stored:
            codes.setdefault(kind.exit_code, set()).add(kind.__name__)
    assert told == codes


def test_the_curve_of_false_alarms_is_that_of_the_detector() -> None:
    page = (ROOT / "docs" / "leakage.md").read_text()
    rows = re.findall(r"^\| \**(0\.\d+)[^|]*\| (\d+) of (\d+) \| (\d+) of (\d+) \|", page, re.MULTILINE)
    assert [tuple(map(float, row)) for row in rows] == [
        (point.share, point.first_turns_right, point.disclosed, point.silences_kept, point.silent)
        for point in Weights.read().talk_curve
    ]


# ---- what README and tutorial show ---------------------------------------------------------------------------------

TURN = re.compile(r" {1,3}\d+ \w+(?: \[[\w -]+\])?(?:: |$)|    \S")
"""A line of a transcript, a line that goes on with it, or a note below it."""
PROGRESS = re.compile(r"\d+ of \d+ episodes?, |still .*, \d+ s$")
FOLDED = re.compile(r"# in every mode: (.+)\.")
"""A line of a report that names the measures with one value in every mode, in place of their rows."""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The output of every command that the pages quote, on the real model where they say so."""
    return make_docs.quoted_outputs(tmp_path_factory.mktemp("quoted"))


def quoted() -> list[Any]:
    found = []
    for page in make_docs.QUOTING:
        for block in make_docs.BLOCK.finditer((ROOT / page).read_text()):
            found.append(pytest.param(block["command"], block["output"], id=f"{page}: {block['command'][9:40]}"))
    return found


def plain(lines: list[str], *, by_a_model: bool) -> list[str]:
    """Lines without what differs from run to run: ids, numbers, progress of a slow run, and the words of a model."""
    kept = [line for line in lines if not PROGRESS.match(line) and not (by_a_model and TURN.match(line))]
    text = "\n".join(kept)
    text = re.sub(r"\b\d{8}-\d{6}-[0-9a-f]{4}\b|\b[0-9a-f]{16}\b", "ID", text)
    text = re.sub(r"-?\d+(?:\.\d+)?%?(?: \[[^\]\n]*\])?", "#", text)
    text = re.sub(r"(?<= )-(?=\s)", "#", text)  # a value that is missing
    return [" ".join(re.sub(r"-{3,}", "---", line).split()) for line in text.split("\n")]


def without_rows(lines: list[str], folded: set[str]) -> list[str]:
    """Lines without the rows of these measures: on another machine a model's value may be the same in every mode."""
    return [line for line in lines if line.partition(" #")[0] not in folded and not FOLDED.match(line)]


@pytest.mark.parametrize(("command", "shown"), quoted())
def test_quoted_outputs_are_those_of_the_commands(command: str, shown: str, outputs: dict[str, list[str]]) -> None:
    by_a_model = "show @last" in command
    page, real = (plain(lines, by_a_model=by_a_model) for lines in (shown.split("\n"), outputs[command]))
    folded = {name for line in [*page, *real] if (found := FOLDED.match(line)) for name in found[1].split(", ")}
    real = [line for line in without_rows(real, folded) if line]
    place = 0
    for part in re.split(r"^\.\.\.$", "\n".join(without_rows(page, folded)), flags=re.MULTILINE):
        wanted = [line for line in part.split("\n") if line]
        if wanted:
            starts = range(place, len(real) - len(wanted) + 1)
            found = next((start for start in starts if real[start : start + len(wanted)] == wanted), None)
            assert found is not None, f"{command} does not print {wanted}, but {real}: make_docs.py --readme-outputs"
            place = found + len(wanted)


def test_quoted_conversations_are_from_the_recorded_run() -> None:
    """A model's words differ from machine to machine; those shown are in the record of the run, word for word."""
    episodes = make_docs.read_record()
    shown = [block for page in make_docs.QUOTING for block in make_docs.BLOCK.finditer((ROOT / page).read_text())]
    transcripts = [block["output"] for block in shown if block["command"] == "localsim show @last"]
    assert len(transcripts) == 2
    for transcript in transcripts:
        mode, seed = re.search(r"\[(\w+), starter, seed (\d+)\]", transcript).groups()  # type: ignore[union-attr]
        (episode,) = (found for found in episodes if (found["mode"], found["seed"]) == (mode, int(seed)))
        spoken = {f"{turn['turn'] + 1:>3} {turn['speaker']}: {turn['text']}" for turn in episode["turns"]}
        whole = re.sub(r"\n    (?! |\^)", " ", transcript)  # a long turn is shown on several lines
        lines = [line for line in whole.splitlines() if re.match(r" {1,3}\d+ \w+: ", line)]
        assert lines and set(lines) <= spoken
        disclosed = {leak["fact_id"] for leak in episode["leaks"]}
        assert set(re.findall(r"\^ discloses (\w+)", transcript)) <= disclosed


def test_the_talks_of_the_readme_are_from_the_recorded_run() -> None:
    """Each line that is quoted was said, in this order; what the page says of the two talks is what they scored."""
    text = (ROOT / "tests" / "data" / "readme_talks.jsonl").read_text(encoding="utf-8")
    recorded = {episode["mode"]: episode for episode in map(json.loads, text.splitlines())}
    (scene,) = re.findall(r"```text\n(script: .*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    for block in scene.split("\n\n"):
        head, *lines = block.strip().splitlines()
        episode = recorded[head.partition(":")[0]]
        assert head.endswith(" no success") == (episode["scores"]["success"] == 0), head
        whole = " ".join(line.strip() for line in lines)
        quoted = re.findall(r"(\w+): +(.*?)(?= \w+: | \.\.\.|$)", whole)
        said = [(turn["speaker"], turn["text"]) for turn in episode["turns"]]
        places = [said.index(line) for line in quoted]
        assert len(places) >= 2 and places == sorted(places), quoted
    assert recorded["script"]["scores"]["unearned_hits"] == 1 and recorded["agents"]["scores"]["unearned_hits"] == 0


def test_the_record_is_of_the_commands_that_the_pages_show() -> None:
    for page in make_docs.QUOTING:
        assert f"$ {make_docs.QUOTED_RUN}\n" in (ROOT / page).read_text()
    assert {episode["mode"] for episode in make_docs.read_record()} == {"script", "agents", "mindreaders"}
    assert all(json.dumps(episode) for episode in make_docs.read_record())


def test_the_python_of_the_page_works(tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
