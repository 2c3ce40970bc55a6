"""Measures the structure of the source tree: modules, functions, comments, imports, names. Prints Markdown tables.

    python -m scripts.shape                     the working tree
    python -m scripts.shape --rev REV           a git revision
    python -m scripts.shape --beside REV        the working tree, compared with a revision
    python -m scripts.shape --check             only the broken rules

Sizes are reported and never enforced: a module has one subject, however long that is. Exit code 1 if modules, or
folders, import each other in a circle; imports inside functions and those for type checking count. Who may import whom
is checked by import-linter (pyproject.toml).
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from scripts.private_members import foreign_private

ROOT = Path(__file__).resolve().parent.parent
OURS = "plansurvive."
PACKAGES = ("plans", "runtime", "activities", "workflows", "client", "features", "apps")
SHORT = 5
"""Lines, from `def` to its end, of a private function that may as well stand in the one place where it is called."""
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
BRANCHES = (*LOOPS, ast.If, ast.IfExp, ast.ExceptHandler, ast.BoolOp, ast.match_case)
NOT_GERUNDS = {"king", "listing", "nothing", "pending", "ring", "spring", "string", "thing", "wing"}
PARTICLES = {"back", "by", "off", "on", "out", "up"}
GENERATED = re.compile(r"<!-- [\w ]+: begin\b.*?<!-- [\w ]+: end -->", re.DOTALL)
"""A part of a page that a script writes. `make docs` writes all of docs/reference."""


@dataclass(frozen=True)
class Module:
    """One source file, parsed."""

    name: str
    """Its import name below `plansurvive`, such as `plans.execution.schedule`."""
    folder: str
    text: str
    tree: ast.Module
    imports: frozenset[str] = frozenset()
    """Modules of this tree that it imports when it runs, excluding their parent packages."""
    named: frozenset[str] = frozenset()
    """Those, and the ones that it imports for type checking only."""

    @property
    def base(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def lines(self) -> int:
        return self.text.count("\n")


@dataclass
class Shape:
    """The figures of one tree."""

    modules: list[Module]
    functions: list[tuple[int, str]] = field(default_factory=list)
    """Lines and name of each function."""
    branches: list[tuple[int, str]] = field(default_factory=list)
    """Branches and name of each function."""
    dwarfs: list[str] = field(default_factory=list)
    """Private functions of at most SHORT lines that are used once."""
    comment_lines: int = 0
    """Lines that are a comment and nothing else."""
    cycles: list[list[str]] = field(default_factory=list)
    """Modules that import each other when they run."""
    named_cycles: list[list[str]] = field(default_factory=list)
    """The same, with imports for type checking."""
    folder_cycles: list[list[str]] = field(default_factory=list)
    """Folders whose modules import each other, with imports for type checking."""
    gerunds: list[str] = field(default_factory=list)
    shared_names: dict[str, list[str]] = field(default_factory=dict)
    any_uses: int = 0
    words: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By page of the documents, the words that people wrote, and those that scripts write."""
    foreign_private: list[str] = field(default_factory=list)

    @property
    def lines(self) -> int:
        return sum(module.lines for module in self.modules)

    def breaches(self) -> list[str]:
        """One message for each broken rule."""
        found = [f"import cycle: {' -> '.join([*cycle, cycle[0]])}" for cycle in self.named_cycles]
        return found + [f"folders import each other: {', '.join(cycle)}" for cycle in self.folder_cycles]


def measure(root: Path) -> Shape:
    """Measure the tree below a directory."""
    modules = read_modules(root)
    graph = {module.name: module.imports for module in modules}
    counted = [module for module in modules if not module.base.startswith("__")]
    shape = Shape(counted)
    for module in counted:
        for function in functions(module.tree):
            name = f"{module.name}.{function.name}"
            shape.functions.append((length(function), name))
            shape.branches.append((sum(isinstance(node, BRANCHES) for node in ast.walk(function)), name))
        shape.dwarfs += [f"{module.name}.{name}" for name in dwarfs(module.tree)]
        shape.comment_lines += sum(line.lstrip().startswith("#") for line in module.text.splitlines())
    shape.cycles = cycles(graph)
    shape.named_cycles = cycles({module.name: module.named for module in modules})
    shape.folder_cycles = cycles(folder_graph(modules))
    shape.gerunds = sorted(f"{module.folder}/{module.base}" for module in counted if is_gerund(module.base))
    shape.shared_names = shared_names(counted)
    shape.words = words(root)
    shape.any_uses = sum(uses_of_any(module.tree) for module in modules)
    trees = {module.name: module.tree for module in modules}
    shape.foreign_private = foreign_private(trees, (OURS.rstrip("."),))
    return shape


