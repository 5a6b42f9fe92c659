"""YAML documents: text -> a validated value. Every defect is reported together, as file:line:column.

YAML is read by 1.2 rules: only true and false are booleans and only decimals are numbers, so `yes`, dates, 12:30 and
007 stay the strings that were typed; in fields of text, every number does. Tags, anchors and aliases are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from localsim import paths
from localsim.conversation.rules.values import CONFLICT, Place
from localsim.errors import InvalidInput, Problem, ScenarioInvalid, suggest

_LIMIT_BYTES = 1_000_000
_LIMIT_DEPTH = 40
_MOST_PROBLEMS = 100
"""So many problems of a file are told one by one."""
_TAG = "tag:yaml.org,2002:"


class _Loader(yaml.SafeLoader):
    """SafeLoader that resolves null, true/false and decimal numbers, and nothing else."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse aliases: no field needs them, and they allow values that contain themselves or explode."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not read; repeat the text", mark)
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag == _TAG + "null"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# Each pattern matches a part of what YAML 1.1 matches, so that what SafeDumper leaves unquoted is read back the same.
_Loader.add_implicit_resolver(_TAG + "bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(_TAG + "int", re.compile(r"^[-+]?(?:0|[1-9][0-9]{0,30})$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    _TAG + "float", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)\.[0-9]*(?:[eE][-+][0-9]+)?$"), list("-+0123456789")
)


class _Dumper(yaml.SafeDumper):
    """SafeDumper that escapes Unicode's line breaks, which PyYAML would write as they are and read back as spaces."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - overridden
        """Write a value again wherever it stands, because aliases are not read."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if any(char in text for char in "\x85\u2028\u2029") else None
    return dumper.represent_scalar(_TAG + "str", text, style=style)


_Dumper.add_representer(str, _represent_text)


T = TypeVar("T", bound=BaseModel)
Given = TypeVar("Given")
Read = TypeVar("Read")


@dataclass(frozen=True)
class Document(Generic[T]):
    """What was read from a text: the value, unless there are problems, and the places of its parts."""

    value: T | None
    problems: tuple[Problem, ...]
    """Sorted by line and column."""
    name: str
    root: yaml.Node | None = None

    def valid(self, found: Iterable[tuple[Sequence[str | int], str]] = ()) -> T:
        """Return the value. `found`: further problems, as (place, message). Raises ScenarioInvalid with all of them."""
        problems = list(self.problems)
        if self.root is not None:
            problems += [_at(tuple(location), message, self.root, self.name) for location, message in found]
        if problems or self.value is None:
            raise ScenarioInvalid(sorted(problems, key=lambda problem: (problem.line, problem.column)))
        return self.value


Change = Callable[[yaml.MappingNode], Iterable[tuple[Sequence[str | int], str]]]
"""Changes a document before it is validated; returns what prevents that, as (place, message)."""


def read_document(
    text: str,
    name: str,
    model: type[T],
    *,
    what: str = "a scenario",
    typed: Sequence[str] = ("version",),
    change: Change | None = None,
) -> Document[T]:
    """Validate YAML text as a value of a model.

    `name` stands for the file in messages, `what` for its content. `typed`: top-level keys under which a number is a
    number; elsewhere a text field keeps it as it was typed.
    """
    root, problems = _compose(text, name, what, typed)
    if root is None:
        return Document(None, tuple(problems), name)
    if change and (found := [_at(tuple(place), message, root, name) for place, message in change(root)]):
        return Document(None, tuple(sorted(found, key=lambda each: (each.line, each.column))), name, root)
    value, rest = None, 0
    try:
        value = model.model_validate(_construct(root))
    except ValidationError as error:
        errors = error.errors(include_url=False)
        for item in errors[:_MOST_PROBLEMS]:
            if not _is_echo(item, root):
                problems += _problems(item, root, name, model)
        rest = len(errors) - _MOST_PROBLEMS
    problems.sort(key=lambda problem: (problem.line, problem.column))
    if rest > 0:
        problems.append(Problem(name, problems[-1].line, 1, "", f"{rest:,} more problems than are listed here"))
    return Document(value, tuple(problems), name, root)


def each_read(items: Iterable[Given], read: Callable[[Given], Read]) -> list[Read]:
    """Read every item. The problems of all of them are raised together, each once, as ScenarioInvalid."""
    found: list[Read] = []
    problems: list[Problem] = []
    for item in items:
        try:
            found.append(read(item))
        except ScenarioInvalid as error:
            problems += [problem for problem in error.problems if problem not in problems]
    if problems:
        raise ScenarioInvalid(problems)
    return found


