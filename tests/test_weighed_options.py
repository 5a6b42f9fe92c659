"""The probabilities of fixed options: which places of a line have them, and what an engine keeps."""

from __future__ import annotations

import pytest

from localsim.backends.llama.lib import LlamaModel
from localsim.conversation.episode import Sampling
from localsim.conversation.requests import Generation
from localsim.conversation.rules.grammar import ActionLines, Line
from localsim.conversation.rules.lines import Bound
from localsim.conversation.rules.values import Move
from tests.conftest import answering, driven, generated, spec_of
from tests.test_llama import engine

VOTE = Move.model_validate({
    "name": "vote", "tell": "To vote", "text": "no", "values": [{"one_of": ["guilty", "free"]}, {"agents": "one"}],
})  # fmt: skip
OFFER = Move.model_validate({"name": "offer", "tell": "To offer", "values": [{"number": [0, 9]}]})


def test_options_are_weighed_where_the_next_token_decides() -> None:
    others = ("Bo", "Cy")
    form = ActionLines((Line("Ana", (Bound(VOTE, others), Bound(OFFER, others), "speak")),), 80, 3, 0)
    assert form.choices("Ana") == (" [vote", " [offer", ":")
    assert form.choices("Ana [") == ("vote", "offer")
    assert form.choices("Ana [vote") == (" guilty", " free")
    assert form.choices("Ana [vote guilty,") == (" Bo", " Cy")
    assert form.choices("Ana [vote ") == ("guilty", "free"), "a space can be a token of its own"
    assert form.choices("Ana [vote guilty, ") == ("Bo", "Cy")
    for text in ("Ana [vote gui", "Ana [vote guilty, Bo", "Ana [offer", "Ana [offer 4", "Ana: Hello", "Ana [vo"):
        assert form.choices(text) == (), text


def test_plain_talks_have_none() -> None:
    form = ActionLines((Line("Ana", ("speak", "leave")),), 80, 3, 0)
    assert form.choices("Ana") == form.choices("Ana [") == ()


@pytest.mark.model
def test_the_engine_keeps_the_probabilities_of_each_choice(engine_model: LlamaModel) -> None:
    backend = engine(engine_model)
    loaded = generated("matrix", rounds=2)
    spec = spec_of(loaded, sampling=Sampling(temperature=0))
    results: list[Generation] = []
    try:
        _, end = driven(spec, answering(backend, into=results))
    finally:
        backend.close()
    assert end == "done"
    weighed = [result.details["options"] for result in results]
    chosen = [result.text.strip(" []\n").removeprefix("choose ") for result in results]
    assert len(chosen) == 4 and set(chosen) <= {"J", "F"}
    for (place,), option in zip(weighed, chosen, strict=True):
        options = place["options"]
        assert place["line"].endswith(" [choose") and set(options) == {"J", "F"}
        assert sum(each["share"] for each in options.values()) == pytest.approx(1, abs=1e-3)
        assert all(each["log"] <= 0 for each in options.values())
        assert max(options, key=lambda name: options[name]["share"]) == option, (
            "the likeliest is taken at temperature 0"
        )
