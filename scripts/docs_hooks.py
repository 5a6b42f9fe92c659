"""Hooks of mkdocs: the site has pages made from the code, and the files of the repository that its pages link to.

Pages use plain relative links, so that they also work where the repository is read without the site. There a link to
`reference.md#views` leads to the command that prints the views; in the site it leads to the generated page.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import make_docs  # noqa: E402 - mkdocs loads this file without the repository on the path

ELSEWHERE = "repository/"
"""Folder of the site for files from outside docs/."""

_LINK = re.compile(r"(?P<start>\]\()(?P<target>[^)#\s:]+)(?P<rest>[^)\s]*\))")
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, and the files outside docs/ that pages link to, directly or through each other."""
    for uri, text in make_docs.pages().items():
        files.append(File.generated(config, uri, content=text))
    waiting = [file.src_uri for file in files if file.src_uri.endswith(".md")] + [f"{ELSEWHERE}scenarios/README.md"]
    seen = set(waiting)
    while waiting:
        uri = waiting.pop()
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / uri.removeprefix(ELSEWHERE))))
        if uri.endswith(".md"):
            text = make_docs.pages().get(uri) or source_of(uri).read_text(encoding="utf-8")
            targets = {link for part in _CODE.split(text)[::2] for link in map(_uri_of(uri), _targets(part)) if link}
            waiting += sorted(targets - seen)
            seen |= targets
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let each relative link lead to the place of its file in the site."""
    uri = page.file.src_uri
    parts = _CODE.split(markdown)
    parts[::2] = [_LINK.sub(lambda match: _rewritten(match, uri), part) for part in parts[::2]]
    return "".join(parts)


def source_of(uri: str) -> Path:
    """Return the file of the repository behind a path of the site."""
    return ROOT / uri.removeprefix(ELSEWHERE) if uri.startswith(ELSEWHERE) else ROOT / "docs" / uri


def _targets(text: str) -> list[str]:
    return [match["target"] for match in _LINK.finditer(text)]


def _uri_of(uri: str) -> Any:
    """Return a function from a link on a page to a path of the site, or None where no file is there."""
    folder = source_of(uri).parent

    def resolve(target: str) -> str | None:
        file = Path(posixpath.normpath((folder / target).as_posix()))
        if not file.is_file() or not file.is_relative_to(ROOT):
            return None
        inside = file.relative_to(ROOT).as_posix()
        return inside.removeprefix("docs/") if inside.startswith("docs/") else ELSEWHERE + inside

    return resolve


def _rewritten(match: re.Match[str], uri: str) -> str:
    target, rest = _uri_of(uri)(match["target"]), match["rest"]
    if target is None:
        return match[0]
    made = f"reference/{rest.removeprefix('#').removesuffix(')')}.md"
    if target == "reference.md" and made in make_docs.pages():
        target, rest = made, ")"
    return match["start"] + posixpath.relpath(target, posixpath.dirname(uri) or ".") + rest
