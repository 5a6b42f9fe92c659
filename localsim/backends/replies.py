"""A reply as chat models write it, read as the line that was asked for, or refused with a reason.

Fences, marks of a chat template, preambles ("Sure, here is my reply:"), remarks and the lines of others are no speech.
A reply that holds one line of its speaker is that line. A reply without any name is the speaker's, as a local model's
would be, if it is one line. Everything else is not spoken: the mode asks again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import unescape
from typing import Any

from localsim.backends.choices import chosen, spelled
from localsim.backends.elements import without_tags
from localsim.backends.heads import UNSEEN, Head, agent_of, head_of
from localsim.conversation.requests import LEFT_OUT, UNREAD, Generation, Request
from localsim.conversation.rules.grammar import ActionLines
from localsim.conversation.rules.lines import name_of
from localsim.conversation.rules.thoughts import ends_inside, parted
from localsim.conversation.scenario import WRITER
from localsim.conversation.transcript import ACTION_TYPES

MARK = re.compile(
    r"<[|｜][^<>|｜\n]{1,60}[|｜]>|<[|｜]\w{1,40}>|<\w{1,40}[|｜]>|\[\|[^\[\]|\n]{1,40}\|\]"
    r"|<(?:start|end)_of_(?:turn|utterance|text)>|</?s>|<</?SYS>>|<(?:bos|eos|pad|unk|sep|mask|eod|eoa|eoh|eom|eot)>"
    r"|<(?:BOS|EOS|PAD|UNK)(?:_TOKEN)?>|<(?:unused|reserved_|extra_id_|SPECIAL_|TOKENS_UNUSED_)\d{1,4}>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|\[(?:BEGIN|END) FINAL RESPONSE\]"
    r"|\]~!?b[\[\]]|\[e~\[|\[gMASK\]|<sop>"
)
"""Marks of the usual chat templates."""
_ROLES = re.compile(
    r"(?<!#)#{2,}+\s*+(?:user|human|instruction|input|system|question)\s*+:|\[(?:end of text|DONE)\]", re.I
)
"""Marks after which a model writes another role in plain words, and marks of programs at the end of a reply."""
_CALL = re.compile(r"tool|function|python_tag|action_start|plugin|_call|invoke")
_OWN_ROLE = re.compile(r"\s*(?:assistant|model|chatbot|ai)\b(?=\s|<|$)", re.I)
_EDGES = re.compile(r"^\s*`{3,}|(?<!`)`{3,}+\s*+$")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})([\w+-]*)\s*")
_AGREED = re.compile(
    r"\s*(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|understood|got it|no problem)\W*",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"\s*(?:\{\s*(?:[\"'}]|$)|\[\s*(?:[{\"]|$)|<(?:tool|function|invoke)|<\w[^<>]*>\s*$|[\w.]++\([^()=\"']*+[=\"'][^()]*+\)[\s;]*$)"
)
_IS_CODE = "it is code, not a line"
_RULE = re.compile(r"[\s*_=~—–-]+")
_REMARK = re.compile(r"\s*(?:\([^()]*\)|（[^（）]*）|\[[^\[\]]*\]|【[^【】]*】|\*[^*]+\*|_[^_]+_)[\s.]*")
_FIRST = re.compile(
    r"\s*(?:\([^()]{0,300}\)|（[^（）]{0,300}）|\*(?=[^*]*[\s])[^*]{1,300}\*|\*[^*]{1,60}\*(?=\s+[A-Z]))\s*"
)
_SQUARE_WRAPPER = re.compile(r"\[/?(?:ANSWER|FINAL[ _]ANSWER|RESPONSE|REPLY|FINAL|OUTPUT|TEXT)\]")
_BOX = re.compile(r"(?<!\$)\$*+\\boxed\{(?:\\text\{)?([^{}]*)\}+\$*")
_ENTITY = re.compile(r"&(?:lt|gt|quot|apos|amp|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
_SQUARE = re.compile(r"\[([^\[\]\n]{0,300})\]\s*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_ENOUGH = 20_000
"""Characters of one line that are looked at; no limit of a scenario is near."""


@dataclass(frozen=True)
class Read:
    """A reply as the text after the start that the request fixes."""

    text: str
    unread: str = ""
    """Why it is not what was asked for."""
    left_out: bool = False
    """True if something that is no speech was left out."""
    named: bool = True
    """False if the line had no name."""
    full: bool = False
    """True if the limit of characters cut it."""


def generation_of(request: Request, content: str, *, cut: bool = False, withheld: str = "", **more: Any) -> Generation:
    """Return the generation that a reply becomes; `more` are its other fields.

    `cut`: a limit of tokens ended the reply. `withheld`: why it is not whole, as who wrote it says.
    """
    read = read_reply(request, content)
    details: dict[str, Any] = {"raw": content}
    if request.observation is not None and (unread := withheld or read.unread):
        read, details[UNREAD] = Read(""), unread
    details |= {LEFT_OUT: True} if read.left_out else {}
    details |= {} if read.named else {"name_added": True}
    return Generation(
        text=read.text,
        cause="length" if read.full or cut and not read.text.endswith("\n") else "end_of_text",
        details={**more.pop("details", {}), **details},
        **more,
    )


def read_reply(request: Request, content: str) -> Read:
    """Read what a server or a function replied to a request."""
    form = request.form
    text = parted(content).text
    if request.observation is None or not isinstance(form, ActionLines):
        return Read(_judged(request, text))
    names = [agent.name for agent in request.observation.agents]
    reader = _Reader(form, names, request.prefill)
    one = request.speaker != WRITER or len(form.lines) == 1
    return reader.line(text) if one else reader.script(text)


def _judged(request: Request, text: str) -> str:
    """Return a judge's reply, whose lines have no speaker, without fences and bold labels."""
    text = text.strip("\n").replace("\r\n", "\n").lstrip()
    if "```" in text:
        text = "\n".join(line for line in text.split("\n") if not _FENCE.fullmatch(line))
    text = re.sub(r"^[*_#>` ]*([A-Za-z][\w ]{0,30}?)[*_` ]*([:：])[ *_`]*(?=\S)", r"\1: ", text, flags=re.MULTILINE)
    start = text.find(f"\n{request.prefill}")
    if not text.startswith(request.prefill) and start >= 0:
        text = text[start + 1 :]
    return text.removeprefix(request.prefill) if text.startswith(request.prefill) else f" {text}"


