"""Replies as chat models write them: one line of the speaker is read whatever it is wrapped in; all else is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localsim.backends.heads import head_of
from localsim.backends.replies import Read, generation_of, read_reply
from localsim.conversation.episode import AgentView, Observation, Sampling
from localsim.conversation.requests import Message, Request
from localsim.conversation.rules.grammar import ActionLines, Barred, Line
from localsim.conversation.rules.thoughts import ends_inside, parted
from localsim.conversation.transcript import Transcript

NAMES = ("May", "Ben", "Dr. Ana Sousa")


def request(speaker: str = "May", others: tuple[str, ...] = (), chars: int = 60) -> Request:
    lines = tuple(Line(name, ("speak", "leave", "none")) for name in (speaker, *others))
    seen = Observation(
        viewer=speaker, setting="", relationships=(), agents=tuple(AgentView(name) for name in NAMES), omniscient=False,
        actions=("speak", "leave", "none"), turn_limit=4, transcript=Transcript(),
    )  # fmt: skip
    form = ActionLines(lines, chars, 3, 0, Barred('"(*', "[]"))
    return Request(
        session="s", speaker="writer" if others else speaker, messages=(Message("user", "u"),), prefill=speaker,
        seed=1, max_tokens=50, sampling=Sampling(), form=form, observation=seen,
    )  # fmt: skip


def said(reply: str) -> str:
    """The words of a reply, or why there are none in brackets."""
    read = read_reply(request(), reply)
    return f"({read.unread})" if read.unread else read.text.strip().removeprefix(":").strip()


NAMED = """May: Hello there.
**May**: Hello there.
**May:** Hello there.
*May: Hello there.*
__May__: Hello there.
"May": Hello there.
"May: Hello there."
“May”: Hello there.
'May: Hello there.'
`May: Hello there.`
[May]: Hello there.
[May] Hello there.
<May> Hello there.
(May): Hello there.
**May** Hello there.
May - Hello there.
May – Hello there.
May — Hello there.
May : Hello there.
May：Hello there.
May ： Hello there.
May﹕ Hello there.
MAY: Hello there.
may: Hello there.
Ｍａｙ: Hello there.
- May: Hello there.
> May: Hello there.
### May: Hello there.
1. May: Hello there.
@May: Hello there.
May Smith: Hello there.
May says: Hello there.
May's reply: Hello there.
May (smiling): Hello there.
(smiling) May: Hello there.
*smiles* May: Hello there.
May: (smiles) Hello there.
May: *smiles warmly* Hello there.
May: Hello [smiles] there.
Sure! Here is my reply: May: Hello there.
Here's May's line: Hello there.
Response: Hello there.
Assistant: May: Hello there.
Hello there.
Hello there.<|im_end|>
<|im_start|>assistant\\nMay: Hello there.<|im_end|>\\n<|im_start|>user\\nBen: No.
<|start_header_id|>assistant<|end_header_id|>\\n\\nMay: Hello there.<|eot_id|>
<answer>May: Hello there.</answer>
```\\nMay: Hello there.\\n```
```text\\nMay: Hello there.\\n```
```May: Hello there.```
Sure! Here is my reply:\\n\\nMay: Hello there.
Sure! Here is my reply:\\n\\nHello there.
Sure!\\n\\nHello there.
Claro, aquí está mi respuesta:\\n\\nHello there.
May:\\nHello there.
**May**\\n\\nHello there.
May: Hello there.\\nBen: Hi!
May: Hello there.\\n\\n(Note: I kept it short.)
(May smiles.)\\nMay: Hello there.
---\\nMay: Hello there.\\n---
<think>Ben must not know.</think>\\nMay: Hello there.
<thinking>Ben must not know.</thinking>\\nMay: Hello there.
<THOUGHT>Ben must not know.</THOUGHT> May: Hello there.
<reasoning effort="low">Ben must not know.</reasoning>May: Hello there.
[THINK]Ben must not know.[/THINK]May: Hello there.
[think]Ben must not know.[/think]May: Hello there.
Ben must not know.</think>\\n\\nMay: Hello there.
&lt;think&gt;Ben must not know.&lt;/think&gt; May: Hello there.
<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>May: Hello there.<|return|>
analysisWe must greet.assistantfinalMay: Hello there.
Here are my reasoning steps:\\nHm.\\n[BEGIN FINAL RESPONSE]\\nMay: Hello there.\\n[END FINAL RESPONSE]
◁think▷Hm.◁/think▷May: Hello there.
Thinking: Ben must not know.\\nMay: Hello there.
May (thinking): Ben must not know.\\nMay: Hello there.""".split("\n")


@pytest.mark.parametrize("reply", NAMED)
def test_one_line_of_the_speaker_is_read(reply: str) -> None:
    assert said(reply.replace("\\n", "\n")) == "Hello there."


SPEECH = """Maybe the bus is late.
May's bag is heavy.
May I sit here?
May I ask you this: where is the bus?
Mayor: that is my job.
Ben, listen: the bus is late.
Well, here is the thing: I am late.
*Really*? I had no idea.
It is 10:30 already.""".split("\n")


@pytest.mark.parametrize("reply", SPEECH)
def test_a_reply_without_a_name_is_speech_as_it_stands(reply: str) -> None:
    assert said(reply) == reply.replace("*", "")


REFUSED = {
    "Ben: I speak.": "a line of Ben",
    "**Ben**: I speak.": "a line of Ben",
    "Sure!\n\nBen: I speak.\nMay: Hello.": "a line of Ben before that of May",
    "Sure!\nBen: I speak.": "a line of Ben",
    "Ana Sousa: I speak.": "a line of Dr. Ana Sousa",
    "Sure! Here is my reply:": "no words",
    "(smiles)": "no words",
    "": "no words",
    "May:": "no words",
    "<think>Ben must not know that I have no ticket, so I": "no words",
    "<|channel|>analysis<|message|>Ben must not know": "no words",
    "[THINK]Ben must not know": "no words",
    "Thinking: Ben must not know.": "no words",
    "May thinks: Ben must not know.": "no words",
    "May (whispering to Ben): I have no ticket.": "no words",
    "Hello.\nHow are you?": "2 lines",
    '{"May": "Hello there."}': "code",
    '{\n"speaker": "May"\n}': "code",
    "<|im_start|>user\nBen: hi": "another role",
}


@pytest.mark.parametrize("reply", REFUSED)
def test_what_is_not_one_line_of_the_speaker_is_refused_with_a_reason(reply: str) -> None:
    assert REFUSED[reply] in said(reply)


def test_an_action_stays_and_so_do_what_follows_and_the_limits() -> None:
    assert read_reply(request(), "**May [leave]:** Bye.").text == " [leave]: Bye."
    assert read_reply(request(), "May [leave]\nBen: Bye.") == Read(" [leave]\n", left_out=True)
    long = generation_of(request(chars=10), "May: " + "word " * 9, model="m")
    assert long.text == ": word word " and long.cause == "length"
    cut = generation_of(request(), "May: Hello and", cut=True, model="m")
    assert cut.cause == "length" and not cut.text.endswith("\n")
    whole = generation_of(request(), "May: Hello.\nBen: And", cut=True, model="m")
    assert whole.cause == "end_of_text" and whole.details["left_out"], "only what is left out was cut"
    assert generation_of(request(), "May: Hi", withheld="a filter", model="m").unread == "a filter"


def test_a_script_is_read_line_by_line() -> None:
    reply = "Sure, here it is:\n\n```\n**May:** Hello.\n(They wait.)\n\nBEN: Hi.\nMay:\nWell?\n```\nEnjoy!"
    read = read_reply(request(others=("Ben", "May")), reply)
    assert read.text == ": Hello.\nBen: Hi.\nMay: Well?\nEnjoy!" and read.left_out and not read.unread
    assert "line of Ben" in read_reply(request(others=("Ben",)), "Ben: Hi.\nMay: Hello.").unread


def test_a_judge_is_read_without_fences_and_bold_labels() -> None:
    judge = replace(request(), observation=None, prefill="Reason:")
    for reply in ("Reason: Well.\nScore: 7", "```\nReason: Well.\nScore: 7\n```", "**Reason:** Well.\n**Score:** 7"):
        assert read_reply(judge, reply).text.strip() == "Well.\nScore: 7"


def test_thoughts_are_told_from_speech_whatever_marks_them() -> None:
    assert parted("<think>a<think>b</think>c</think>d").text == "d"
    assert parted("a <b>c</b> [x] < think").text == "a <b>c</b> [x] < think"
    assert parted("May: Hi. <think>no").open and parted("May: Hi. <think>no").text == "May: Hi. "
    assert ends_inside("<|im_start|>assistant\n<think>\n") and not ends_inside("<think>\n\n</think>\n\n")


@pytest.mark.parametrize(
    "names", [("May", "Maya"), ("Ana", "Ana Sousa"), ("李明", "李"), ("अनिता", "अनि"), ("José", "Jo")]
)
def test_names_that_begin_alike_are_told_apart(names: tuple[str, ...]) -> None:
    for name in names:
        for written in (f"{name}: x", f"**{name}**: x", f"{name}：x", f"[{name}] x"):
            assert (head_of(written, names).name, head_of(written, names).rest) == (name, "x")


def test_a_long_reply_is_read_in_a_moment() -> None:
    for text in ("word " * 40_000, "[think]" * 30_000, "(" * 200_000, "*a" * 100_000, "May " * 40_000):
        read_reply(request(), text)
        read_reply(request(others=("Ben",)), text)
