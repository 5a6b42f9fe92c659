"""The command line as a person uses it: output, exit codes, start-up, resume after a kill."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from localsim.__main__ import run
from localsim.cli import _COMMANDS, cli, show
from localsim.cli.common import Finite
from localsim.cli.progress import Progress
from localsim.families.mentions import Mention
from localsim.models.registry import ModelFile
from localsim.scenarios.parse import load_scenario

ROOT = Path(__file__).resolve().parent.parent
FRIENDS = str(ROOT / "scenarios" / "mutual_friends_01.yaml")
HAGGLE = str(ROOT / "scenarios" / "craigslist_01.yaml")
ANSI = "\x1b["


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    code = run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, err = ask(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out, parse_constant=not_json)


def not_json(word: str) -> Any:
    raise AssertionError(f"{word} is not JSON")


@pytest.fixture
def done(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """A finished scripted run of both families in all modes."""
    found: dict[str, Any] = as_json(
        capsys, "run", FRIENDS, HAGGLE, "--mode", "all", "-n", "2", "--seed", "7", "-m", "scripted"
    )
    return found


def test_run_prints_one_json_object(done: dict[str, Any]) -> None:
    assert {"run_id", "episodes", "completed", "failed", "seconds", "tokens_generated", "tokens_evaluated"} <= set(done)
    assert (done["episodes"], done["completed"], done["failed"]) == (12, 12, 0)


def test_every_command_answers_about_a_run(
    done: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_id = done["run_id"]
    audit = as_json(capsys, "audit", "@last")
    assert audit["prompts_checked"] > 0 and audit["violations"] == 0
    report = as_json(capsys, "report", run_id)
    assert {(row["family"], row["mode"]) for row in report["comparison"]} == {
        (family, mode) for family in ("mutual_friends", "craigslist") for mode in ("script", "agents", "mindreaders")
    }
    keys = "family mode model n completed failed success_rate explicit_end_rate deal_rate in_zone_rate first_mention"
    keys += " first_mention_n wrong_guesses words_per_turn turns repeated_turn_rate malformed_rate success_rate_low"
    assert set(keys.split()) <= set(report["comparison"][0])
    assert as_json(capsys, "runs", "list")[0]["run_id"] == run_id
    assert as_json(capsys, "runs", "show", run_id)["seed"] == 7
    assert len(as_json(capsys, "sql", "FROM v_episodes")) == 12
    shown = as_json(capsys, "show", "@last")
    assert shown["turns"] and shown["first_mentions"]
    prompt = as_json(capsys, "show", "@last", "--prompt", "1")
    assert prompt[0]["role"] == "system" and prompt[-1]["role"].startswith("reply")
    assert as_json(capsys, "db", "check") == {"problems": []}
    assert as_json(capsys, "db", "info")["episodes"] == 12
    for form, target in (("jsonl", "r.jsonl"), ("parquet", "p"), ("csv", "c")):
        assert ask(capsys, "export", run_id, "-f", form, "-o", str(tmp_path / target))[0] == 0
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 12
    assert {path.name for path in (tmp_path / "p").iterdir()} >= {"episodes.parquet", "turns.parquet"}
    code, _, _ = ask(capsys, "report", run_id, "-o", str(tmp_path / "deep" / "r.html"))
    assert code == 0 and "</html>" in (tmp_path / "deep" / "r.html").read_text()
    assert ask(capsys, "runs", "rm", run_id, "-y")[0] == 0
    assert as_json(capsys, "runs", "list") == []


def test_what_is_measured_can_be_asked_for(
    done: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = as_json(capsys, "sql", "SELECT * FROM scores ORDER BY ALL")
    scored = as_json(capsys, "score", done["run_id"])
    assert scored["episodes_scored"] == 12 and scored["leaks"]
    assert as_json(capsys, "score", done["run_id"])["episodes_scored"] == 0, "a version looks once"
    kept = as_json(capsys, "sql", "SELECT * FROM scores WHERE evaluator <> 'leakage' ORDER BY ALL")
    assert kept == before, "scoring changes no earlier number"
    report = as_json(capsys, "report", "@last")
    assert report["leaks"] and report["detector"]["pairs"]["n"] > 100
    assert report["card"]["simulation_details"]["transparency_index"]["agents"] == 0.0
    assert any(row["disclosed_rate"] for row in report["comparison"])
    _, out, _ = ask(capsys, "report", "@last", "--all", "-o", str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text()
    assert "facts disclosed" in out and "private facts came out" in page and "Leakage detector" in page
    rows = as_json(capsys, "compare", "@last")
    assert {"measure", "difference", "low", "high", "p", "p_holm", "n", "icc", "primary"} <= set(rows[0])
    assert ask(capsys, "compare", "@last")[0] == 0
    assert ask(capsys, "card", "@last", "--lint")[0] == 3
    assert ask(capsys, "card", "@last", "-o", str(tmp_path / "card.md"))[0] == 0
    assert "Simulation card" in (tmp_path / "card.md").read_text()
    assert any(path.endswith(".png") for path in as_json(capsys, "plot", "@last", "-o", str(tmp_path / "f")))


def test_the_detector_is_measured_on_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    labels = Path(__file__).parent.parent / "scenarios" / "leakage"
    for kind, keys in (
        ("pairs", {"n", "precision", "recall", "f1", "auroc", "by_difficulty"}),
        ("transcripts", {"n", "first_turn_accuracy", "position_mae", "omniscient_recall", "omniscient_precision"}),
    ):
        few = tmp_path / f"{kind}.jsonl"
        lines = (labels / f"train.{kind}.jsonl").read_text().splitlines(keepends=True)
        few.write_text("".join(lines[: 40 if kind == "pairs" else 3]))
        assert keys <= set(as_json(capsys, "leakage", "bench", str(few)))
    mine = tmp_path / "mine.json"
    assert as_json(capsys, "leakage", "calibrate", str(tmp_path / "pairs.jsonl"), "-o", str(mine))["output"]
    assert ask(capsys, "leakage", "bench", str(few.with_name("pairs.jsonl")), "--weights", str(mine))[0] == 0
    code, _, err = ask(capsys, "leakage", "bench", str(tmp_path / "none.jsonl"))
    assert code == 3 and "none.jsonl" in err


def test_show_tells_the_outcome_and_where_hits_are(capsys: pytest.CaptureFixture[str]) -> None:
    ask(capsys, "run", FRIENDS, "--mode", "script", "-m", "scripted:omniscient", "--leaks")
    ask(capsys, "run", HAGGLE, "--mode", "script", "-m", "scripted:omniscient")
    _, out, _ = ask(capsys, "show", "@last")
    assert "Goal reached. They agree on $95." in out and "Looks like a hit, but not judged: turn 1." in out
    assert "^ looks like an untold hit. First offer $95, at the buyer's target or the middle of both; not judged" in out
    code, _, err = ask(capsys, "show", "friends")
    assert code == 3 and "newest episode of mutual_friends_01: localsim show " in err and "@last" in err
    _, out, _ = ask(capsys, "show", err.split("localsim show ")[1].split(";")[0], "--scores")
    assert "Untold hits: turn 1." in out and "Untold facts: 0." in out and "is no untold fact" in out
    assert re.search(r"turns to friend: 1  \w+ names \w+ in turn 1", out), "readers count from 1"


@pytest.mark.usefixtures("done")
def test_show_says_where_a_first_mention_and_the_search_disagree(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask(capsys, "run", FRIENDS, "-m", "scripted", "--leaks")[0] == 0
    stored = show.load_episode
    for kind, disclosed, said in (("none", 9, True), ("self", 2, True), ("self", 0, False), ("omniscient", 1, False)):
        mention = Mention("one", ("Beatrix",), "receipts", 1, "Oscar", 0, 8)
        leak = {"fact_id": "one", "turn": disclosed, "kind": kind, "probability": 1.0, "fact": "F.", "early": False}
        leaks = [leak | {"earliest": disclosed, "latest": disclosed + 1}]
        found = leaks if kind != "none" else []
        monkeypatch.setattr(
            show, "load_episode", lambda *a, f=found, m=mention: replace(stored(*a), leaks=f, mentions=[m])
        )
        _, out, _ = ask(capsys, "show", "@last")
        assert ("name receipts in turn 2: a guess, or a leak" in " ".join(out.split())) is said, (kind, disclosed)
        told = f"100% sure, between turns {disclosed + 1} and {disclosed + 2}" in " ".join(out.split())
        assert told is (kind != "none"), (kind, disclosed)


def test_one_episode_is_not_called_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(capsys, "run", FRIENDS, "-m", "scripted", "--leaks")
    assert code == 0 and "of 1 episode in" in out and "1 episodes" not in out + err


def test_show_marks_first_mentions_and_keeps_control_characters_out(
    done: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert done["completed"] == 12
    _, out, _ = ask(capsys, "show", "@last", "--scores")
    assert "first mention of" in out and "goal:" in out
    hostile = tmp_path / "lines.txt"
    hostile.write_text('beep \x07 and \x1b[31mred\x1b[0m\n{"action": "leave", "text": "bye"}\n')
    role = f"Oscar=scripted:@{hostile}"
    code, _, err = ask(capsys, "run", FRIENDS, "-m", "scripted", "--role", role, "--live", "--db", "hostile.duckdb")
    assert code == 0
    assert "\x07" not in err and f"{ANSI}31mred" not in err
    assert "agents/0  1 " in err and "agents/0  0 " not in err, "readers count turns from 1"
    _, out, _ = ask(capsys, "show", "@last", "--db", "hostile.duckdb")
    assert "\x07" not in out and f"{ANSI}31mred" not in out and "beep" in out


def test_models_of_roles_are_stored(capsys: pytest.CaptureFixture[str]) -> None:
    as_json(capsys, "run", HAGGLE, "-m", "scripted", "--role", "Ewan=scripted:patient-buyer")
    assert as_json(capsys, "sql", "SELECT model FROM v_episodes") == [{"model": "scripted|scripted:patient-buyer"}]


def test_a_role_is_a_name_or_a_number_as_an_agent_who_sees_is(capsys: pytest.CaptureFixture[str]) -> None:
    second = load_scenario(HAGGLE).scenario.names[1]
    for role in (second, "2"):
        as_json(capsys, "run", HAGGLE, "-m", "scripted", "--role", f"{role}=scripted:patient-buyer", "--see", "1=goal")
    assert as_json(capsys, "sql", "SELECT model FROM v_episodes") == [{"model": "scripted|scripted:patient-buyer"}] * 2


def test_dry_run_touches_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = as_json(capsys, "run", FRIENDS, "--mode", "all", "-n", "3", "--dry-run")
    assert plan["episodes"] == 9 and "cache" in plan["memory"][0]
    assert not list(tmp_path.glob("*.duckdb*"))


# ---- bad input -----------------------------------------------------------------------------------------------------

BROKEN = "version: 1\nid: x\ntitle: t\n  bad indent: 1\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", FRIENDS, "-m", "no-such-model"], 4, ["no-such-model", "models list"]),
        (["run", FRIENDS, "-m", "smollm2-135n"], 4, ["did you mean smollm2-135m"]),
        (["run", FRIENDS, "-m", "missing.gguf"], 4, ["missing.gguf"]),
        (["run", FRIENDS, "-m", "cut.gguf"], 4, ["cut.gguf", "damaged"]),
        (["run", FRIENDS, "-m", "all-minilm-l6-v2"], 4, ["embedding"]),
        (["run", FRIENDS, "-m", "scripted:nobody"], 3, ["nobody", "players of mutual_friends: ", "peeks-50"]),
        (["run", FRIENDS, "--role", "Oskar=scripted", "-m", "scripted"], 3, ["Oskar", "did you mean Oscar"]),
        (["run", FRIENDS, "--role", "3=scripted", "-m", "scripted"], 3, ["'3'", "or 1 to 2 in their order"]),
        (["run", FRIENDS, "--see", "3=goal", "-m", "scripted"], 3, ["'3'", "or 1 to 2 in their order"]),
        (["run", "broken.yaml"], 3, ["broken.yaml:4:"]),
        (["run", "nowhere.yaml"], 3, ["nowhere.yaml", "no such file"]),
        (["run", "mutual_friend_01"], 3, ["did you mean mutual_friends_01"]),
        (["run", FRIENDS, "--mode", "psychic"], 2, ["psychic", "mindreaders"]),
        (["run", FRIENDS, "-n", "0"], 2, ["-n"]),
        (["run", FRIENDS, "--temperature", "nan"], 2, ["--temperature", "nan is not a number"]),
        (["run", FRIENDS, "--fail-on-error", "nan"], 2, ["--fail-on-error", "nan"]),
        (["run", FRIENDS, "--fail-on-error", "inf"], 2, ["--fail-on-error", "inf"]),
        (["finetune", "--epochs", "nan"], 2, ["--epochs", "nan"]),
        (["sql", "SELECT 1", "--timeout", "inf"], 2, ["--timeout", "inf"]),
        (["run", FRIENDS, "--seed", "1", "--seed", "2"], 2, ["--seed is given 2 times"]),
        (["run", FRIENDS, "-n", "1", "--episodes", "2"], 2, ["--episodes is given 2 times"]),
        (["run", FRIENDS, "--leaks", "--no-leaks"], 2, ["--leaks is given 2 times"]),
        (["sql", "SELECT 1", "--db", "a", "--db", "b"], 2, ["--db is given 2 times"]),
        (["models", "list", "--json", "--json"], 0, []),
        (["run", FRIENDS, "--mode", "agents", "--mode", "scrip"], 2, ["did you mean script"]),
        (["leakage", "bench", "deep.jsonl"], 3, ["deep.jsonl:2", "nested too deep"]),
        (["run"], 2, ["SCENARIO"]),
        (["nonsense"], 2, ["nonsense"]),
        (["show", "@last"], 5, ["localsim run"]),
        (["sql", "SELECT 1"], 5, ["no database"]),
        (["report", "--db", "/proc/version/x.duckdb"], 5, ["no database"]),
    ],
)
def test_bad_input_gets_one_clear_message(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    code: int,
    words: list[str],
    starter: ModelFile,
) -> None:
    (tmp_path / "broken.yaml").write_text(BROKEN)
    (tmp_path / "deep.jsonl").write_text("\n" + "[" * 100_000)
    with starter.path.open("rb") as whole:
        (tmp_path / "cut.gguf").write_bytes(whole.read(3_000_000))
    found, out, err = ask(capsys, *arguments)
    assert found == code, err
    assert (out == "" or code == 0) and "Traceback" not in err
    assert all(word in err for word in words), err
    assert not (tmp_path / "test.duckdb").exists()


EMPTY = (
    "runs rm -y _; runs rm _ -y; show _; resume _; run _ -m scripted; scenarios validate _; scenarios show _; replay _;"
    " import talks _; sql -f _; report @last -o _; export @last -f csv -o _; db merge _ -o MADE; db attach _ -o MADE"
)


def test_an_empty_word_names_no_run_scenario_or_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ask(capsys, "run", FRIENDS, "-m", "scripted", "--no-leaks")
    for words in EMPTY.split("; "):
        given = words.replace("MADE", str(tmp_path / "made.duckdb")).split()
        code, out, err = ask(capsys, *("" if word == "_" else word for word in given))
        assert (code, out) == (3, "") and " is empty\nhint: " in err and err.count("\n") == 2, words
    assert len(as_json(capsys, "runs", "list")) == 1 and not (tmp_path / "made.duckdb").exists()


def test_a_folder_for_a_file_and_a_file_for_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (file := tmp_path / "notes.txt").write_text("mine")
    ask(capsys, "run", FRIENDS, "-m", "scripted", "--no-leaks")
    for words in ("bundle @last -o", "report @last -o", "show @last --image", "sql -f", "replay"):
        code, _, err = ask(capsys, *words.split(), str(tmp_path))
        assert code == 3 and f"error: File {str(tmp_path)!r} is a directory\nhint: " in err, words
    code, _, err = ask(capsys, "export", "@last", "--partitioned", str(file))
    assert code == 3 and "is a file\nhint: " in err and file.read_text() == "mine"


def test_errors_under_json_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(capsys, "run", FRIENDS, "-m", "no-such-model", "--json")
    assert (code, out) == (4, "")
    assert {"error", "where", "hint", "exit"} == set(json.loads(err))


def test_a_wrong_checksum_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starter: ModelFile
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / starter.path.name).write_bytes(b"GGUF" + b"\0" * 1000)
    monkeypatch.setenv("LOCALSIM_MODELS", str(folder))
    for arguments in (["run", FRIENDS, "-m", "starter"], ["models", "verify", "starter"]):
        code, _, err = ask(capsys, *arguments)
        assert code == 4 and "checksum" in err and "models pull" in err


def test_a_native_crash_is_a_message_and_not_a_dead_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = tmp_path / "crash.py"
    crash.write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setenv("LOCALSIM_PROBE", f"{sys.executable} {crash}")
    code, _, err = ask(capsys, "run", FRIENDS)
    assert code == 7
    assert "SIGSEGV" in err and "GGML_NATIVE=OFF" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_as_a_user(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
    code, _, err = ask(capsys, "run", FRIENDS, "-m", "scripted", "--db", str(closed / "x.duckdb"))
    assert code == 5 and "closed" in err


def test_a_place_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ask(capsys, "run", FRIENDS, "-m", "scripted", "--db", "/proc/x.duckdb")
    assert code == 5 and "/proc" in err and "--db" in err


def test_failed_episodes_set_the_exit_code_and_keep_their_raw_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    short = tmp_path / "short.txt"
    short.write_text("Hello there\n")
    arguments = ["run", FRIENDS, "-m", "scripted", "--role", f"Oscar=scripted:@{short}"]
    code, _, err = ask(capsys, *arguments)
    assert code == 6 and "1 of 1" in err
    rows = as_json(capsys, "sql", "SELECT status, error FROM v_episodes")
    assert rows[0]["status"] == "failed" and "no replies left" in rows[0]["error"]
    (run_id,) = re.findall(r"localsim runs show (\S+) lists the reasons", err)
    assert as_json(capsys, "report", run_id)["comparison"][0]["success_rate"] is None
    assert ask(capsys, *arguments, "--fail-on-error", "5")[0] == 0


def test_every_option_that_takes_a_fraction_refuses_what_is_no_number() -> None:
    def options(command: click.Command) -> Iterator[click.Parameter]:
        yield from command.params
        for child in command.commands.values() if isinstance(command, click.Group) else ():
            yield from options(child)

    for name in _COMMANDS:
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        for option in options(command):
            fraction = isinstance(option.type, click.FloatRange) or option.type is click.FLOAT
            assert not fraction or isinstance(option.type, Finite), f"{name}: {option.name}"


def test_modes_are_combined(capsys: pytest.CaptureFixture[str]) -> None:
    def modes(*options: str) -> list[str]:
        found: list[str] = as_json(capsys, "run", FRIENDS, "-m", "scripted", "--dry-run", *options)["modes"]
        return found

    assert modes() == ["agents"]
    assert modes("--mode", "agents", "--mode", "script") == ["agents", "script"]
    assert modes("--mode", "script,agents", "--mode", "script") == ["script", "agents"]
    assert modes("--mode", "script", "--mode", "all") == ["script", "agents", "mindreaders"]


# ---- queries -------------------------------------------------------------------------------------------------------


def test_a_table_of_many_rows_is_cut_and_says_so(done: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert done
    for form, lines in (("table", 10_002), ("csv", 10_001)):
        code, out, err = ask(capsys, "sql", "SELECT * FROM range(400000000)", "--format", form)
        assert (code, len(out.splitlines())) == (0, lines)
        assert "only the first 10000 rows" in err and "--limit 0" in err
    assert len(as_json(capsys, "sql", "SELECT * FROM range(20000)")) == 10_000
    assert len(as_json(capsys, "sql", "SELECT * FROM range(20000)", "--limit", "0")) == 20_000
    code, out, err = ask(capsys, "sql", "SELECT * FROM range(5)", "--limit", "5", "--format", "csv")
    assert (code, len(out.splitlines()), err) == (0, 6, "")


def test_all_rows_stream_in_little_memory_until_the_time_is_over(done: dict[str, Any]) -> None:
    assert done
    code = (
        "import pathlib, re, sys; from localsim.__main__ import run; code = run(sys.argv[1:]);"
        "status = pathlib.Path('/proc/self/status'); text = status.read_text() if status.exists() else 'VmHWM: 0';"
        "print('peak', int(re.search(r'VmHWM:\\s+(\\d+)', text)[1]) // 1024, file=sys.stderr); sys.exit(code)"
    )
    query = ["sql", "SELECT * FROM range(400000000)", "--limit", "0", "--timeout", "2", "--format"]
    for form in ("csv", "json"):
        found = subprocess.run([sys.executable, "-c", code, *query, form], capture_output=True, text=True, check=False)
        assert found.returncode == 3, found.stderr[-500:]
        assert "broken off after 2 s" in found.stderr
        peak = re.search(r"^peak (\d+)$", found.stderr, re.MULTILINE)  # DuckDB can complain about leaks after it
        assert peak and int(peak[1]) < 600, "MB"
        assert len(found.stdout) > 10_000


def test_json_is_valid_for_every_number_and_the_same_however_it_is_printed(
    done: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert done
    numbers = "SELECT 'nan'::DOUBLE AS a, '-inf'::DOUBLE AS b, [1.5, 'inf'::DOUBLE] AS c"
    assert as_json(capsys, "sql", numbers) == [{"a": None, "b": None, "c": [1.5, None]}]
    for query in ("FROM v_turns ORDER BY ALL", "SELECT * FROM v_turns WHERE false", "SELECT 'a\u2028\nb' AS t, 1"):
        whole = ask(capsys, "sql", query, "--json")[1]
        assert ask(capsys, "sql", query, "--json", "--limit", "0")[1] == whole
        assert json.dumps(json.loads(whole), indent=2, ensure_ascii=False) + "\n" == whole


STEERING = "\x1b[31m\x07\x9b31m\u202e\u2066\u200b\u2028\x00\x7f\U000e0001"


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_stored_text_does_not_steer_a_terminal(
    done: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    assert done
    characters = " || ".join(f"chr({ord(char)})" for char in STEERING if char != "\0")
    query = f"SELECT 'é漢' || {characters} || 'end' AS text"
    _, piped, _ = ask(capsys, "sql", query, "--format", form)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, shown, _ = ask(capsys, "sql", query, "--format", form)
    assert code == 0 and "é漢" in shown and "end" in shown
    shown = re.sub(r"\x1b\[(?:0|1|22)m", "", shown)  # the style of headings
    assert all(char.isprintable() or char == "\n" for char in shown), repr(shown)
    if form != "table":
        assert "\u202e" in piped, "a pipe gets the text as it is"
    if form == "json":
        assert json.loads(shown) == json.loads(piped)


def test_a_database_that_vanishes_during_a_run_is_one_error_and_resume_continues(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Progress.ended
    with monkeypatch.context() as during:
        during.setattr("localsim.runs.recorder.EVERY_S", 0.0)
        during.setattr(
            Progress, "ended", lambda bar, end: (ended(bar, end), (tmp_path / "test.duckdb").unlink(missing_ok=True))
        )
        code, out, err = ask(capsys, "run", FRIENDS, "-m", "scripted", "-n", "4", "-j", "1")
    assert (code, out) == (5, "") and "Traceback" not in err
    assert "removed or replaced" in err and "localsim resume" in err
    assert as_json(capsys, "resume")["completed"] == 4
    assert as_json(capsys, "db", "check") == {"problems": []}
    assert len(as_json(capsys, "sql", "FROM v_episodes")) == 4


# ---- start-up ------------------------------------------------------------------------------------------------------


def test_help_names_every_command_and_every_command_has_help_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ask(capsys, "--help")
    for name in _COMMANDS:
        assert f"  {name} " in out
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None and command.help and command.help.splitlines()[0].endswith(".")


LIGHT = """
import sys
from localsim.__main__ import run
code = run(sys.argv[1:])
heavy = {"torch", "llama_cpp", "sentence_transformers", "transformers"} & set(sys.modules)
print("HEAVY", sorted(heavy), code, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["sql", "FROM v_turns"], ["show", "@last"], ["show"], ["scenarios", "list"], ["runs"]]
)
def test_reading_commands_import_nothing_heavy(done: dict[str, Any], arguments: list[str]) -> None:
    assert done
    command = [sys.executable, "-c", LIGHT, *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "HEAVY [] 0" in found.stderr