def read_modules(root: Path) -> list[Module]:
    """Parse every module of the packages and worker.py, and resolve its imports within this tree."""
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    found = []
    for path in (*paths, *root.glob("worker.py")):
        relative = path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        folder = relative.parent.as_posix().removeprefix(".")
        found.append(Module(".".join(relative.with_suffix("").parts), folder, text, ast.parse(text)))
    names = {module.name for module in found}
    return [
        replace(
            module,
            imports=frozenset(imports(statements(module.tree, executed=True), names)),
            named=frozenset(imports(statements(module.tree), names)),
        )
        for module in found
    ]


def imports(statements: Iterable[ast.AST], names: set[str]) -> Iterator[str]:
    """The modules among `names` that these statements import; a package counts as its `__init__`."""
    for node in statements:
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            wanted = [name if is_module(name.removeprefix(OURS), names) else node.module for name in inside]
        else:
            continue
        for name in (each.removeprefix(OURS) for each in wanted):
            if is_module(name, names):
                yield name if name in names else f"{name}.__init__"


def is_module(name: str, names: set[str]) -> bool:
    return name in names or f"{name}.__init__" in names


def statements(tree: ast.AST, *, executed: bool = False) -> Iterator[ast.AST]:
    """Every statement; with `executed`, none below `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):  # most nodes are below one, and none of them is a statement
            continue
        if executed and isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from statements(node, executed=executed)


def folder_graph(modules: list[Module]) -> dict[str, frozenset[str]]:
    """Which folders the modules of each folder import from, other than itself."""
    folders = {module.name: module.folder or "." for module in modules}
    graph: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        graph[module.folder or "."] |= {folders[name] for name in module.named}
    return {folder: frozenset(others - {folder}) for folder, others in graph.items()}


def cycles(graph: dict[str, frozenset[str]]) -> list[list[str]]:
    """Groups of modules that import each other in a cycle (Tarjan's strongly connected components), each sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[len(stack) - len(group) :]
            if len(group) > 1 or name in graph.get(name, ()):
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function and method."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def length(function: Function) -> int:
    """Lines of a function, from `def` to its end."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def dwarfs(tree: ast.AST) -> list[str]:
    """Names of the private functions of at most SHORT lines that their module uses in one place."""
    uses = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    return [
        function.name
        for function in functions(tree)
        if function.name.startswith("_") and not function.name.startswith("__")
        and length(function) <= SHORT and uses[function.name] == 1
    ]  # fmt: skip


def is_gerund(base: str) -> bool:
    """Whether a file is named after an activity: `speaking`, `agent_reporting`, `taking_back`."""
    words = base.split("_")
    heads = words[:1] if len(words) == 2 and words[1] in PARTICLES else words[-1:]
    return any(word.endswith("ing") and word not in NOT_GERUNDS for word in heads)


def shared_names(modules: list[Module]) -> dict[str, list[str]]:
    """File names that occur in several folders, with those folders."""
    folders = defaultdict(list)
    for module in modules:
        folders[module.base].append(module.folder or ".")
    return {base: found for base, found in sorted(folders.items()) if len(found) > 1}


def uses_of_any(tree: ast.AST) -> int:
    """Number of uses of `Any`, not counting its import."""
    return sum(
        (isinstance(node, ast.Name) and node.id == "Any") or (isinstance(node, ast.Attribute) and node.attr == "Any")
        for node in ast.walk(tree)
    )


def words(root: Path) -> dict[str, tuple[int, int]]:
    """The words of each page at the root and in docs/: those that people wrote, and those that scripts write."""
    found = {}
    for page in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        name, text = page.relative_to(root).as_posix(), page.read_text(encoding="utf-8")
        by_people = "" if name.startswith("docs/reference/") else GENERATED.sub(" ", text)
        written = len(by_people.split())
        found[name] = (written, len(text.split()) - written)
    return found


def measure_revision(revision: str, repository: Path = ROOT) -> Shape:
    """Measure a git revision, exported to a temporary directory."""
    command = ["git", "-C", str(repository), "archive", "--format=tar", revision]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["tar", "-x", "-C", directory], input=packed, check=True)
        return measure(Path(directory))


def figures(shape: Shape) -> dict[str, str]:
    """The first table's cells for a tree, by row title."""
    per_thousand = 1_000 / max(shape.lines, 1)
    return {
        "modules": f"{len(shape.modules)}",
        "lines": f"{shape.lines:,}",
        "lines of a module, p50 / p90 / most": _percentiles([(m.lines, m.name) for m in shape.modules], 50, 90),
        "functions": f"{len(shape.functions):,}",
        "lines of a function, p50 / p90 / p99 / most": _percentiles(shape.functions, 50, 90, 99),
        "branches of a function, p50 / p90 / p99 / most": _percentiles(shape.branches, 50, 90, 99),
        "lines that are a comment": f"{shape.comment_lines:,} ({shape.comment_lines * per_thousand / 10:.2f} %)",
        f"private functions of <= {SHORT} lines used once, per 1,000 lines":
            f"{len(shape.dwarfs):,} ({len(shape.dwarfs) * per_thousand:.1f})",
        "uses of `Any`, per 1,000 lines": f"{shape.any_uses:,} ({shape.any_uses * per_thousand:.1f})",
        "import cycles of modules": f"{len(shape.cycles)}",
        "import cycles of modules, with type checking": f"{len(shape.named_cycles)}",
        "import cycles of folders, with type checking": f"{len(shape.folder_cycles)}",
        "folders in such a cycle": f"{sum(map(len, shape.folder_cycles))}",
        "gerund file names": f"{len(shape.gerunds)}",
        "base names in several folders": f"{len(shape.shared_names)}",
        "private members of libraries": f"{len(shape.foreign_private)}",
        "words of documents, written + generated": " + ".join(f"{sum(each):,}" for each in _columns(shape.words)),
    }  # fmt: skip


def _columns(words: dict[str, tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [by_people for by_people, _ in words.values()], [by_scripts for _, by_scripts in words.values()]


def _percentiles(sizes: Sequence[tuple[int, str]], *percents: int) -> str:
    """The smallest size that so many percent do not exceed, for each; then the largest, with its name."""
    if not sizes:
        return "-"
    counts = sorted(count for count, _ in sizes)
    at = [counts[-(-len(counts) * percent // 100) - 1] for percent in percents]
    most, name = max(sizes)
    return " / ".join(map(str, (*at, most))) + f" ({name})"


def report(shapes: dict[str, Shape]) -> str:
    """The tables and lists for one tree, or several side by side; keys are column titles."""
    rows = {title: figures(shape) for title, shape in shapes.items()}
    text = [*_head("figure", *shapes)]
    text += [f"| {name} | {' | '.join(row[name] for row in rows.values())} |" for name in next(iter(rows.values()))]
    for title, shape in shapes.items():
        text += ["", f"**{title}**", ""]
        text += [f"- imports in a cycle: {', '.join(cycle)}" for cycle in (*shape.named_cycles, *shape.folder_cycles)]
        text.append(f"- gerund file names: {', '.join(shape.gerunds) or 'none'}")
        shared = [f"{base} ({', '.join(folders)})" for base, folders in shape.shared_names.items()]
        text.append(f"- base names in several folders: {'; '.join(shared) or 'none'}")
        text.append(f"- private members of libraries: {'; '.join(shape.foreign_private) or 'none'}")
        text += [f"- words of {name}: {written:,} + {made:,}" for name, (written, made) in shape.words.items()]
        text += [f"- broken rule: {breach}" for breach in shape.breaches()]
    return "\n".join(text)


def _head(*titles: str) -> list[str]:
    return [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; returns 1 if the first tree breaks a rule."""
    parser = argparse.ArgumentParser(description="Print the structure of the source tree as Markdown tables.")
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the checkout to measure (default: that of this script)"
    )
    parser.add_argument("--rev", help="measure this git revision instead of the working tree")
    parser.add_argument("--beside", metavar="REV", help="compare with this git revision")
    parser.add_argument("--check", action="store_true", help="print only the broken rules")
    options = parser.parse_args(arguments)
    shape = measure_revision(options.rev, options.root) if options.rev else measure(options.root)
    if options.check:
        print("\n".join(shape.breaches()) or "The tree keeps its rules.")
    else:
        shapes = {options.rev or "working tree": shape}
        if options.beside:
            shapes[options.beside] = measure_revision(options.beside, options.root)
        print(report(shapes))
    return 1 if shape.breaches() else 0


if __name__ == "__main__":
    sys.exit(main())
