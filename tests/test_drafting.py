"""Situations drafted from a premise: the task behind the words, what is refused and counted, and a real model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localsim.__main__ import run as command
from localsim.backends.scripted import ScriptedBackend
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.runs import drafting
from localsim.scenarios.casting.draft import OPTIONS, Deal, composed, deal_of, fields_of, read_draft
from localsim.scenarios.casting.playing import unplayable
from localsim.scenarios.casting.rules import parse_situation
from localsim.scenarios.find import find_scenarios

OPTION_WORDS = ("garden shed", "green bench", "old gate", "tall fence", "front door")
REASONS = (
    ("the hinges are broken", "a hedgehog sleeps below"),
    ("the painter arrives tomorrow", "the varnish smells badly", "the carpenter measured wrongly"),
)


def written(deal: Deal, **changes: str) -> str:
    """A good draft for a deal, after its first label; `changes` replace the words of lines by the start of a label."""
    words = ["A can of paint", "favours", "painter", "owner", "Some paint is left over.", "object", *OPTION_WORDS]
    for out, reasons in zip(deal, REASONS, strict=True):
        words += ["the paint to be used up", *reasons[: len(out)]]
    lines = []
    for field, word in zip(fields_of(deal), words, strict=True):
        replaced = next(
            (new for label, new in changes.items() if field.label.startswith(label.replace("_", " "))), word
        )
        lines.append(f"{field.start} {replaced}\n")
    return "".join(lines)


def replies(monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> None:
    """Let a scripted model write these drafts, one for each try."""
    raw = [text.removeprefix("Title:") for text in texts]

    @contextmanager
    def opened(names: list[str], *_: Any) -> Iterator[dict[str, ScriptedBackend]]:
        yield {names[0]: ScriptedBackend("scripted", replies=raw)}

    monkeypatch.setattr(drafting, "open_backends", opened)


def deals(seed: int, tries: int) -> list[Deal]:
    return [deal_of(drafting.derive_seed("draft", seed, attempt)) for attempt in range(tries)]


@pytest.mark.parametrize("seed", range(20))
def test_a_deal_leaves_one_option_that_no_side_can_know_alone(seed: int) -> None:
    deal = deal_of(seed)
    (left,) = set(range(OPTIONS)) - {*deal[0], *deal[1]}
    assert left > 0 and deal == deal_of(seed)
    situation = parse_situation(composed(read_draft(written(deal), deal), deal, "d", "s"), "d.yaml")
    assert situation.right == ((OPTION_WORDS[left],),)
    assert [len(role.facts) for role in situation.roles] == [len(out) for out in deal]


def test_a_good_draft_becomes_a_situation_that_people_are_cast_in_and_that_plays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate = ["scenarios", "generate", "--from-premise", "Paint is left {over}.", "-m", "scripted", "--seed", "3"]
    for folder in ("one", "two"):
        replies(monkeypatch, [written(deals(3, 1)[0])])
        assert command([*generate, "-o", str(tmp_path / folder)]) == 0
    assert "1 of 1 situations" in capsys.readouterr().out
    file = tmp_path / "one" / "premise_03.yaml"
    assert file.read_text() == (tmp_path / "two" / "premise_03.yaml").read_text()
    assert "Drafted by scripted from the premise: Paint is left (over)." in file.read_text()
    assert command(["scenarios", "lint", str(file)]) == 0
    (loaded,) = find_scenarios([f"{file}@1"])
    assert list(unplayable(loaded)) == [] and len(loaded.answer.parameters["people"]) == 2
    assert command([*generate, "-o", str(tmp_path / "one")]) == 3, "a file is not overwritten"


def test_drafts_that_break_a_rule_are_refused_with_reasons_and_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tries = deals(1, 4)
    out = tries[1][0][0] + 1
    texts = [
        written(tries[0], Second_role="painter"),
        written(tries[1], **{f"First_role_rules_out_option_{out}": "you told me so yesterday"}),
        written(tries[2]).replace("Kind: favours", "Kind: nonsense"),
        written(tries[3], Second_role="painter"),
    ]
    replies(monkeypatch, texts)
    generate = ["scenarios", "generate", "--from-premise", "Paint.", "-m", "scripted", "--tries", "4"]
    assert command([*generate, "-o", str(tmp_path)]) == 6
    told = capsys.readouterr()
    assert "0 of 1 situations" in told.out and "4 drafts refused" in told.out
    assert "2 refused: roles[1].role: role given more than once: painter" in told.out
    assert "without `you`" in told.out and "the line `Kind:` is missing" in told.out
    assert "no draft that passes" in told.err and not list(tmp_path.glob("*.yaml"))


def test_a_draft_that_cannot_be_played_is_refused_by_the_lint(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = deals(1, 2)
    replies(monkeypatch, [written(each) for each in tries])
    seen: list[str] = []

    def lint(loaded: LoadedScenario) -> list[str]:
        seen.append(loaded.scenario.id)
        return [] if len(seen) > 1 else ["the solver fails"]

    first, second = drafting.drafts("Paint.", "scripted", [("d", 1)], 5, lint, print)
    assert (first.problems, second.problems) == (("the solver fails",), ())
    assert drafting.counted_problems([first]) == [("the solver fails", 1)]


@pytest.mark.parametrize("premise", ["", "x" * 301])
def test_a_premise_without_a_fitting_length_is_refused(premise: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 300 characters"):
        list(drafting.drafts(premise, "scripted", [("d", 1)], 1, lambda _: [], print))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "either --family or --from-premise"),
        (["--family", "craigslist", "--from-premise", "x"], "either --family or --from-premise"),
        (["--from-premise", "x"], "--from-premise needs -m MODEL"),
    ],
)
def test_a_wrong_option_has_one_clear_error(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["scenarios", "generate", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.model
def test_a_real_model_writes_a_draft_in_its_form_and_what_is_wrong_with_it_is_said() -> None:
    """A small model rarely writes a draft that passes: what must hold is its form, and a reason for each refusal."""
    premise = "Two neighbours share one ladder and both need it at the weekend."
    (draft,) = drafting.drafts(premise, "starter", [("premise_01", 1)], 1, unplayable, print)
    deal = deal_of(draft.seed)
    words = read_draft(draft.text, deal)
    assert len(words) == len(fields_of(deal)) and draft.document is not None
    if draft.problems:
        assert all(draft.problems)
    else:
        assert parse_situation(draft.document, "premise_01.yaml").issues[0].options
