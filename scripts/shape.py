"""Measures the structure of the source tree: folders, modules, functions, imports, names. Prints Markdown tables.

    python -m scripts.shape                     the working tree
    python -m scripts.shape --rev REV           a git revision
    python -m scripts.shape --beside REV        the working tree, compared with a revision
    python -m scripts.shape --check             only the broken limits

Exit code 1 if a limit is broken: files per folder, import cycles, worker.py -> client, workflows -> activities.
Imports inside functions count; imports for type checking only do not.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from scripts.private_members import foreign_private

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("plans", "runtime", "activities", "workflows", "client")
MOST_FILES = 13
LIMITS = {"runtime": 23, "workflows": 25, "client": 25, "client/cli": 25}
"""Maximum number of files per folder, not counting `__init__.py` and `__main__.py`; MOST_FILES for others."""
NOT_GERUNDS = {"king", "listing", "nothing", "pending", "ring", "spring", "string", "thing", "wing"}
PARTICLES = {"back", "by", "off", "on", "out", "up"}


@dataclass(frozen=True)
class Module:
    """One source file, parsed."""

    name: str
    """Its import name, such as `plans.execution.schedule`."""
    folder: str
    lines: int
    tree: ast.Module
    imports: frozenset[str] = frozenset()
    """Modules of this tree that it imports, excluding their parent packages."""

    @property
    def base(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass
class Shape:
    """The figures of one tree."""

    modules: list[Module]
    folders: dict[str, int] = field(default_factory=dict)
    functions: list[tuple[int, str]] = field(default_factory=list)
    cycles: list[list[str]] = field(default_factory=list)
    worker_to_client: list[str] = field(default_factory=list)
    workflows_to_activities: list[str] = field(default_factory=list)
    gerunds: list[str] = field(default_factory=list)
    shared_names: dict[str, list[str]] = field(default_factory=dict)
    any_uses: int = 0
    foreign_private: list[str] = field(default_factory=list)

    def breaches(self) -> list[str]:
        """One message for each broken limit."""
        found = [
            f"{folder}/ has {count} files; at most {limit_of(folder)} are allowed"
            for folder, count in self.folders.items()
            if count > limit_of(folder)
        ]
        found += [f"import cycle: {' -> '.join([*cycle, cycle[0]])}" for cycle in self.cycles]
        found += [f"worker.py imports {name}, directly or indirectly" for name in self.worker_to_client]
        return found + [f"workflows/ imports {name}, directly or indirectly" for name in self.workflows_to_activities]


def limit_of(folder: str) -> int:
    """Maximum number of files in a folder."""
    return LIMITS.get(folder, MOST_FILES)


def measure(root: Path) -> Shape:
    """Measure the tree below a directory."""
    modules = read_modules(root)
    graph = {module.name: module.imports for module in modules}
    counted = [module for module in modules if not module.base.startswith("__")]
    shape = Shape(counted)
    for module in counted:
        if module.folder:
            shape.folders[module.folder] = shape.folders.get(module.folder, 0) + 1
        shape.functions += [(length, f"{module.name}.{name}") for name, length in functions(module.tree)]
    shape.cycles = cycles(graph)
    shape.worker_to_client = sorted(name for name in reached(graph, {"worker"}) if name.startswith("client."))
    workflows = {name for name in graph if name.startswith("workflows.")}
    shape.workflows_to_activities = sorted(name for name in reached(graph, workflows) if name.startswith("activities."))
    shape.gerunds = sorted(f"{module.folder}/{module.base}" for module in counted if is_gerund(module.base))
    shape.shared_names = shared_names(counted)
    shape.any_uses = sum(uses_of_any(module.tree) for module in modules)
    trees = {module.name: module.tree for module in modules}
    shape.foreign_private = foreign_private(trees, (*PACKAGES, "worker"))
    return shape


def read_modules(root: Path) -> list[Module]:
    """Parse every module of the packages and worker.py, and resolve its imports within this tree."""
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    found = []
    for path in (*paths, *root.glob("worker.py")):
        relative = path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        folder = relative.parent.as_posix().removeprefix(".")
        found.append(Module(".".join(relative.with_suffix("").parts), folder, text.count("\n"), ast.parse(text)))
    names = {module.name for module in found}
    return [replace(each, imports=frozenset(imports(each, names))) for each in found]


def imports(module: Module, names: set[str]) -> Iterator[str]:
    """The modules among `names` that a module imports; a package counts as its `__init__`."""
    for node in executed(module.tree):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            wanted = [name if is_module(name, names) else node.module for name in inside]
        else:
            continue
        for name in wanted:
            if is_module(name, names):
                yield name if name in names else f"{name}.__init__"


def is_module(name: str, names: set[str]) -> bool:
    return name in names or f"{name}.__init__" in names


def executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node except those below `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from executed(node)


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


def reached(graph: dict[str, frozenset[str]], start: set[str]) -> set[str]:
    """All modules that importing those of `start` loads, including the `__init__` of parent packages."""
    seen: set[str] = set()
    todo = list(start)
    while todo:
        name = todo.pop()
        parents = (f"{name[:place]}.__init__" for place, sign in enumerate(name) if sign == ".")
        for other in (*graph.get(name, ()), *(parent for parent in parents if parent in graph)):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Name and number of lines of every function and method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


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


def measure_revision(revision: str, repository: Path = ROOT) -> Shape:
    """Measure a git revision, exported to a temporary directory."""
    command = ["git", "-C", str(repository), "archive", "--format=tar", revision]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["tar", "-x", "-C", directory], input=packed, check=True)
        return measure(Path(directory))


def figures(shape: Shape) -> dict[str, str]:
    """The first table's cells for a tree, by row title."""
    lines = [(module.lines, module.name) for module in shape.modules]
    return {
        "modules": f"{len(shape.modules)}",
        "lines": f"{sum(count for count, _ in lines):,}",
        "module, median / longest": _median_and_longest(lines),
        "functions": f"{len(shape.functions):,}",
        "function, median / longest": _median_and_longest(shape.functions),
        "folders over their limit": f"{sum(count > limit_of(name) for name, count in shape.folders.items())}",
        "import cycles": f"{len(shape.cycles)}",
        "worker.py -> client, modules reached": f"{len(shape.worker_to_client)}",
        "workflows -> activities, modules reached": f"{len(shape.workflows_to_activities)}",
        "gerund file names": f"{len(shape.gerunds)}",
        "base names in several folders": f"{len(shape.shared_names)}",
        "uses of `Any`": f"{shape.any_uses}",
        "private members of libraries": f"{len(shape.foreign_private)}",
    }


