"""Folds the steps of a big plan into groups, so that at most `ROOM` nodes stand beside each other at any level.

Steps that are interchangeable (the same tool, needs and dependents) make one group from `ALIKE` on; then, in plans that
are still wide, those of one tool at one level; then whole levels, ranges of levels, and connected parts. No group makes
a cycle: there is no path between interchangeable steps, levels only lead downwards, and parts are not connected.

Rejected: dagre's compound graphs (seconds from a few hundred nodes on) and elk for all steps at once (1.6 MB, 4
seconds, an unreadable picture of 2,122 steps).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from math import ceil

from plansurvive.apps.web.graph.tree import Node

ROOM = 120
"""Nodes beside each other; of a page, more cannot be read at once."""
WIDE = 40
"""Nodes from which on steps of one level that are merely similar are folded as well."""
ALIKE = 12
"""Interchangeable or similar steps from which on they are one group."""
RANGES = 40
"""Groups that a long chain of levels is divided into."""
FOLD = "fold"
"""Kind of a node that is no step, but a group of steps beside each other."""
_WORD = re.compile(r"[A-Za-z]+(?:[_-][A-Za-z]+)*")


def fold(nodes: Sequence[Node]) -> list[Node]:
    """The same nodes, in the same order, some of them in groups (kind `fold`), at every level."""
    inner = [node._replace(inside=tuple(_of_container(node))) if node.inside else node for node in nodes]
    return _folded(inner)


def members(node: Node) -> Iterator[Node]:
    """The nodes that a group stands for: itself, if it is none."""
    if node.kind != FOLD:
        yield node
    for each in node.inside if node.kind == FOLD else ():
        yield from members(each)


def _of_container(node: Node) -> list[Node]:
    """What is inside a block or loop: the items of a loop are a group already."""
    return list(node.inside) if node.kind == "each" and len(node.inside) <= ROOM else fold(node.inside)


def _folded(nodes: list[Node]) -> list[Node]:
    nodes = _grouped(nodes, _alike(nodes), ALIKE, "alike")
    if len(nodes) > WIDE:
        nodes = _grouped(nodes, _by_level(nodes, _similar), ALIKE, "similar")
    if len(nodes) <= ROOM:
        return nodes
    for key in (_similar, lambda _: ""):
        found = _grouped(nodes, _by_level(nodes, key), 2, "level")
        if len(found) <= ROOM:
            return found
    parts = _parts(nodes)
    if len(set(parts)) > 1:
        return _chunked(_grouped(nodes, parts, 2, "part"))
    levels = _levels(nodes)
    per_range = ceil((max(levels) + 1) / RANGES)
    return _grouped(nodes, [level // per_range for level in levels], 2, "range")


def _grouped(nodes: list[Node], keys: Sequence[Hashable], least: int, why: str) -> list[Node]:
    """The nodes with a group in the place of the first one, for each key that at least so many have."""
    groups: dict[Hashable, list[Node]] = defaultdict(list)
    for node, key in zip(nodes, keys, strict=True):
        groups[key].append(node)
    if len(groups) == 1 and len(nodes) > 1 and why != "alike":
        return _chunked(nodes)  # all at one level: they do not need each other, unless they all do, in a draft
    found, placed = [], set[Hashable]()
    for node, key in zip(nodes, keys, strict=True):
        if len(groups[key]) < least:
            found.append(node)
        elif key not in placed:
            placed.add(key)
            found.append(_group(groups[key], why))
    return found


def _group(nodes: list[Node], why: str) -> Node:
    inner = _chunked(nodes) if why in ("alike", "similar", "level") else _folded(nodes)
    label = _span(nodes) if why in ("range", "part") else _label(nodes)
    return Node(f"~{why} {nodes[0].id}", label, FOLD, inside=tuple(inner))


def _chunked(nodes: list[Node]) -> list[Node]:
    """Nodes that do not need each other, in groups of equal size if there are too many."""
    if len(nodes) <= ROOM:
        return nodes
    size = max(ceil(len(nodes) / ROOM), ROOM // 2)
    parts = [nodes[start : start + size] for start in range(0, len(nodes), size)]
    return [Node(f"~chunk {part[0].id}", _label(part), FOLD, inside=tuple(part)) for part in parts]


def _label(nodes: Sequence[Node]) -> str:
    steps = [each for node in nodes for each in members(node)]
    tools = {node.tool for node in steps}
    words = {_similar(node) for node in steps}
    (word,) = words if len(words) == 1 else ("",)
    name = word or (tools.pop() if len(tools) == 1 else "steps")
    return f"{len(steps):,} × {name}"


def _span(nodes: Sequence[Node]) -> str:
    """The first and the last step of a group whose steps have little in common."""
    steps = [each for node in nodes for each in members(node)]
    return f"{steps[0].label} … {steps[-1].label}"


def _alike(nodes: Sequence[Node]) -> list[Hashable]:
    """What steps have in common that could take each other's place; containers have nothing."""
    needs = _needs(nodes)
    followers: list[list[int]] = [[] for _ in nodes]
    for index, found in enumerate(needs):
        for before in found:
            followers[before].append(index)
    return [
        (node.tool, node.kind, tuple(sorted(needs[index])), tuple(followers[index])) if _is_plain(node) else index
        for index, node in enumerate(nodes)
    ]


def _is_plain(node: Node) -> bool:
    return node.kind == "call" and not node.inside


def _similar(node: Node) -> str:
    """The first words of an id, as in `resize` of `resize_17`; empty for a group."""
    found = _WORD.match(node.id) if node.kind != FOLD else None
    return found[0].removesuffix("_ID") if found else ""


def _by_level(nodes: Sequence[Node], key: Callable[[Node], str]) -> list[Hashable]:
    """The level of each node, and what it is like there. By similarity, containers and groups stand for themselves."""
    levels = _levels(nodes)
    is_whole = key is not _similar
    return [
        (level, key(node), node.tool if not is_whole else "") if is_whole or _is_plain(node) else index
        for index, (level, node) in enumerate(zip(levels, nodes, strict=True))
    ]


def _needs(nodes: Sequence[Node]) -> list[set[int]]:
    """For each node, the indexes of those beside it that it, or something in the group that it is, waits for."""
    place = {each.id: index for index, node in enumerate(nodes) for each in members(node)}
    return [
        {place[name] for each in members(node) for name in each.needs if name in place} - {index}
        for index, node in enumerate(nodes)
    ]


def _levels(nodes: Sequence[Node]) -> list[int]:
    """The longest way from a beginning to each node, without recursion. A cycle, as in a draft, counts as level 0."""
    needs = _needs(nodes)
    left = [len(found) for found in needs]
    after: list[list[int]] = [[] for _ in nodes]
    for index, found in enumerate(needs):
        for before in found:
            after[before].append(index)
    levels = [0] * len(nodes)
    ready = [index for index, count in enumerate(left) if not count]
    while ready:
        index = ready.pop()
        for follower in after[index]:
            levels[follower] = max(levels[follower], levels[index] + 1)
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    return levels


def _parts(nodes: Sequence[Node]) -> list[Hashable]:
    """For each node, the connected part it is in, by the index of one of its nodes."""
    root = list(range(len(nodes)))

    def top(index: int) -> int:
        while root[index] != index:
            root[index] = root[root[index]]
            index = root[index]
        return index

    for index, found in enumerate(_needs(nodes)):
        for before in found:
            root[top(before)] = top(index)
    return [top(index) for index in range(len(nodes))]
