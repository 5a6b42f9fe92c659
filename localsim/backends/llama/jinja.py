"""Chat templates are programs of strangers: they run in Jinja's sandbox, and every step and every size is counted.

The names that published templates expect are those of Hugging Face's transformers. A template that goes on for too
long, fills the memory or fails in any way is refused with a TemplateError.
"""

from __future__ import annotations

import datetime
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import chain
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

_STEPS = 1_000_000
"""Steps of one rendering; the longest published templates take some thousands."""
_LONGEST = 300_000
"""Characters, items or, for a number, size of one value."""
_ITEMS = 10_000
"""Numbers that one loop counts through."""
_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\*|\d{4})|[:.][^{}]*(?:\d{4}|\{)")
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow,
}  # fmt: skip


class TemplateLimit(TemplateError):
    """A template that goes on without an end or fills the memory; it is not tried again."""


class _Generation(Extension):
    """`{% generation %}`, with which training marks replies; nothing else is done with it."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Counted(NodeTransformer):
    """Sends what a template repeats, joins, compares or keeps through filters that count it."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - Jinja's name
        self.generic_visit(node)
        node.iter = self._through("_each", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return self._through("_joined", nodes.List(node.nodes, lineno=node.lineno))

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.filter = nodes.Filter(node.filter, "_kept", [], [], None, None, lineno=node.lineno)
        return node

    def _made(self, node: nodes.Expr) -> nodes.Expr:
        """Count what a literal holds: lists of lists grow twofold with each, and are compared item by item."""
        self.generic_visit(node)
        return node if getattr(node, "ctx", "load") == "store" else self._through("_kept", node)

    visit_List = visit_Tuple = visit_Dict = _made  # noqa: N815

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        sides: tuple[nodes.Compare | nodes.Operand, ...] = (node, *node.ops)
        for side in sides:
            side.expr = self._through("_kept", side.expr)
        return node

    def visit_Test(self, node: nodes.Test) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.node, node.args = self._through("_kept", node.node), [self._through("_kept", each) for each in node.args]
        return node

    @staticmethod
    def _through(name: str, node: nodes.Node) -> nodes.Filter:
        return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(_OPERATORS)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[loopcontrols, _Generation],
            optimized=False,
            finalize=self._kept,
        )
        self.left = _STEPS
        del self.globals["lipsum"]
        self.globals |= {"range": _range, "raise_exception": _raise, "strftime_now": _today}
        self.filters = {name: self._counted(name, each) for name, each in self.filters.items()}
        self.filters["tojson"] = self._counted("tojson", _tojson)
        self.filters |= {"_each": self._each, "_joined": self._joined, "_kept": self._kept}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _Counted().visit(tree)
        return tree

    # ---- counting -----------------------------------------------------------------------------------------------

    def spend(self, steps: int) -> None:
        """Count steps. Raises TemplateLimit when there are too many."""
        self.left -= steps
        if self.left < 0:
            raise TemplateLimit("it goes on without an end")

    def _each(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.spend(10)
            yield value

    def _joined(self, parts: list[Any]) -> str:
        return str(self._kept("".join(map(str, map(self._kept, parts)))))

    def _kept(self, value: Any) -> Any:
        size = _size(value)
        self.spend(1 + size // 10)
        if size > _LONGEST:
            raise TemplateLimit("it fills the memory")
        return value

    def _checked(self, given: Iterable[Any]) -> None:
        sizes = sorted(_size(each) for each in given)
        self.spend(1 + sum(sizes[-2:]) // 10)
        if sizes and (sizes[-1] > _LONGEST or len(sizes) > 1 and sizes[-1] * sizes[-2] > 100 * _LONGEST):
            raise TemplateLimit("it fills the memory")

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def counted(*given: Any, **named: Any) -> Any:
            self._checked([*given, *named.values()])
            if name == "format":
                _refuse_widths(given[0])
            return self._kept(function(*given, **named))

        return counted

    def call(self, context: Any, obj: Any, /, *given: Any, **named: Any) -> Any:
        owner = getattr(getattr(obj, "__wrapped__", obj), "__self__", None)
        self._checked([owner, *given, *named.values()])
        if isinstance(owner, str) and getattr(obj, "__name__", "").startswith("format"):
            _refuse_widths(owner)
        self.spend(50)
        return self._kept(super().call(context, obj, *given, **named))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        self._checked([left, right])
        if operator == "%":
            _refuse_widths(left)
        if operator == "**" and abs(right) > 64:
            raise TemplateLimit("it fills the memory")
        return self._kept(_OPERATORS[operator](left, right))


def _size(value: Any) -> int:
    """Return the characters and items of a value, those inside too, or the size of a whole number."""
    total, waiting = 0, [value]
    while waiting and total <= _LONGEST:
        each = waiting.pop()
        if isinstance(each, Namespace):
            each = each._Namespace__attrs  # its text shows them
        if isinstance(each, list | tuple | set | dict):
            total += 1 + len(each)
            waiting += chain(each, each.values()) if isinstance(each, dict) else each
        elif isinstance(each, int):
            total += abs(each) if each is value else 1
        else:
            total += len(each) if hasattr(each, "__len__") else 1
    return min(total, _LONGEST + 1)


def _refuse_widths(form: Any) -> None:
    """Raise TemplateError for a format that fills a text up to a width, which may be any number."""
    if isinstance(form, str) and _WIDTH.search(form):
        raise TemplateLimit("it fills the memory")


def _raise(message: str) -> NoReturn:
    raise TemplateError(str(message))


def _range(*ends: int) -> range:
    found = range(*ends)
    if len(found) > _ITEMS:
        raise TemplateLimit("it goes on without an end")
    return found


def _today(form: str) -> str:
    return datetime.date(2025, 1, 1).strftime(form)


def _tojson(value: Any, indent: int | None = None, ensure_ascii: bool = False, **more: Any) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii, **more)


class Program:
    """A template. Raises TemplateError where it is not valid Jinja."""

    def __init__(self, source: str) -> None:
        self._environment = _Environment()
        with _Refusing():
            self._template = self._environment.from_string(source)

    def render(self, **variables: Any) -> str:
        """Return the text of a template. Raises TemplateError with the reason, whatever it is."""
        self._environment.left = _STEPS
        found: list[str] = []
        with _Refusing():
            for part in self._template.generate(**variables):
                self._environment.spend(1)
                found.append(part)
                if len(found) % 1000 == 0 and sum(map(len, found)) > _LONGEST:
                    raise TemplateLimit("it fills the memory")
        text = "".join(found)
        if len(text) > _LONGEST:
            raise TemplateLimit("it fills the memory")
        return text


class _Refusing:
    """Turns every error of a template into a TemplateError with its reason."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, RecursionError):
            raise TemplateLimit("it calls itself without an end") from None
        if isinstance(error, Exception) and not isinstance(error, TemplateError):
            reason = " ".join(str(error).split())[:200]
            raise TemplateError(f"{type(error).__name__}: {reason}" if reason else type(error).__name__) from None