def _median_and_longest(lengths: list[tuple[int, str]]) -> str:
    if not lengths:
        return "-"
    length, name = max(lengths)
    return f"{median(count for count, _ in lengths):g} / {length} ({name})"


def report(shapes: dict[str, Shape]) -> str:
    """The tables and lists for one tree, or several side by side; keys are column titles."""
    rows = {title: figures(shape) for title, shape in shapes.items()}
    text = [*_head("figure", *shapes)]
    text += [f"| {name} | {' | '.join(row[name] for row in rows.values())} |" for name in next(iter(rows.values()))]
    text += ["", *_head("folder", "limit", *(f"files, {title}" for title in shapes))]
    for folder in sorted({folder for shape in shapes.values() for folder in shape.folders}):
        counts = [str(shape.folders.get(folder, "-")) for shape in shapes.values()]
        text.append(f"| {folder} | {limit_of(folder)} | {' | '.join(counts)} |")
    for title, shape in shapes.items():
        text += ["", f"**{title}**", ""]
        text.append(f"- gerund file names: {', '.join(shape.gerunds) or 'none'}")
        shared = [f"{base} ({', '.join(folders)})" for base, folders in shape.shared_names.items()]
        text.append(f"- base names in several folders: {'; '.join(shared) or 'none'}")
        text.append(f"- private members of libraries: {'; '.join(shape.foreign_private) or 'none'}")
        text += [f"- over a limit: {breach}" for breach in shape.breaches()]
    return "\n".join(text)


def _head(*titles: str) -> list[str]:
    return [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; returns 1 if the first tree breaks a limit."""
    parser = argparse.ArgumentParser(description="Print the structure of the source tree as Markdown tables.")
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the checkout to measure (default: that of this script)"
    )
    parser.add_argument("--rev", help="measure this git revision instead of the working tree")
    parser.add_argument("--beside", metavar="REV", help="compare with this git revision")
    parser.add_argument("--check", action="store_true", help="print only the broken limits")
    options = parser.parse_args(arguments)
    shape = measure_revision(options.rev, options.root) if options.rev else measure(options.root)
    if options.check:
        print("\n".join(shape.breaches()) or "The tree is within its limits.")
    else:
        shapes = {options.rev or "working tree": shape}
        if options.beside:
            shapes[options.beside] = measure_revision(options.beside, options.root)
        print(report(shapes))
    return 1 if shape.breaches() else 0


if __name__ == "__main__":
    sys.exit(main())