def keys_of(text: str) -> set[str]:
    """Return the words that begin a line of YAML text as keys, by which kinds of files are told apart."""
    return set(re.findall(r"^([a-z_]+):", text, re.MULTILINE))


def dumped(data: Mapping[str, Any]) -> str:
    """Return values as YAML text that `read_document` reads back the same."""
    return str(yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))


def shipped_files(folder: str) -> list[Path]:
    """Return the files that ship in a folder of scenarios/, by name."""
    return sorted((paths.bundled("scenarios") / folder).glob("*.yaml"))


def named_file(reference: str | Path, folder: str) -> Path:
    """Return the file that a path means, or the name of one that ships. Raises InvalidInput for an unknown name."""
    file = Path(reference).expanduser()
    if file.suffix or file.is_file():
        return file
    shipped = {each.stem: each for each in shipped_files(folder)}
    name = str(reference)
    if name in shipped:
        return shipped[name]
    hint = f"{folder} are {', '.join(shipped)}, or a file ID.yaml"
    what = folder.removesuffix("s")
    raise InvalidInput(f"no {what} {name!r}{suggest(name, shipped, inline=True)}", hint=hint)


def read_file(file: Path) -> str:
    """Return the text of a file. Raises InvalidInput if it is missing, too large or no UTF-8."""
    try:
        if file.stat().st_size > _LIMIT_BYTES:
            raise InvalidInput(f"larger than {_LIMIT_BYTES} bytes, so not a scenario", where=str(file))
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        there = [str(each) for each in file.parent.glob(f"*{file.suffix}")]
        hint = suggest(str(file), there) or "localsim scenarios list shows what is there"
        raise InvalidInput("no such file", where=str(file), hint=hint) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 text: {error}", where=str(file), hint="save it as UTF-8") from error
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", where=str(file)) from error


