"""The shape of the code: layers, sizes, and one place for each heavy library."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from localsim.families import FAMILIES

PACKAGE = Path(__file__).resolve().parent.parent / "localsim"
FILES = sorted(PACKAGE.rglob("*.py"))

WORKERS = ["runs.cluster.judging", "runs.cluster.worker"]
"""Modules that hand every error of another process to the driver, which handles it."""

HEAVY = {
    "llama_cpp": {"backends.llama.lib"},
    "duckdb": {"store.database", "store.lock"},
    "sentence_transformers": {"leakage.embeddings"},
    "scipy": {
        "stats.intervals",
        "stats.paired",
        "leakage.accuracy",
        "annotation.measures",
        "families.games.talking.linear_program",
    },
    "choix": {"annotation.measures"},
    "sklearn": {"annotation.measures"},
    "torch": {"leakage.reader", "finetune.trainer", "finetune.batches"},
    "transformers": {"finetune.trainer"},
    "peft": {"finetune.trainer"},
    "gguf": {"models.gguf_files", "models.lora", "backends.openvino.weights"},
    "openvino": {"backends.openvino.network"},
    "httpx2": {"models.downloads"},
    "huggingface_hub": {"models.downloads"},
    "matplotlib": {"reports.figures.draw"},
    "py3langid": {"families.language"},
    "inspect_ai": {"runs.transfer.inspect_task"},
}


@cache
def tree_of(file: Path) -> ast.Module:
    """The syntax of a file, read once for all tests."""
    return ast.parse(file.read_text())


def for_each(files: Iterable[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Make one test of a check of many files, which names all that fail; a test for each took longer than its check."""

    def decorate(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            failed = []
            for file in files:
                try:
                    check(file)
                except AssertionError as error:
                    failed.append(f"{file.relative_to(PACKAGE)}: {error}")
            assert not failed, "\n".join(failed)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {f"localsim.{module_of(file)}".removesuffix("."): file for file in FILES}


@cache
def imports_of(tree: ast.Module, *, lazy: bool) -> list[str]:
    """Imported modules; `lazy` includes those inside functions, and leaves out `if TYPE_CHECKING`."""
    found: list[str] = []
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    nodes = ast.walk(tree) if lazy else tree.body
    for node in nodes:
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name if name in MODULES else node.module for name in names]
    return found


def test_rooms_are_layered() -> None:
    """The contract and its rooms are in pyproject.toml ([tool.importlinter]); it has no exceptions."""
    result = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert "ignore_imports" not in (PACKAGE.parent / "pyproject.toml").read_text()


def test_imports_have_no_loop() -> None:
    """Imports inside functions count too: whoever reads one file of a loop has to read them all."""
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, f"a loop of imports: {' -> '.join((*way[way.index(module) :], module))}"
        if module not in done:
            for name in imports_of(tree_of(MODULES[module]), lazy=True):
                if name in MODULES and name not in (module, "localsim"):
                    visit(name, (*way, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())
    assert len(done) == len(FILES)


@for_each(FILES)
def test_heavy_libraries_have_one_place_and_wait_until_needed(file: Path) -> None:
    module, tree = module_of(file), tree_of(file)
    for name in imports_of(tree, lazy=True):
        library = name.split(".")[0]
        if library in HEAVY:
            assert module in HEAVY[library], f"{module} imports {library}"
    top = {name.split(".")[0] for name in imports_of(tree, lazy=False)}
    assert not top & (set(HEAVY) - {"duckdb", "inspect_ai"}), f"{module} imports {top & set(HEAVY)} on import"
    assert not any("inspect_task" in name for name in imports_of(tree, lazy=True)), "only Inspect imports its tasks"


@for_each(FILES)
def test_files_and_functions_fit(file: Path) -> None:
    tree = tree_of(file)
    assert len(file.read_text().splitlines()) <= 500
    assert ast.get_docstring(tree), "every module says what it is"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 70, f"{node.name} does not fit on a screen"
            assert node.returns is not None, f"{node.name} does not say what it returns"


@for_each(FILES)
def test_public_things_have_docstrings(file: Path) -> None:
    """What a base declares is described there."""
    tree = tree_of(file)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"
            for method in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    known = any(method.name in methods_of(base) for base in bases_of(node))
                    assert known or ast.get_docstring(method), f"{node.name}.{method.name} has no docstring"


def bases_of(node: ast.ClassDef) -> list[str]:
    """The names of the bases of a class, without the parameters of a generic one."""
    return [re.sub(r"\[.*", "", ast.unparse(base)).rpartition(".")[2] for base in node.bases]


def methods_of(name: str) -> set[str]:
    """The methods of the classes of the package that have this name, and of their bases."""
    own = classes().get(name, [])
    found = {method.name for node in own for method in node.body if isinstance(method, ast.FunctionDef)}
    return found.union(*(methods_of(base) for node in own for base in bases_of(node) if base != name))


@cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """The classes of the package by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for file in FILES:
        for node in tree_of(file).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def test_exceptions_are_swallowed_in_one_place_only() -> None:
    broad = []
    for file in FILES:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ExceptHandler):
                caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                if any(each is None or (isinstance(each, ast.Name) and each.id == "Exception") for each in caught):
                    broad.append(module_of(file))
    assert broad == ["__main__", "evaluators.base", "plugins", *WORKERS]


SQL = re.compile(r"\b(SELECT\b.+\bFROM|INSERT\s+INTO|DELETE\s+FROM|UPDATE\b.+\bSET)\b", re.DOTALL)
FAMILY_NAMES = tuple(FAMILIES.own)


@for_each(file for file in FILES if "store" not in file.parts)
def test_only_the_store_writes_sql(file: Path) -> None:
    """Docstrings, hints and helps may show a query that a person can type; nothing else may hold one."""
    tree = tree_of(file)
    shown = {id(inner) for node in ast.walk(tree) if is_shown(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in shown:
            assert not SQL.search(node.value), f"{module_of(file)}:{node.lineno} holds a query"


def is_shown(node: ast.AST) -> bool:
    """Whether a node is a docstring, or the `hint` or `help` of a call."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.keyword) and node.arg in ("hint", "help"))


@for_each(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".j2", ".js") and "families" not in path.parts)
def test_only_families_know_families(file: Path) -> None:
    """No other room asks for a family by name; docstrings and examples of commands may name a scenario of one."""
    if file.suffix == ".py":
        tree = tree_of(file)
        shown = {id(inner) for node in ast.walk(tree) if is_shown(node) for inner in ast.walk(node)}
        words = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in shown
        ]
    else:
        words = re.findall(r"[\w./-]+", file.read_text())
    for word in words:
        assert word not in FAMILY_NAMES, f"{file.name} names the family {word}"
        assert not any(f"'{name}'" in word or f'"{name}"' in word for name in FAMILY_NAMES), f"{file.name}: {word}"
