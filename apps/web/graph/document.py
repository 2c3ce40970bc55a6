"""The graph of a plan as compact JSON, for graph.js: rows of a table instead of objects, edges as pairs of row numbers.

    {"version": 1, "seq": 42, "total": 2122, "nodes": [[id, label, kind, tool, status, awaiting, parent, told,
    counts, child], ...], "edges": [[0, 1], ...]}

`child` is the id of the plan that a step runs. `parent` is the row of the group or block around a node, -1 for none; it
comes before its members. `edges` are between the steps themselves, as the plan has them: which groups they connect
depends on what is unfolded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from plansurvive.apps.web.graph.folding import FOLD, fold
from plansurvive.apps.web.graph.tree import MORE, Node, tree_of, tree_of_plan
from plansurvive.plans.model import Plan
from plansurvive.plans.views.models import PlanView


def document(view: PlanView) -> dict[str, Any]:
    """The graph of a plan that has been started, folded. Raises BadExpression."""
    return {"version": view.version, "seq": view.seq, "plan": view.status.value, **table(fold(tree_of(view)))}


def document_of_plan(plan: Plan) -> dict[str, Any]:
    """The graph of a plan as written: a file, a template, a draft. Raises BadExpression."""
    return {"version": plan.version, "seq": 0, "plan": "", **table(fold(tree_of_plan(plan)))}


def tag(view: PlanView) -> str:
    """An entity tag of the document: another one whenever the plan was edited or anything in it happened."""
    return f'"{view.version}-{view.seq}-{view.status.value}"'


def table(nodes: Iterable[Node]) -> dict[str, Any]:
    """The rows of the nodes and of those inside them, and the edges between them."""
    rows: list[list[Any]] = []
    found: list[Node] = []
    _rows(nodes, -1, rows, found)
    place = {node.id: index for index, node in enumerate(found)}
    edges = [[place[name], index] for index, node in enumerate(found) for name in node.needs if name in place]
    steps = sum(node.kind not in (FOLD, MORE) for node in found)
    return {"total": steps, "nodes": rows, "edges": edges}


def _rows(nodes: Iterable[Node], parent: int, rows: list[list[Any]], found: list[Node]) -> None:
    for node in nodes:
        place = len(rows)
        found.append(node)
        rows.append(_row(node, parent))
        _rows(node.inside, place, rows, found)


def _row(node: Node, parent: int) -> list[Any]:
    counts = dict(node.counts) if node.counts else 0
    row = [node.id, node.label, node.kind, node.tool, node.status, node.awaiting, parent, node.told, counts, node.child]
    return _short(row)


def _short(row: Sequence[Any]) -> list[Any]:
    """The row without what is empty at its end."""
    end = len(row)
    while end > 7 and not row[end - 1]:
        end -= 1
    return list(row[:end])
