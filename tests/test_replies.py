"""Replies as chat models write them: one line of the speaker is read whatever it is wrapped in; all else is refused."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

import pytest

from localsim.backends.heads import head_of
from localsim.backends.replies import Read, generation_of, read_reply
from localsim.conversation.episode import AgentView, Observation, Sampling
from localsim.conversation.requests import Message, Request
from localsim.conversation.rules.grammar import ActionLines, Barred, Line
from localsim.conversation.rules.lines import Bound
from localsim.conversation.rules.thoughts import ends_inside, parted
from localsim.conversation.transcript import Transcript, parse_line
from localsim.errors import MalformedReply
from localsim.scenarios.parse import parse_scenario

NAMES = ("May", "Ben", "Dr. Ana Sousa")


def request(
    speaker: str = "May", others: tuple[str, ...] = (), chars: int = 60, names: tuple[str, ...] = NAMES
) -> Request:
    lines = tuple(Line(name, ("speak", "leave", "none")) for name in (speaker, *others))
    seen = Observation(
        viewer=speaker, setting="", relationships=(), agents=tuple(AgentView(name) for name in names), omniscient=False,
        actions=("speak", "leave", "none"), turn_limit=4, transcript=Transcript(),
    )  # fmt: skip
    form = ActionLines(lines, chars, 3, 0, Barred('"(*', "[]"))
    return Request(
        session="s", speaker="writer" if others else speaker, messages=(Message("user", "u"),), prefill=speaker,
        seed=1, max_tokens=50, sampling=Sampling(), form=form, observation=seen,
    )  # fmt: skip


def said(reply: str, names: tuple[str, ...] = NAMES) -> str:
    """The words of a reply, or why there are none in brackets."""
    read = read_reply(request(names[0], names=names), reply)
    words = re.sub(r"^\s*(?:\[speak\])?:", "", read.text).strip(" “”「」\n")
    return f"({read.unread})" if read.unread else words


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
<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>May: Hello there.<|close|>response<|sep|>
Thinking: Ben must not know.\\nMay: Hello there.
May (thinking): Ben must not know.\\nMay: Hello there.
<b>May:</b> Hello there.
<p>May: Hello there.</p>
<May>Hello there.</May>
<message from="May">Hello there.</message>
May: Hello there.<br>How are you?
May: Hello there. <!-- Ben must not know. -->
<plan>Ben must not know.</plan>May: Hello there.
<details type="reasoning">\\n<summary>Thought for 3 seconds</summary>\\n> Ben must not know.\\n</details>\\nHello there.
```thinking\\nBen must not know.\\n```\\nHello there.
<antThinking>Ben must not know.</antThinking>Hello there.
<think/>May: Hello there.
<|inner_prefix|>Ben must not know.<|inner_suffix|>May: Hello there.
<|channel>thought\\nBen must not know.<channel|>May: Hello there.<turn|>
[|assistant|]May: Hello there.[|endofturn|]
May: Hello there.### User: No.
May> Hello there.
May | Hello there.
[12:30] May: Hello there.
Turn 3 (May): Hello there.
Turn 3 - May: Hello there.
Hier ist meine Antwort: May: Hello there.
As May, I would say: Hello there.
May would say: Hello there.
May says, smiling: Hello there.
May smiles and says: Hello there.
May, smiling: Hello there.
May antwortet: Hello there.
\u200eMay\u200b: Hello there.
\ufeffMay: Hello there.
May: [speak] Hello there.
[speak] Hello there.
Here is May's response (in character):\\n\\nMay: Hello there.
Response from May: Hello there.
★ **May**: Hello there.
<<May>>: Hello there.
May:: Hello there.
[May - smiling] Hello there.
May [speaks]: Hello there.
[INST] Ben: No. [/INST] May: Hello there.
Miss May: Hello there.
Agent 1 (May): Hello there.
Me: Hello there.
May, Ben's friend: Hello there.
(OOC: Ben must not know.) Hello there.
[ANSWER]May: Hello there.[/ANSWER]
\\boxed{May: Hello there.}
['May: Hello there.']
&lt;b&gt;May:&lt;/b&gt; Hello there.
Pensée : Ben must not know.\\nHello there.""".split("\n")


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
It is 10:30 already.
I'm May: nice to meet you.
Ben says that we should go: shall we?
Step 1: buy a ticket.
x < y and y > z, I need <3 of you.
As I said: no.""".split("\n")


@pytest.mark.parametrize("reply", SPEECH)
def test_a_reply_without_a_name_is_speech_as_it_stands(reply: str) -> None:
    assert said(reply) == reply.replace("*", "")


OF_SCRIPTS = {
    ("李明", "王芳"): {
        "你好。": "李明说：你好。|李明笑着说：“你好。”|好的，我来回答：李明：你好。",
        "王芳，你听我说：车来了。": "王芳，你听我说：车来了。",
        "我问王芳：你去吗？": "我问王芳：你去吗？",
        "": "王芳说：你好。|李明心想：不能说。|王芳「你好。」",
    },
    ("山田　太郎", "佐藤"): {"はい。": "山田太郎：はい。|山田太郎「はい。」|山田さん：はい。"},
    ("Анна", "Борис"): {"Да.": "Анна отвечает: Да.|Вот мой ответ: Анна: Да.|Мысли: нет.\nДа."},
    ("مُحَمَّد", "سارة"): {"مرحبا.": "محمد: مرحبا.|\u200fمُحَمَّد\u200f: مرحبا."},
    ("מֹשֶׁה", "דנה"): {"שלום.": "משה: שלום."},
    ("Ελένη", "Γιώργος"): {"Γεια.": "Ελενη: Γεια.", "": "Γιωργος: Γεια."},
    ("Zoé", "Jean-Luc"): {"Oui.": "Zoe: Oui.|Zoé répond : Oui.", "": "Jean Luc : Oui."},
    ("Agent 1", "Agent 2"): {"Hi.": "Agent1: Hi.|[Agent 1] Hi.", "": "Agent 2: Hi."},
    ("Dr. Bo Lee", "Mr. Kim"): {"Hi.": "Doctor Lee: Hi.|Bo: Hi.|Dr. Bo Lee, nodding: Hi.", "": "Kim: Hi."},
    ("Łukasz Żółć", "Åse Đặng"): {"Hi.": "Lukasz Zolc: Hi.", "": "Ase Dang: Hi."},
    ("Işıl", "Dʼángelo"): {"Hi.": "IŞIL: Hi.|Isil: Hi.", "": "D'Angelo: Hi.|D’Angelo: Hi."},
    ("علی\u200cرضا", "ʻAulani"): {"Hi.": "علیرضا: Hi.|علي رضا: Hi.", "": "'Aulani: Hi.|Aulani: Hi."},
    ("Ann", "Anna"): {"Hi.": "Ann says: Hi.", "": "Anna: Hi."},
    ("Will", "Mark"): {
        "Will you tell me one thing: when?": "Will you tell me one thing: when?",
        "Mark my words: it rains.": "Mark my words: it rains.",
        "": "Mark says: it rains.",
    },
}


@pytest.mark.parametrize("names", OF_SCRIPTS, ids=" ".join)
def test_names_of_every_script_begin_lines_however_they_are_written(names: tuple[str, ...]) -> None:
    for words, replies in OF_SCRIPTS[names].items():
        for reply in replies.split("|"):
            found = said(reply, names)
            assert found == words or not words and found.startswith("(it holds"), reply


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
    "<b>Ben:</b> I speak.": "a line of Ben",
    "<Ben>I speak.</Ben>": "a line of Ben",
    "Ben> I speak.": "a line of Ben",
    "Turn 4 (Ben): I speak.": "a line of Ben",
    "Here is Ben's reply to May: I speak.": "a line of Ben",
    "Ben would say: I speak.": "a line of Ben",
    "Agent 2 (Ben): I speak.": "a line of Ben",
    "Ben and May: We speak.": "no words",
    "May to Ben: I have no ticket.": "no words",
    "May -> Ben: I have no ticket.": "no words",
    "<|inner_prefix|>Ben must not know": "no words",
    'May: {"text": "Hello there."}': "code",
    '<tool_call>{"name": "say"}</tool_call>': "code",
    '<|python_tag|>say("x")': "a tool",
}


@pytest.mark.parametrize("reply", REFUSED)
def test_what_is_not_one_line_of_the_speaker_is_refused_with_a_reason(reply: str) -> None:
    assert REFUSED[reply] in said(reply)


def test_an_action_stays_and_so_do_what_follows_and_the_limits() -> None:
    assert read_reply(request(), "**May [leave]:** Bye.").text == " [leave]: Bye."
    many = read_reply(request(), "(Note: a) " * 1000 + "May: Bye.").text
    assert many.endswith("Bye.") and read_reply(request(), "May: Take <plan B>, Ben.").text == ": Take <plan B>, Ben."
    assert read_reply(request(), '<note a="1"/>May: Hello <note>x</note>Ben.').text == ": Hello Ben."
    quoted = [read_reply(request(), f'May [leave]{colon} "Bye, Ben."').text for colon in (":", "")]
    assert quoted[0] == quoted[1]
    assert read_reply(request(), "May [leave] Bye, Ben.").text == " [leave]: Bye, Ben."
    assert read_reply(request(), "May: Hi. [Ben]: No. [nods]").text == ": Hi. [Ben]: No.", "the mode cuts it off"
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


CAKE = parse_scenario(
    """