def _compose(text: str, name: str, what: str, typed: Sequence[str]) -> tuple[yaml.MappingNode | None, list[Problem]]:
    """Return the node tree and its duplicate keys; no tree for text that is not YAML or holds unusable nodes."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return None, [Problem(name, line, column, "", f"not valid YAML: {error.problem or error.context}")]
    except yaml.YAMLError as error:
        before = text[: getattr(error, "position", 0)]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return None, [Problem(name, line, column, "", f"not valid YAML: {str(error).splitlines()[0]}")]
    except RecursionError:
        return None, [Problem(name, 1, 1, "", "not valid YAML: nested too deeply")]
    if not isinstance(root, yaml.MappingNode):
        return None, [Problem(name, 1, 1, "", f"{what} is a mapping of keys to values")]
    for key, value in root.value:
        if key.value in typed:
            continue
        for _, node in placed(value):
            if isinstance(node, yaml.ScalarNode) and node.style is None and node.tag in _BARE:
                node.tag = _TAG + "str"  # pydantic turns it into a number for a field of numbers
    defects = list(_defects(root, name, "", 0))
    if defects:
        return None, defects
    return root, list(_duplicates(root, name))


_BARE = (_TAG + "int", _TAG + "float", _TAG + "bool")
"""Tags of numbers and truth values. The same value in quotation marks is a text."""


def placed(node: yaml.Node, place: Place = ()) -> Iterator[tuple[Place, yaml.Node]]:
    """Yield a node and every value below it, each with its place."""
    yield place, node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from placed(value, (*place, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from placed(item, (*place, index))


def _defects(node: yaml.Node, name: str, path: str, depth: int) -> Iterator[Problem]:
    """Yield the unusable nodes: odd tags, keys that are not text, halves of surrogate pairs, too much depth."""
    message = _defect(node, depth)
    if message:
        yield Problem(name, node.start_mark.line + 1, node.start_mark.column + 1, path, message)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _defects(item, name, f"{path}[{index}]", depth + 1)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = f"{path}.{key.value}".lstrip(".")
            if not isinstance(key, yaml.ScalarNode) or key.tag == _TAG + "null":
                mark = key.start_mark
                yield Problem(name, mark.line + 1, mark.column + 1, path, "a key must be plain text")
                continue
            key.tag = _TAG + "str"
            yield from _defects(key, name, inner, depth + 1)
            yield from _defects(value, name, inner, depth + 1)


def _defect(node: yaml.Node, depth: int) -> str | None:
    if depth > _LIMIT_DEPTH:
        return f"nested more than {_LIMIT_DEPTH} deep"
    kinds = {yaml.ScalarNode: ("str", "int", "float", "bool", "null"), yaml.SequenceNode: ("seq",)}
    if node.tag not in {_TAG + kind for kind in kinds.get(type(node), ("map",))}:
        return f"tag {node.tag.replace(_TAG, '!!')} is not read; leave it out"
    if isinstance(node, yaml.ScalarNode):
        if any("\ud800" <= char <= "\udfff" for char in node.value):
            return "half of a surrogate pair; write the character itself"
        try:
            _construct(node)
        except (ValueError, KeyError, IndexError):
            return f"{node.value!r} is not a value of tag {node.tag.replace(_TAG, '!!')}"
    return None


def _duplicates(root: yaml.Node, name: str) -> Iterator[Problem]:
    for place, node in placed(root):
        if not isinstance(node, yaml.MappingNode):
            continue
        lines: dict[str, int] = {}
        for key, _ in node.value:
            mark = key.start_mark
            if key.value in lines:
                message = f"key given twice (first on line {lines[key.value]})"
                yield Problem(name, mark.line + 1, mark.column + 1, _dotted((*place, key.value)), message)
            lines.setdefault(key.value, mark.line + 1)


def _construct(root: yaml.Node) -> Any:
    loader = _Loader("")
    try:
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _is_echo(item: Any, root: yaml.Node) -> bool:
    """Return True for an error that only follows from another: another alternative of a union, or a list that is too
    short because of its bad items.
    """
    location = _location(item)
    node = _locate(root, location, prefer_key=False)
    if item["type"] == "too_short":
        return isinstance(node, yaml.SequenceNode) and len(node.value) >= item["ctx"]["min_length"]
    if item["loc"][:1] != ("relationship",) or len(location) == len(item["loc"]):
        return False
    if item["loc"][1].startswith("literal["):
        return isinstance(node, yaml.SequenceNode)
    return item["type"] == "tuple_type" and len(location) == 1


def _location(item: Any) -> Place:
    """Return the place of an error in the file, without the alternative of a union that pydantic adds."""
    place = tuple(item["loc"])
    if "disclosure" in place:
        at = place.index("disclosure") + 1
        return place[:at] + place[at + 1 :]
    return place[:1] + place[2:] if place[:1] == ("relationship",) else place


def _problems(item: Any, root: yaml.Node, name: str, model: type[BaseModel]) -> list[Problem]:
    """Return the problems of a file that one error of pydantic stands for."""
    if item["type"] == CONFLICT:
        return [_at(location, message, root, name) for location, message in item["ctx"]["places"]]
    location = _location(item)
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = f"unknown key{suggest(str(location[-1]), _fields_at(location[:-1], model), inline=True)}"
    elif item["type"] == "missing":
        message = "this key is missing" if isinstance(location[-1], str) else "an item is missing"
    elif item["type"] == "literal_error":
        expected = item["ctx"]["expected"]
        options = [option.strip(" '\"") for option in expected.replace(" or ", ",").split(",")]
        meant = suggest(str(item["input"]), options, inline=True)
        message = f"{item['input']!r} is not one of {', '.join(options)}{meant}"
    elif item["type"] in ("too_short", "too_long"):
        bound = {"too_short": "at least {min_length}", "too_long": "at most {max_length}"}[item["type"]]
        message = f"must have {bound} items, not {{actual_length}}".format(**item["ctx"])
    elif item["type"] in _WANTED:
        message = f"must be {_WANTED[item['type']]}"
    return [_at(location, message, root, name, prefer_key=item["type"] == "extra_forbidden")]


_WANTED = {
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "string_type": "text",
}


def _at(location: Place, message: str, root: yaml.Node, name: str, *, prefer_key: bool = False) -> Problem:
    """Return the problem of a part of the document; the place of a missing part is that of what lacks it."""
    mark = _locate(root, location, prefer_key=prefer_key).start_mark
    return Problem(name, mark.line + 1, mark.column + 1, _dotted(location), message)


def _locate(root: yaml.Node, location: Place, *, prefer_key: bool) -> yaml.Node:
    """Return the deepest existing node on the way to `location`."""
    node = root
    for depth, part in enumerate(location):
        found: yaml.Node | None = None
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = node.value[part]
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == part:
                    found = key if prefer_key and depth == len(location) - 1 else value
        if found is None:
            return node
        node = found
    return node


def _fields_at(location: Place, root: type[BaseModel]) -> list[str]:
    """Return the field names of the model at `location`, for suggestions."""
    model: type[BaseModel] | None = root
    for part in location:
        if isinstance(part, int) or model is None:
            continue
        info = model.model_fields.get(part)
        model = _model_in(info.annotation) if info else None
    return list(model.model_fields) if model else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _model_in(arg))), None)


def _dotted(location: Place) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.lstrip(".")
