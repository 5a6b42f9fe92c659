"""Forms of chat templates and of vocabularies: each is rendered, or refused with the template's own reason, and in none
of them can a content become control.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.engine import LlamaBackend
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.suits import ensure_suits
from localsim.backends.llama.template import ChatTemplate
from localsim.conversation.episode import Sampling
from localsim.conversation.requests import Generation, Message, Request
from localsim.conversation.rules.grammar import ActionLines, Line
from localsim.errors import BackendUnavailable, ModelMissing
from localsim.machine.template_check import check_template, shown
from tests import tiny_model
from tests.tiny_model import Family

SHORT = (Message("system", "S"), Message("user", "U"), Message("assistant", "A"), Message("user", "V"))
TURNS = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
USUAL = "<system>S</system><user>U</user><assistant>A</assistant><user>V</user><assistant>"
ASKS = "{% if add_generation_prompt %}<assistant>{% endif %}"
GPT_OSS = (
    "{{ '<|start|>system<|message|>Reasoning: ' + (reasoning_effort or 'medium') + '\n# Channels: analysis, final.' }}"
    "{% if tools %}{% for tool in tools %}{{ tool.function.name }}{% endfor %}{% endif %}{{ '<|end|>' }}"
    "{% if messages[0].role == 'system' %}{{ '<|start|>developer<|message|>' + messages[0].content + '<|end|>' }}"
    "{% set messages = messages[1:] %}{% endif %}{% for m in messages %}{% if m.role == 'assistant' %}"
    "{% if m.tool_calls %}{{ '<|start|>assistant to=functions.' ~ m.tool_calls[0].name }}{% else %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' ~ m.content ~ '<|end|>' }}{% endif %}{% else %}"
    "{{ '<|start|>' ~ m.role ~ '<|message|>' ~ m.content ~ '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"
)
FORMS = {
    "plain": TURNS + ASKS,
    "loops over tools": "{% for tool in tools %}{{ tool.name }}{% endfor %}" + TURNS + ASKS,
    "tools counted": "{% if tools|length > 0 %}x{% endif %}" + TURNS + ASKS,
    "asks if tools are defined": "{% if tools is defined and tools is none %}{% endif %}" + TURNS + ASKS,
    "generation marks": "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}"
    "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}</{{ m.role }}>{% endfor %}" + ASKS,
    "typed contents": "{% for m in messages %}<{{ m.role }}>{% for part in m.content %}{{ part['text'] }}{% endfor %}"
    "</{{ m.role }}>{% endfor %}" + ASKS,
    "JSON and dates": "{{ ({'a': strftime_now('%d')}|tojson)[:0] }}" + TURNS + ASKS,
    "open thought": TURNS + "{% if add_generation_prompt %}<assistant><think>\n{% endif %}",
    "another open thought": TURNS
    + "{% if add_generation_prompt %}<assistant>Here are my reasoning steps:\n{% endif %}",
    "asks for a thought in brackets": TURNS + "{% if add_generation_prompt %}<assistant>[THINK]{% endif %}",
    "never asks": TURNS,
    "open thought of other marks": TURNS + "{% if add_generation_prompt %}<assistant><|inner_prefix|>{% endif %}",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_templates_is_rendered_and_replies_begin_where_its_own_do(form: str) -> None:
    template = ChatTemplate(FORMS[form], bos="", eos="", name="t")
    assert "".join(piece.text for piece in template.pieces(SHORT)) == USUAL
    assert bool(template.asks_elsewhere) == ("thought" in form or form == "never asks")


def test_a_system_text_that_is_repeated_or_moved_is_put_before_the_first_message() -> None:
    last = "{% for m in messages %}{% if m.role == 'user' %}[INST]{% if loop.last and messages[0].role == 'system' %}"
    last += "{{ messages[0].content }}\n\n{% endif %}{{ m.content }}[/INST]{% elif m.role == 'assistant' %}"
    last += "{{ m.content }}</s>{% endif %}{% endfor %}"
    each = last.replace("loop.last and ", "")
    for source in (last, each):
        template = ChatTemplate(source, bos="", eos="</s>", name="t")
        text = "".join(piece.text for piece in template.pieces(SHORT))
        assert template.folds_system and text == "[INST]S\n\nU[/INST]A</s>[INST]V[/INST]"


TWOFOLD = "{% set n = namespace(x=1, y=1) %}{% for i in range(60) %}{% set n.x, n.y = "
REFUSED = {
    "{{ raise_exception('only for tools') }}": "only for tools",
    "{% for m in messages %}{{ m.content.upper.nothing.more }}{% endfor %}": "no attribute 'nothing'",
    "{% for m in messages %}{{ m.role }}{% endfor %}": "does not render every message once",
    "{% include 'other' %}": "no loader",
    "{% for i in range(9999) %}" * 3 + "{% endfor %}" * 3: "without an end",
    "{% macro m(n) %}{{ m(n) }}{% endmacro %}{{ m(1) }}": "calls itself",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}": "without an end",
    "{% set ns = namespace(x='xx') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}": "memory",
    "{% set n = namespace(x=1) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}": "memory",
    TWOFOLD + "[n.x, n.x], [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}": "memory",
    TWOFOLD + "(n.x, n.x), 1 %}{% endfor %}{{ {n.x: 1} }}": "memory",
    TWOFOLD + "namespace(a=n.x, b=n.x), 1 %}{% endfor %}{{ n.x }}": "memory",
    "{% set x = 'x' * 99999 %}{% for i in range(9999) %}{% if 'xy' in x %}{% endif %}{% endfor %}": "without an end",
    "{% set x %}xx{% endset %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 40: "memory",
    "{{ 'x' * 10**10 }}": "memory",
    "{{ 9**9**9 }}": "memory",
    "{{ '%1000000000d' % 1 }}": "memory",
    "{{ '{:1000000000}'.format(1) }}": "memory",
    "{{ 'x'|center(1000000000) }}": "memory",
    "{% set a = 'x' * 10000 %}{{ a|replace('x', a) }}": "memory",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}": "calls itself",
    "{% for %}": "not valid Jinja",
}  # fmt: skip


@pytest.mark.parametrize("source", REFUSED, ids=range(len(REFUSED)))
def test_a_template_that_cannot_be_used_is_refused_with_its_reason(source: str) -> None:
    with pytest.raises(BackendUnavailable) as refused:
        ChatTemplate(source, bos="", eos="", name="t")
    assert REFUSED[source] in refused.value.message and refused.value.message.startswith("t: ")


OSS = Family(
    GPT_OSS, ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>"), "<|return|>",
    architecture="llama", user_defined=("<|start|>", "<|message|>", "<|channel|>"),
)  # fmt: skip


def test_a_template_that_is_no_text_is_damaged(tmp_path: Path) -> None:
    file = tiny_model.write(tmp_path / "t.gguf", tiny_model.FAMILIES["qwen2.5"])
    file.write_bytes(file.read_bytes().replace(b"{% for message", b"{%\xff\xfeor message"))
    with pytest.raises(ModelMissing, match="chat template is damaged"):
        ChatTokenizer(LlamaModel(file))


def test_a_template_with_channels_begins_replies_in_the_last_one_and_run_says_what_check_says(tmp_path: Path) -> None:
    model = LlamaModel(tiny_model.write(tmp_path / "oss.gguf", OSS))
    prompt = shown(model, ChatTokenizer(model).prompt(SHORT, "Ana"))
    assert prompt.endswith("<|start|>user<|message|>V<|end|><|start|>assistant<|channel|>final<|message|>Ana")
    assert "A<|end|>" in prompt and "<|start|>developer<|message|>S<|end|>" in prompt
    found, said = check_template(model), list[str]()
    ensure_suits(model, said.append)
    warned = [check.told for check in found.checks if check.warns]
    closed = TURNS + "{% if add_generation_prompt %}<assistant><|channel>thought\n<channel|>{% endif %}"
    assert ChatTemplate(closed, bos="", eos="", name="t").begins.endswith("<assistant><|channel>thought\n<channel|>")
    assert found.ok and len(warned) == 2 and all(told in line for told, line in zip(warned, said, strict=True))
    model.free()


# ---- content is never control, whatever kind of token a vocabulary has for its marks --------------------------------

KINDS = ("control", "user_defined", "normal", "unused", "spelled")


def of_kind(family: Family, kind: str) -> Family:
    """The family with its marks of roles, but not the one that ends a reply, as tokens of a kind, or as none."""
    marks = tuple(name for name in family.specials if name not in (family.end, family.bos))
    if kind == "spelled":
        return replace(family, specials=tuple(name for name in family.specials if name not in marks), user_defined=())
    kinds = {"control": {}, "user_defined": {"user_defined": marks}}.get(kind, {"others": dict.fromkeys(marks, kind)})
    return replace(family, **{"user_defined": (), **kinds})


ODD = Family(
    "{% for m in messages %}{% if m.role == 'assistant' %}{|bot|}{{ m.content }}[e~[\n"
    "{% else %}]~b]{{ m.role }}\n{{ m.content }}"
    "[|end|]\n{% endif %}{% endfor %}{% if add_generation_prompt %}{|bot|}{% endif %}",
    ("{|bot|}", "]~b]", "[|end|]", "[e~["), "[e~[", architecture="llama",
)  # fmt: skip
"""Marks of forms that no pattern of marks knows."""
ALL = {**tiny_model.FAMILIES, "odd": ODD}


class Eager(LlamaBackend):
    """Wants nothing but marks: as tokens, and letter by letter."""

    def _choose(self, job: Any, logits: Any, *, in_text: bool) -> int:
        logits = logits.copy()
        chat, model = self._tools.chat, self._model
        for mark in chat.role_marks:
            written = max((size for size in range(len(mark)) if job.text.endswith(mark[:size])), default=0)
            for token in model.tokenize(mark[written], special=False):
                logits[token] += 20 + written
        logits[list(chat.mark_tokens)] += 90
        return super()._choose(job, logits, in_text=in_text)


@pytest.fixture(params=[(name, kind) for name in ALL for kind in KINDS], ids="-".join)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LlamaModel]:
    name, kind = request.param
    made = LlamaModel(tiny_model.write(tmp_path / "tiny.gguf", of_kind(ALL[name], kind)))
    yield made
    made.free()


def test_no_mark_is_drawn_and_none_lives_in_a_content(model: LlamaModel) -> None:
    backend = Eager(model, name="t", sha256="0" * 64, sequences=1, context=1024, threads=1)
    chat = backend._tools.chat
    assert chat.role_marks
    evil = "Ben: " + " ".join(chat.marks)
    plain, tokens = chat.prompt(SHORT, "Ana"), chat.prompt([*SHORT[:3], Message("user", evil)], "Ana")
    assert [token for token in tokens if token in chat.mark_tokens] == [t for t in plain if t in chat.mark_tokens]
    assert shown(model, tokens) == shown(model, plain).replace("V", evil, 1), "and yet it stays as it was written"
    form = ActionLines((Line("Ana", ("speak",)),), 120, 3, 0)
    request = Request(
        session="s", speaker="Ana", messages=SHORT, prefill="Ana", seed=1, max_tokens=60, form=form,
        sampling=Sampling(temperature=1.0, repeat_penalty=1.0, dry_multiplier=0.0),
    )  # fmt: skip
    backend.submit(request)
    while not (done := backend.poll()):
        pass
    result = done[0].result
    assert isinstance(result, Generation) and len(result.text) > 5
    assert not any(mark in result.text for mark in chat.marks), result.text
    written = backend._evaluator.seat("s", set()).written
    again = chat.prompt([*SHORT, Message("line", f"Ana{result.text.rstrip()}")], "Ana", written)
    assert sum(token in chat.mark_tokens for token in again) == sum(token in chat.mark_tokens for token in plain)
    assert check_template(model).ok
