"""What the rest of the tree knows of each feature: a table, and whether the core knows more than it may.

    python -m scripts.known_features             the table
    python -m scripts.known_features --places    and each place in the core that branches on a name of a feature
    python -m scripts.known_features --check     only what breaks the rules; exit code 1 if something does

Three columns: modules of the core that import the feature (none may), other features that import it (at most two), and
places in the core that branch on its names. Names of a feature are

- *fields* of a plan or a step that have a meaning because of it (GIVEN): read as an attribute, or looked up by name
- its *settings*, read from the settings of a process
- its *parts* of a run, an attempt or a result, looked up by name
- *codes*, and *kinds of log entries*, that it alone produces
- *tools* whose steps it starts, and what these steps await

A place branches on a string if that is compared, looked up, matched, or one of a collection. Where a model declares a
field or lists the words of one, the log its kinds, and plans/error_codes.py what each code means, nothing branches:
the language is the core's.
No place is allowed.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scripts.shape import OURS, ROOT, Module, read_modules

CORE = ("plans", "workflows", "runtime", "activities", "client", "worker")
ROOTS = ("client.runs.__init__", "client.embedding.plugin")
"""Composition roots in the core's folders, as import-linter has them (pyproject.toml)."""
MOST_OTHERS = 2
Name = tuple[str, str]
"""A kind of name (`field`, `setting`, `part`, `code`, `log`, `tool`, `awaits`) and the name."""

GIVEN: Mapping[str, tuple[Name, ...]] = {
    "budget": (("field", "budget"), ("log", "BUDGET")),
    "cache": (("field", "cache"),),
    "express": (("field", "express"),),
    "locks": (("field", "workspace_lock"), ("field", "workspaceLock")),
    "notify": (("field", "notify"),),
    "planning": (("awaits", "recovery"),),
    "worktrees": (("field", "worktree"),),
}
"""Names that a feature gives a meaning to, and models of the core declare.

`on_failure` is none of them: `stop` and `block` are the schedule's own, and only the word `ask_llm` is planning's.
"""
LOOK_UP = ("get", "pop", "setdefault", "startswith")
"""Methods that look something up by their first argument."""
_CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


@dataclass
class Known:
    """What is known of one feature outside its folder."""

    core: list[str] = field(default_factory=list)
    """Modules of the core that import it."""
    others: list[str] = field(default_factory=list)
    """Other features that import it."""
    places: list[str] = field(default_factory=list)
    """`file:line name` of each place in the core that branches on one of its names."""


@dataclass
class Source:
    """A module, and the strings that its names stand for."""

    module: Module
    strings: dict[str, str]
    """By name, the text of constants that it defines or imports."""

    @property
    def feature(self) -> str:
        return _feature(self.module.name)

    @property
    def is_core(self) -> bool:
        return self.module.name.partition(".")[0] in CORE

    def text(self, node: ast.AST | None) -> str:
        """The string that an expression is; empty if it is none."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        return self.strings.get(node.id, "") if isinstance(node, ast.Name) else ""


def known(root: Path) -> dict[str, Known]:
    """What the tree below a directory knows of each of its features."""
    sources = _read(root)
    found = {path.parent.name: Known() for path in sorted((root / "features").glob("*/__init__.py"))}
    for source in sources:
        for feature in sorted({_feature(other) for other in source.module.named} - {source.feature, ""}):
            if source.is_core and source.module.name not in ROOTS:
                found[feature].core.append(source.module.name)
            elif source.feature not in ("", *found[feature].others):
                found[feature].others.append(source.feature)
    owners = {name: feature for name, feature in _owners(sources).items() if feature in found}
    for source in sources:
        if source.is_core and source.module.name != "plans.error_codes":
            path = source.module.name.replace(".", "/") + ".py"
            for line, name in sorted(set(_uses(source, owners))):
                found[owners[name]].places.append(f"{path}:{line} {' '.join(name)}")
    return found


def breaches(found: Mapping[str, Known]) -> list[str]:
    """One message for each broken rule."""
    said = list[str]()
    for name, each in found.items():
        said += [f"{module} is of the core and imports the feature '{name}'" for module in each.core]
        if len(each.others) > MOST_OTHERS:
            said.append(f"'{name}' is imported by {len(each.others)} other features: {', '.join(each.others)}")
        said += [f"the core branches on a name of '{name}': {place}" for place in each.places]
    return said


def table(found: Mapping[str, Known]) -> str:
    """The figures as a Markdown table."""
    rows = [
        "| feature | core modules that import it | other features | places in the core |",
        "| --- | --- | --- | --- |",
    ]
    rows += [
        f"| {name} | {len(each.core)} | {', '.join(each.others) or 0} | {len(each.places)} |"
        for name, each in found.items()
    ]
    return "\n".join(rows)


def _feature(module: str) -> str:
    """The feature that a module is of; empty if it is of none. Packages hold data about their features."""
    words = module.split(".")
    return words[1] if words[0] == "features" and len(words) > 2 else ""


def _read(root: Path) -> list[Source]:
    modules = read_modules(root)
    defined = {module.name.removesuffix(".__init__"): _constants(module.tree) for module in modules}
    found = []
    for module in modules:
        strings = dict(_constants(module.tree))
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                there = defined.get(node.module.removeprefix(OURS), {})
                strings |= {each.asname or each.name: there[each.name] for each in node.names if each.name in there}
        found.append(Source(module, strings))
    return found


def _constants(tree: ast.Module) -> dict[str, str]:
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _owners(sources: list[Source]) -> dict[Name, str]:
    """Which feature has each name. Codes and kinds that the core or several features produce are nobody's."""
    owners: dict[Name, str] = {}
    produced: dict[Name, set[str]] = defaultdict(set)
    for source in sources:
        for name in _produced(source):
            produced[name].add(source.feature)
        if source.feature:
            owners |= dict.fromkeys(_declared(source), source.feature)
    owners |= {name: next(iter(by)) for name, by in produced.items() if len(by) == 1 and "" not in by}
    return owners | {name: feature for feature, names in GIVEN.items() for name in names}


