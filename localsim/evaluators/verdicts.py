"""The form of a judge's reply: a reason, then a number."""

from __future__ import annotations

import re
from dataclasses import dataclass

REASON_CHARS = 200


@dataclass(frozen=True)
class Verdict:
    """`Reason: ...`, then `LABEL: N` on a line of its own (a `backends.base.Form`)."""

    low: int
    high: int
    label: str = "Score"

    def grammar(self) -> str:
        """GBNF of what follows `Reason:`."""
        numbers = " | ".join(f'"{number}"' for number in range(self.high, self.low - 1, -1))
        return (
            f'root ::= " " first char{{0,{REASON_CHARS - 1}}} "\\n{self.label}: " number "\\n"?\n'
            f"number ::= {numbers}\n"
            "first ::= [^ \\x00-\\x1f\\x7f]\nchar ::= [^\\x00-\\x1f\\x7f]\n"
        )

    def finished(self, text: str) -> bool:
        """Whether the number's line is closed."""
        return text.endswith("\n") and f"\n{self.label}: " in text

    def forced(self, text: str) -> str:
        """What introduces the number, once the reason is closed."""
        return f"{self.label}:" if text.endswith("\n") and f"\n{self.label}:" not in text else ""

    def in_text(self, text: str) -> bool:  # noqa: ARG002 - asked of every form
        """Never: a reason may well repeat the words of the talk."""
        return False

    def speaker(self, text: str) -> str:  # noqa: ARG002 - asked of every form
        """Nobody of the talk."""
        return ""

    def utterances(self, text: str) -> tuple[tuple[str, str], ...]:  # noqa: ARG002 - asked of every form
        """Nothing that penalties should look back on."""
        return ()

    def read(self, text: str) -> tuple[int, str] | None:
        """Number and reason of a reply; None where it does not parse or the number is out of range."""
        found = re.fullmatch(rf"\s*(?P<reason>[^\n]+)\n+{re.escape(self.label)}: ?(?P<number>-?\d+)\s*", text)
        if found is None or not self.low <= int(found["number"]) <= self.high:
            return None
        return int(found["number"]), found["reason"].strip()