@dataclass(frozen=True)
class _Lines:
    """The lines of a reply that may be speech."""

    lines: list[str]
    left_out: bool
    refused: str = ""
    """Why none of them is speech."""


class _Reader:
    """Reads replies to one request: `prefill` is the name that the first line begins with."""

    def __init__(self, form: ActionLines, names: Sequence[str], prefill: str) -> None:
        self._form, self._names, self._name = form, names, prefill
        kinds = {name_of(way) for line in form.lines for way in line.ways}
        self._actions = {*ACTION_TYPES, *kinds}

    def line(self, content: str) -> Read:
        """Read the one line of an agent."""
        found = _lines(content, self._names)
        if found.refused:
            return Read("", found.refused)
        if found.lines and _CODE.match(found.lines[0]):
            return Read("", _IS_CODE)
        heads = [head_of(line, self._names) for line in found.lines]
        if choice := self._choice(heads):
            return choice
        heads = [self._addressed(head) for head in heads]
        named = [place for place, head in enumerate(heads) if self._is_own(head)]
        own = next(
            (place for place in named if heads[place].rest.strip() or heads[place].bracket), min(named, default=None)
        )
        if own is None:
            return self._nameless(found, heads)
        before, head, after = heads[:own], heads[own], heads[own + 1 :]
        other = next((each.name for each in before if each.kind == "agent" and not self._is_own(each)), "")
        if other:
            return Read("", f"it holds a line of {other} before that of {self._name}")
        if not head.rest.strip() and after and after[0].kind in ("plain", "label") and not head.bracket:
            head, after = replace(head, rest=after[0].rest), after[1:]
        return self._made(head, left_out=found.left_out or bool(before), more=bool(after))

    def _addressed(self, head: Head) -> Head:
        """Return a line as the speaker's if it begins with the own name and a comma: nobody addresses themselves."""
        remark = re.match(rf"\s*{re.escape(self._name)}\s*,[^:：.!?。！？\n]{{1,60}}[:：]\s*", head.rest)
        if head.kind != "plain" or remark is None or re.search(r"\b(?:I|we)\b", remark[0], re.IGNORECASE):
            return head
        return Head("agent", self._name, rest=head.rest[remark.end() :], decorated=True)

    def _choice(self, heads: Sequence[Head]) -> Read | None:
        """Read a choice without a bracket, in a reply in which nothing but choices can be made."""
        ways = self._form.lines[0].ways
        if any(isinstance(way, str) and way not in ("leave", "none") for way in ways):
            return None
        found = [chosen(text, ways, self._name) for head in heads if (text := self._offered(head))]
        if not found or not found[0] or len(set(filter(None, found))) > 1:
            return None
        return Read(f" [{found[0]}]", left_out=True, named=self._is_own(heads[0]))

    def _offered(self, head: Head) -> str:
        """Return the part of a line that can be a choice. "Xena" can; "Xena: No." is Xena's own line."""
        if head.kind == "agent" and not self._is_own(head):
            return "" if head.rest.strip() else head.name
        return "" if head.kind == "aside" else f"{head.bracket} {head.rest}"

    def _is_own(self, head: Head) -> bool:
        return head.kind == "agent" and head.name == self._name

    def _nameless(self, found: _Lines, heads: Sequence[Head]) -> Read:
        """Read a reply in which no line begins with the speaker's name."""
        spoken: list[Head] = []
        rest, left_out = list(heads), found.left_out
        while rest and rest[0].kind != "agent":
            head = rest.pop(0)
            if head.kind == "label" and head.rest.strip():
                again = head_of(head.rest, self._names)
                rest.insert(0, again if again.kind != "label" else replace(again, kind="plain"))
                left_out = True
                if self._is_own(rest[0]):
                    return self._made(rest[0], left_out=True, more=len(rest) > 1)
            elif head.kind == "plain" and not self._is_remark(head.rest, bool(rest)):
                spoken.append(head)
            else:
                left_out = True
        if len(spoken) > 1:
            return Read("", f"it has {len(spoken)} lines, and none begins with {self._name}")
        if not spoken:
            return Read("", f"it holds a line of {rest[0].name}" if rest else "it holds no words that are spoken")
        return replace(self._made(spoken[0], left_out=left_out, more=bool(rest)), named=False)

    def _is_remark(self, line: str, followed: bool) -> bool:
        if (square := _SQUARE.match(line.lstrip(" *_`"))) and self._acts(square[1]):
            return False
        preamble = followed and (line.rstrip(" *_").endswith((":", "：")) or _AGREED.fullmatch(line) is not None)
        return preamble or _REMARK.fullmatch(line) is not None

    def _made(self, head: Head, *, left_out: bool, more: bool) -> Read:
        """Return a line in the form in which local models write it; it is whole if something follows it."""
        head = self._with_action(head)
        said, dropped = self._said(head.rest)
        most = self._form.max_chars
        full = len(said) > most
        bracket = f" [{head.bracket}]" if head.bracket else ""
        left_out = left_out or more or dropped or head.decorated
        if not said and not bracket:
            return Read("", "it holds no words that are spoken")
        if _CODE.match(said):
            return Read("", _IS_CODE)
        text = f"{bracket}: {said[:most]}" if said else bracket
        return Read(f"{text}\n" if more and not full else text, left_out=left_out, full=full)

    def _with_action(self, head: Head) -> Head:
        """Return a line whose action stands before its name, and is spelled as in the prompt: `May: [LEAVE] Bye.`."""
        if not head.bracket and (found := _SQUARE.match(head.rest.strip(" *_`"))) and self._acts(found[1]):
            head = replace(head, bracket=found[1].strip(), rest=head.rest.strip(" *_`")[found.end() :].lstrip(":： *_"))
        kind = next((each for each in self._actions if head.bracket.casefold() in (each, f"{each}s")), "")
        ways = next((line.ways for line in self._form.lines if line.speaker == head.name), self._form.lines[0].ways)
        return replace(head, bracket=kind or spelled(head.bracket, ways, head.name or self._name))

    def _said(self, rest: str) -> tuple[str, bool]:
        """Return the words without remarks that the grammar of local models does not admit, and if there were any."""
        said = _CONTROL.sub(" ", rest[:_ENOUGH]).strip(UNSEEN)
        whole, barred = said, self._form.barred
        if "[" in barred.never:
            said = _SQUARE.sub(lambda found: found[0] if self._counts(found) else "", said).strip()
        while "(" in barred.first and (found := _FIRST.match(said)):
            said = said[found.end() :]
        if "*" in barred.first and said.startswith("*"):
            said = said.replace("*", "")
        return said.strip(), said != whole

    def _counts(self, found: re.Match[str]) -> bool:
        """Return True for an action in brackets, and for a name in them that begins the line of an agent."""
        begins = found.string[found.end() : found.end() + 1] in (":", "：") and agent_of(found[1], self._names) != ""
        return begins or self._acts(found[1])

    def _acts(self, bracket: str) -> bool:
        word = bracket.strip().casefold()
        return any(word == each or word.startswith(f"{each} ") for each in self._actions)

    def script(self, content: str) -> Read:
        """Read the lines of a whole script; what stands between them is refused where it stands."""
        found = _lines(content, self._names)
        written: list[str] = []
        waiting, left_out = "", found.left_out
        for line in found.lines:
            head = head_of(line, self._names)
            if waiting and head.kind == "plain":
                head = Head("agent", waiting, rest=head.rest)
            waiting = ""
            if head.kind == "agent" and not head.rest.strip() and not head.bracket:
                waiting = head.name
            elif head.kind == "agent":
                read = self._made(head, left_out=False, more=False)
                left_out = left_out or read.left_out
                written.append(f"{head.name}{read.text}")
            elif not written or self._is_remark(line, followed=True) or head.kind != "plain":
                left_out = True
            else:
                written.append(line)
        if not written or not written[0].startswith(self._name):
            first = head_of(written[0], self._names).name if written else ""
            reason = f"it begins with a line of {first}" if first else "it holds no line of a script"
            return Read("", f"{reason}, and {self._name} had to begin")
        return Read("\n".join(written)[len(self._name) :], left_out=left_out)


