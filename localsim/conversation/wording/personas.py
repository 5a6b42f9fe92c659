"""The sentences that introduce what a person would say and knows. They have one wording in all variants."""

from __future__ import annotations

from collections.abc import Mapping

from localsim.conversation.episode import AgentView
from localsim.conversation.wording.variants import Spacing
from localsim.conversation.wording.wordings import listed

_LISTS: dict[str, tuple[str, str]] = {
    "statements": ("You would say of yourself:", "{name} says:"),
    "background": ("From your life:", "From {name}'s life:"),
}
"""Headings of lists: of the reader, and of another person."""
_NOTED = _LISTS | {
    "statements": ("You talk like this (do not repeat it):", "{name} talks like this (do not repeat it):"),
}
"""The headings in a layout with notes: a model that nobody taught took what people would say for lines to write."""
_SENTENCES: Mapping[str, tuple[str, str]] = {
    "knows": ("You know much about {text}.", "{name} knows much about {text}."),
    "never_heard_of": ("You have never heard of {text}.", "{name} has never heard of {text}."),
}
SENTENCES = tuple(form.format(name="-", text="-") for forms in (_LISTS, _NOTED, _SENTENCES) for pair in forms.values()
                  for form in pair)  # fmt: skip


def persona_lines(agent: AgentView, spacing: Spacing, *, own: bool = False, noted: bool = False) -> list[str]:
    """Return what one agent would say and knows, as its view shows it; `noted`: in a layout with notes."""
    form, headings = 0 if own else 1, _NOTED if noted else _LISTS
    parts = []
    for field, texts in agent.persona:
        if field in headings:
            lines = [f"{spacing.mark}{text}" for text in texts]
            parts.append("\n".join([headings[field][form].format(name=agent.name), *lines]))
        else:
            text = listed([each.rstrip(".") for each in texts], "and" if field == "knows" else "or")
            parts.append(_SENTENCES[field][form].format(name=agent.name, text=text))
    return parts
