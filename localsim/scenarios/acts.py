"""Tables of acts: YAML -> `Acts`, found by path or by the name of one that ships. They are what `plan` chooses from."""

from __future__ import annotations

from localsim.conversation.minds.acts import Acts
from localsim.scenarios.documents import named_file, read_document, read_file


def find_acts(reference: str) -> Acts:
    """Return the table that a path or a name means. Raises InvalidInput."""
    file = named_file(reference, "acts")
    return read_document(read_file(file), str(file), Acts, what="a table of acts").valid()