def _lines(content: str, names: Sequence[str]) -> _Lines:
    """Return the lines of a reply without the marks of templates, fences, tags and empty lines."""
    text = _ENTITY.sub(lambda found: unescape(found[0]).replace("\xa0", " "), content)
    text = _BOX.sub(r"\1", _SQUARE_WRAPPER.sub("", text if "\n" in text.strip() else text.replace("\\n", "\n")))
    text, left_out = text.lstrip(), text != content
    while mark := MARK.match(text):
        text, left_out = text[mark.end() :].lstrip(), True
        if mark[0] == "[INST]":  # it repeats what it was asked
            text = text.partition("[/INST]")[2].lstrip() or text
        role = _OWN_ROLE.match(text)
        if role:
            text = text[role.end() :].lstrip()
        elif re.match(r"(?:user|system|tool|human)\s*(?:\n|<[|｜])", text):
            return _Lines([], True, "it goes on as another role of the chat")
        elif _CALL.search(mark[0].casefold()):
            return _Lines([], True, "it calls a tool")
    if mark := MARK.search(text) or _ROLES.search(text):
        text, left_out = text[: mark.start()], left_out or bool(text[mark.end() :].strip())
    plain = without_tags(text, cache(lambda tag: agent_of(tag, names)))
    left_out = left_out or plain != text
    kept: list[str] = []
    thinking = False
    for line in plain.splitlines():
        fence = _FENCE.fullmatch(line)
        bare = _EDGES.sub("", line)
        left_out = left_out or fence is not None or thinking
        if fence:
            thinking = not thinking and bool(fence[1]) and ends_inside(f"<{fence[1]}>")
        elif bare.strip() and not thinking and not _RULE.fullmatch(bare):
            kept.append(bare)
    return _Lines(kept, left_out)