def _declared(source: Source) -> Iterator[Name]:
    """The settings, parts, tools and awaits that the classes of a feature's module declare."""
    for kind in (node for node in ast.walk(source.module.tree) if isinstance(node, ast.ClassDef)):
        bases = {ast.unparse(base) for base in kind.bases}
        for node in kind.body:
            for target, value in _assigned(node):
                if "FeatureSettings" in bases and target != "feature":
                    yield "setting", target
                elif "Part" in bases and target == "feature":
                    yield "part", source.text(value)
                elif target in ("tools", "awaits") and isinstance(value, ast.Tuple):
                    yield from ((target.replace("tools", "tool"), source.text(each)) for each in value.elts)


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a statement sets or declares, each with its value."""
    if isinstance(node, ast.AnnAssign):
        yield ast.unparse(node.target), node.value
    elif isinstance(node, ast.Assign):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from zip(map(ast.unparse, target.elts), value.elts, strict=True)
        else:
            yield ast.unparse(target), value


def _produced(source: Source) -> Iterator[Name]:
    """The codes that a module gives to errors, refusals, problems and entries, and the kinds of its log entries."""
    if source.module.name == "plans.error_codes":
        return
    for node in ast.walk(source.module.tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in LOOK_UP:
                continue
            given = (*node.args, *(each.value for each in node.keywords))
            yield from (("log", each.attr) for each in given if isinstance(each, ast.Attribute) and _is_kind(each))
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.Return):
            given = (node.value,) if node.value else ()
        else:
            continue
        yield from (("code", text) for each in given if _CODE.fullmatch(text := source.text(each)))


def _is_kind(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "LogKind"


def _uses(source: Source, owners: Mapping[Name, str]) -> Iterator[tuple[int, Name]]:
    """The lines of a module that branch on a name of a feature, with that name."""
    is_word = source.module.name.startswith("plans.model.")  # a list of words there is what a field may say
    for node in ast.walk(source.module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            kinds = {kind for kind in ("log", "setting", "field") if (kind, node.attr) in owners}
            if kinds and (kind := _kind_of(node)) in kinds:
                yield node.lineno, (kind, node.attr)
        for value, beside in _deciding(node):
            if not (text := source.text(value)) or (is_word and beside is None):
                continue
            found = [kind for kind in ("field", "code", "tool", "awaits", "part") if (kind, text) in owners]
            near = ast.unparse(beside) if found and beside else ""
            for kind in found:
                # `plan`, `agent` and `ask` are common words, and the names of fields: those are told by what is beside.
                is_constant = kind == "tool" and isinstance(value, ast.Name)
                if kind in ("field", "code") or is_constant or near.endswith(_BESIDE[kind]):
                    yield value.lineno, (kind, text)


def _kind_of(node: ast.Attribute) -> str:
    """What kind of name an attribute would be."""
    if _is_kind(node):
        return "log"
    return "setting" if ast.unparse(node.value).endswith("settings") else "field"


_BESIDE = {"tool": "tool", "awaits": "awaiting", "part": "parts"}
"""How what a name is compared with, or looked up in, ends."""


def _deciding(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The parts of a node by whose value something is decided, each with what it is compared with or looked up in."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for side, beside in zip(sides, (sides[1], *sides), strict=False):
            members = side.elts if isinstance(side, ast.Tuple | ast.Set | ast.List) else [side]
            yield from ((each, beside) for each in members)
    elif isinstance(node, ast.Subscript):
        if not (isinstance(node.value, ast.Name) and node.value.id in ("Literal", "Annotated")):
            yield node.slice, node.value
    elif isinstance(node, ast.Dict):
        yield from ((key, None) for key in node.keys if key is not None)
    elif isinstance(node, ast.Tuple | ast.Set | ast.List):
        yield from ((each, None) for each in node.elts)
    elif isinstance(node, ast.MatchValue):
        yield node.value, None
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOK_UP:
        yield from ((each, node.func.value) for each in node.args[:1])


def main(arguments: list[str]) -> int:
    """Print what was asked for; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--places", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    found = known(given.root)
    if not given.check:
        print(table(found))
    for name, each in found.items() if given.places else ():
        print(f"\n{name}", *each.places, sep="\n  ")
    broken = breaches(found)
    print(*broken, sep="\n", end="\n" if broken else "")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
