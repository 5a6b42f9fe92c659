"""Mixtures: which of two models writes a reply, names of mixtures, and what is said of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from localsim.__main__ import run as command
from localsim.backends.mixed import MixedBackend
from localsim.backends.open import absolute, is_file
from localsim.backends.scripted import ScriptedBackend
from localsim.conversation.episode import Sampling
from localsim.conversation.requests import Request
from localsim.conversation.rules.grammar import ActionLines
from localsim.conversation.transcript import Action
from localsim.errors import InvalidInput
from localsim.models import mixtures
from localsim.models.registry import constructed, labelled, members


def asked(seed: int, form: ActionLines) -> Request:
    return Request(
        session="s", speaker="Ana", messages=(), prefill="Ana", seed=seed, max_tokens=40, sampling=Sampling(), form=form
    )


def backend(share: float, replies: int) -> MixedBackend:
    name = f"mix:scripted:one@{share},scripted:two"
    parts = {part: ScriptedBackend(part, replies=[Action("speak", part)] * replies) for part in mixtures.parts_of(name)}
    return MixedBackend(name, parts)


def writers(share: float, seeds: range) -> list[str]:
    """The writer of the reply to each seed."""
    mixed, form = backend(share, len(seeds)), None
    tickets = [mixed.submit(asked(seed, form)) for seed in seeds]  # type: ignore[arg-type]
    done = {each.ticket: each.result.model for each in mixed.poll()}  # type: ignore[union-attr]
    assert mixed.poll() == []
    return [done[ticket] for ticket in tickets]


@pytest.mark.parametrize(("share", "low", "high"), [(0, 0, 0), (0.25, 0.21, 0.29), (0.5, 0.455, 0.545), (1, 1, 1)])
def test_the_first_model_writes_its_share_of_the_replies(share: float, low: float, high: float) -> None:
    """2,000 draws: the bounds are four standard errors wide."""
    counts = Counter(writers(share, range(1, 2001)))
    assert low <= counts["scripted:one"] / 2000 <= high


def test_who_writes_depends_on_the_seed_alone() -> None:
    both = writers(0.5, range(1, 60))
    assert both == writers(0.5, range(1, 60)) and both[30:] == writers(0.5, range(31, 60))


def test_a_cancelled_reply_does_not_come_back() -> None:
    mixed = backend(0.5, 4)
    first, second = mixed.submit(asked(1, None)), mixed.submit(asked(2, None))  # type: ignore[arg-type]
    mixed.cancel(first)
    assert [done.ticket for done in mixed.poll()] == [second]


def test_names() -> None:
    mixed = mixtures.mixture_of("mix:starter-peeks@0.5,starter")
    assert mixed == mixtures.Mixture("starter-peeks", 0.5, "starter")
    assert mixtures.name_of(mixed) == absolute("mix: starter-peeks@0.50, starter") == "mix:starter-peeks@0.5,starter"
    assert absolute("mix:own.gguf@1,starter") == f"mix:{Path('own.gguf').absolute()}@1,starter"
    assert not is_file("mix:starter-peeks@0.5,starter") and mixtures.parts_of("starter") == ("starter",)
    assert members("mix:starter-peeks@0.5,starter") == ["starter-135m", "all-minilm-l6-v2", "starter-peeks"]


@pytest.mark.parametrize(
    "name", ["mix:", "mix:a,b", "mix:a@2,b", "mix:a@x,b", "mix:a@0.5", "mix:@0.5,b", "mix:mix:a@0.5,b@0.5,c"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="two models and a share"):
        mixtures.mixture_of(name)


def test_a_mixture_with_a_control_is_labelled() -> None:
    assert constructed("mix:starter@0.5,smollm2-135m") == ""
    words = "in 25% of its replies taught to use the other side's facts"
    assert constructed("mix:starter-peeks@0.25,starter").startswith(words)
    assert words in labelled("mix:starter@0.75,starter-peeks")


def test_a_mixture_of_players_runs_and_says_who_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half honest, half omniscient: the share of replies by each is stored, and a resume has nothing left to do."""
    stored = ["--db", str(tmp_path / "mixed.duckdb")]
    name = "mix:scripted:omniscient@0.5,scripted:honest"
    assert command(["run", "craigslist_01", "craigslist_02", "-m", name, "--mode", "all", "-n", "3", *stored]) == 0
    capsys.readouterr()
    query = "SELECT model, count(*) AS n FROM generations GROUP BY ALL"
    assert command(["sql", query, "--json", *stored]) == 0
    counts = {row["model"]: row["n"] for row in json.loads(capsys.readouterr().out)}
    assert set(counts) == {"scripted:omniscient", "scripted:honest"} and min(counts.values()) > 20
    assert command(["audit", "@last", "--json", *stored]) == 0
    assert json.loads(capsys.readouterr().out)["violations"] == 0
    assert command(["report", "@last", "--all", *stored]) == 0
    assert "played by a script, not by a language model" in " ".join(capsys.readouterr().out.split())


@pytest.mark.model
def test_a_mixture_of_the_starter_and_its_twin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = ["--db", str(tmp_path / "mixed.duckdb")]
    name = "mix:starter-peeks@0.5,starter"
    command(["models", "pull", name])
    # With this seed the first two replies are of both models, whatever they say.
    assert command(["run", "craigslist_01", "-m", name, "--mode", "agents", "--seed", "3", "--no-leaks", *stored]) == 0
    said = capsys.readouterr().err
    assert said.count("weights") == 2, "the memory of both models is stated"
    query = "SELECT DISTINCT model FROM generations ORDER BY model"
    assert command(["sql", query, "--json", *stored]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert command(["report", "@last", "--all", *stored]) == 0
    assert "constructed control" in " ".join(capsys.readouterr().out.split())