version: 1
id: cake
title: x
info: {what: x}
setting: They divide a cake.
agents: [{name: Ida, goal: Win.}, {name: Xena, goal: Win.}, {name: Dr. Bo Lee, goal: Win.}]
moves:
  - {name: give, tell: To give, values: [{number: [0, 100], step: 0.5}], text: "no", readers: self}
  - {name: vote, tell: To vote, values: [{agents: one}], text: "no", readers: self}
  - {name: pick, tell: To pick, values: [{agents: several}], text: "no"}
  - {name: hunt, tell: To hunt, values: [{one_of: [stag, hare]}]}
  - {name: accept, tell: To accept, text: "no"}
  - {name: reject, tell: To reject, text: "no"}
phases: [{name: all, order: together, actions: [give, vote, pick, hunt, accept, reject, speak], rounds: 3}]
""",
    "cake.yaml",
).scenario
CHOICES = {
    "vote": {
        "vote Xena": "Xena|xena.|**Xena**|[Xena]|Ida: Xena|vote Xena|I vote for Xena.|My vote: Xena|"
        "Ida votes for Xena.|Ida [vote]: Xena|Ida [VOTE XENA]|Ida [vote: Xena]|Ida [vote for Xena]|"
        "[vote Xena]|Ida: [vote Xena]|Xena\n\nShe lies.",
        "vote Dr. Bo Lee": "Bo|Dr. Lee|Ida [vote Bo Lee]|I'd choose Dr. Bo Lee.",
        "": "Ida|Zed|Xena or Bo|Xena\nBo|not Xena|I do not vote for Xena.|I trust Xena.|Xena: I vote for Bo.|"
        "Xena, not Bo",
    },
    "give": {
        "give 40.0": "40|$40|Ida: 40.0|I give 40.|Ida [40]|Ida [give $40]",
        "": "200|1,000|20 or 40|40 if you give 20",
    },
    "hunt": {"hunt hare": "hare|Ida [hunt Hare]|I hunt the hare.|Ida [hare]", "": "stag or hare?|I like the hare."},
    "pick": {
        "pick Xena, Dr. Bo Lee": "Bo and Xena|Ida [pick Xena,Dr. Bo Lee]|I pick Dr. Bo Lee and Xena.",
    },
    "accept reject": {
        "accept": "accept|I accept.|I accept the offer.|**[ACCEPT]**",
        "": "I do not accept.|accept or reject|Never!",
    },
    "speak vote": {"vote Xena": "Ida [vote xena]", "": "Xena"},
}  # fmt: skip


@pytest.mark.parametrize("ways", CHOICES)
def test_a_choice_is_read_where_exactly_one_is_made(ways: str) -> None:
    moves = {move.name: Bound(move, CAKE.names[1:]) for move in CAKE.moves}
    bound = tuple(moves.get(name, name) for name in ways.split())
    asked = request("Ida", names=CAKE.names)
    asked = replace(asked, form=ActionLines((Line("Ida", bound),), 60, 3, 0))
    for choice, replies in CHOICES[ways].items():
        for reply in replies.split("|"):
            read, found = read_reply(asked, reply), ""
            with suppress(MalformedReply):
                action = parse_line(f"Ida{read.text}".rstrip("\n"), "Ida", bound, 60).action
                found = " ".join((action.type, *action.bracket))
            assert found == choice, reply


def test_a_long_reply_is_read_in_a_moment() -> None:
    for text in (
        "<a>" * 4_000, "</a>" * 4_000, "<a b=\"" * 4_000, "a:" * 8_000, "<!--" * 4_000, "<think" * 4_000,
        "``` \n" * 4_000, "12:30 " * 4_000, "May: " + "[speak] " * 4_000,
        "word " * 40_000, "[think]" * 30_000, "(" * 200_000, "*a" * 100_000, "May " * 40_000,
    ):  # fmt: skip
        read_reply(request(), text)
        read_reply(request(others=("Ben",)), text)
