"""Tags in replies: `<b>May:</b> Hello.`, `<May>Hello.</May>`, `<plan>...</plan>`, `<details>`, comments.

Tags of formatting and of answers are left out, and their contents are kept. A tag that names an agent is the beginning
of that agent's line. Every other element is left out with what is in it, because nobody says it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

_TAG = re.compile(r"<(/?)([^\W\d_][\w:.-]*(?: [^\W\d_][\w.-]*){0,3})((?:\s+[\w:.-]+\s*=[^<>\n]*+)?)\s*(/?)>")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CALL = re.compile(r"tool|function|invoke|parameter")
"""Names of elements that stay, because a call of a tool is refused as one."""
_KEPT = frozenset(
    "answer reply response final final_answer output line dialogue dialog message speech text utterance turn say says "
    "speak quote content result assistant chat conversation script root html body main section article p div span br "
    "hr b i u em strong small del ins mark code pre font center sup sub ul ol li h1 h2 h3 h4 h5 h6 a q blockquote cite "
    "table tr td tt kbd var samp".split()
)


def without_tags(text: str, agent: Callable[[str], str]) -> str:
    """Return a text without tags; `agent` returns the agent whose name a text is, or ''."""
    if "<" not in text:
        return text
    text = _COMMENT.sub("", text)
    closing = Counter(tag[2].casefold() for tag in _TAG.finditer(text) if tag[1])
    kept, place, inside, depth = list[str](), 0, "", 0
    for tag in _TAG.finditer(text):
        name, ends, alone = tag[2].casefold(), bool(tag[1]), bool(tag[4]) or tag[3].endswith("/")
        closing[name] -= ends
        if inside:
            depth += 0 if name != inside or alone else -1 if ends else 1
            if not depth:
                inside, place = "", tag.end()
            continue
        named = agent(tag[2]) or next(filter(None, map(agent, re.findall(r"=\s*[\"']([^\"'<>]*)[\"']", tag[3]))), "")
        words = " " in name and not (named or ends or alone or closing[name])  # `<plan B>` is said
        if words or _CALL.search(name):
            continue
        kept.append(text[place : tag.start()])
        place = tag.end()
        if named and not ends:
            kept.append(f"\n{named}: ")
        elif named or name in ("br", "p", "div", "li"):
            kept.append("\n")
        elif name not in _KEPT and closing[name] > 0 and not ends and not alone:
            inside, depth = name, 1
    return "".join([*kept, text[place:]]) if not inside else "".join(kept)
