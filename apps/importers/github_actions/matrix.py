"""The combinations of a `strategy.matrix`, as the items of a `forEach`.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstrategymatrix
"""

from __future__ import annotations

import json
from itertools import product
from math import prod
from typing import Any

from plansurvive.apps.importers.common.expressions import Call, Const, Listed, Path, jmespath_of
from plansurvive.apps.importers.common.report import Location, Report

MAX_COMBINATIONS = 256
"""GitHub's own limit per workflow run."""


def for_each_of(strategy: dict[str, Any], place: Location, report: Report) -> dict[str, Any] | None:
    """The `forEach` of a job; None if it has no matrix, or one that is known only when it runs."""
    matrix = strategy.get("matrix")
    if matrix is None:
        return None
    place = (*place, "matrix")
    if not isinstance(matrix, dict) or "${{" in json.dumps(matrix, default=str):
        report.loss(place, "a matrix that is computed when the workflow runs", "write forEach with the list of items")
        return None
    items = _combinations(matrix)
    if not items or len(items) > MAX_COMBINATIONS:
        report.loss(place, "a matrix without combinations, or with too many", f"1 to {MAX_COMBINATIONS} can be")
        return None
    found: dict[str, Any] = {"items": items, "as": "matrix"}
    key = _key(items)
    if key:
        found["key"] = key
    most = strategy.get("max-parallel")
    if isinstance(most, int) and not isinstance(most, bool) and most > 0:
        found["maxParallel"] = min(most, 100)
    if strategy.get("fail-fast") is False and len(items) > 1:
        what = "fail-fast: false: after a failure no further combination is started here"
        report.loss(place, what, "set forEach.tolerate; the job then counts as completed")
    return found


def _combinations(matrix: dict[str, Any]) -> list[dict[str, Any]]:
    axes = {
        name: values if isinstance(values, list) else [values]
        for name, values in matrix.items()
        if name not in ("include", "exclude")
    }
    if prod(map(len, axes.values())) > 4 * MAX_COMBINATIONS:
        return []
    items = [dict(zip(axes, each, strict=True)) for each in product(*axes.values())] if axes else []
    left_out = [each for each in _listed(matrix.get("exclude")) if isinstance(each, dict)]
    items = [item for item in items if not any(_fits(item, each) for each in left_out)]
    for extra in _listed(matrix.get("include")):
        if isinstance(extra, dict):
            _include(items, extra, axes)
    return items


def _include(items: list[dict[str, Any]], extra: dict[str, Any], axes: dict[str, Any]) -> None:
    """Add the values to each combination whose own values they do not change; if there is none, as another one."""
    own = {name: value for name, value in extra.items() if name in axes}
    matching = [item for item in items if axes and all(name in item for name in axes) and _fits(item, own)]
    for item in matching:
        item.update({name: value for name, value in extra.items() if name not in axes})
    if not matching:
        items.append(dict(extra))


def _key(items: list[dict[str, Any]]) -> str | None:
    """An expression that names a combination by its values; None where they are no texts and numbers, or not unique."""
    names = list(items[0])
    rows = [tuple(item.get(name) for name in names) for item in items]
    plain = all(isinstance(value, str | int | float) and not isinstance(value, bool) for row in rows for value in row)
    if not plain or any(list(item) != names for item in items) or len({str(row) for row in rows}) < len(rows):
        return None
    parts = [Call("to_string", (Path("@", (name,)),)) for name in names]
    key = parts[0] if len(parts) == 1 else Call("join", (Const("-"), Listed(tuple(parts))))
    return jmespath_of(key, rooted=False)


def _fits(item: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(item.get(name) == value for name, value in wanted.items())


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
