"""Evaluates JMESPath with a budget: every visited node and every element or text it works on costs units.

JMESPath has no loops, but `[@,@]|[@,@]|...` doubles a value with each pipe, and a value that shares its parts is small
in memory while its text, its comparison and its copy are of exponential size. So sizes are counted as if nothing were
shared, before the work is done, and in units instead of time: a replay must reach the same verdict.

A budget of operations and not of time, as a replay must reach the same verdict; a million are a tenth to half a second
of the ten that a workflow task has. Rejected: an activity per condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jmespath.exceptions import JMESPathTypeError
from jmespath.functions import Functions
from jmespath.visitor import Options, TreeInterpreter

from plansurvive.plans.errors import BadExpression, BadReference

UNITS = 1_000_000
"""Budget of a condition, and of all references of one step: under half a second of the two that a workflow task has."""
UNITS_IN_ACTIVITY = 10_000_000
"""Budget where values too large for history are filled in: 64 MiB with a million rows can be searched."""
MAX_ARGS_CHARACTERS = 16_000_000
"""Maximum size of a step's arguments with references filled in: a small plan can multiply values without bound."""
MAX_CHARACTERS_IN_ACTIVITY = 200_000_000
"""The same where values too large for history are filled in: three times the largest value."""
TEXT_PER_UNIT = 16
"""Characters handled for one unit."""
MAX_RESULT_DEPTH = 200
"""Deepest value that an expression may make; writing it as JSON is recursive."""
TOO_COSTLY = "EXPRESSION_TOO_COSTLY"
_SHOWN = 500
"""Units of a value that an error message may show."""
COMPARED_PER_UNIT = 1_000
"""Characters of two texts compared for one unit."""
_AT_ONCE = frozenset(("abs", "ceil", "floor", "length", "not_null", "to_array", "type"))
"""Functions whose time does not depend on the size of their arguments."""
_SORTING = frozenset(("sort", "sort_by"))


class Budget:
    """The units left for one evaluation, or for several that share it."""

    def __init__(self, units: int = UNITS, characters: int = MAX_ARGS_CHARACTERS) -> None:
        self.units, self.left = units, units
        self._unlimited = 0
        self._characters, self._room = characters, characters
        self._sizes: dict[int, tuple[Any, int]] = {}  # with the values, so that no other object gets their id

    @property
    def spent(self) -> int:
        """The units spent and counted so far."""
        return self.units - self.left + self._unlimited

    def count(self, units: int) -> None:
        """Count work that has limits of its own, and takes nothing off the budget."""
        self._unlimited += units

    def spend(self, units: int) -> None:
        """Take units off. Raises BadExpression with the code EXPRESSION_TOO_COSTLY when none are left."""
        self.left -= units
        if self.left < 0:
            raise BadExpression(
                f"evaluating it takes more than {self.units:,} operations;"
                " simplify it, or compute the value in a step (run_python)",
                TOO_COSTLY,
            )

    def place(self, value: Any) -> None:
        """Take the room for a value in arguments: a character for each part of it, and its texts.

        Raises BadReference with the code ARGS_TOO_LARGE when it does not fit: before anything is copied or written.
        """
        if id(value) not in self._sizes:
            self._sizes[id(value)] = value, _characters(value, self._room)
        self._room -= self._sizes[id(value)][1]
        if self._room < 0:
            text = f"the arguments are longer than {self._characters} characters; pass the data in a file"
            raise BadReference(text, "ARGS_TOO_LARGE")

    def size(self, value: Any) -> None:
        """Spend a value's size: a unit for each part of it, shared ones as often as they occur, and for 16 characters.

        Raises BadExpression when it is larger than what is left, or nested deeper than MAX_RESULT_DEPTH.
        """
        level = [value]
        for _ in range(MAX_RESULT_DEPTH):
            inner: list[Any] = []
            for item in level:
                if isinstance(item, list):
                    self.spend(1 + len(item))
                    inner += item
                elif isinstance(item, dict):
                    self.spend(1 + len(item) + sum(map(len, item)) // TEXT_PER_UNIT)
                    inner += item.values()
                else:
                    self.spend(1 + (len(item) // TEXT_PER_UNIT if isinstance(item, str) else 0))
            if not inner:
                return
            level = inner
        raise BadExpression(f"its value is nested deeper than {MAX_RESULT_DEPTH}; select less", TOO_COSTLY)


def _characters(value: Any, enough: int) -> int:
    """The parts of a value and the characters of its texts; counts no further than `enough`."""
    count, pending = 0, [value]
    while pending and count <= enough:
        item = pending.pop()
        count += len(item) if isinstance(item, str) else 1
        if isinstance(item, dict):
            pending += item
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return count


def evaluate(parsed: Any, value: Any, budget: Budget) -> Any:
    """The value of a parsed expression. Raises what jmespath raises, and BadExpression for one that is too costly."""
    try:
        found = _Interpreter(budget).visit(parsed, value)
    except JMESPathTypeError as error:
        raise BadExpression(_type_error(error)) from None  # its own text shows the value whole
    if _makes_copies(parsed):
        budget.size(found)
    return found


class _Interpreter(TreeInterpreter):
    """jmespath's interpreter, which spends a unit per visited node and for what a node makes."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(Options(custom_functions=_Functions(budget)))
        self._budget = budget

    def visit(self, node: Any, value: Any) -> Any:
        self._budget.spend(1)
        return super().visit(node, value)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        left, right = (self.visit(child, value) for child in node["children"])
        if node["value"] in ("eq", "ne") and isinstance(left, list | dict) and isinstance(right, list | dict):
            return _equal(left, right, self._budget) is (node["value"] == "eq")
        if isinstance(left, str) and isinstance(right, str):
            self._budget.spend(min(len(left), len(right)) // COMPARED_PER_UNIT)
        known: Any = node | {"children": [{"type": "literal", "value": operand} for operand in (left, right)]}
        return super().visit_comparator(known, value)

    def visit_flatten(self, node: Any, value: Any) -> Any:
        base = self.visit(node["children"][0], value)
        if not isinstance(base, list):
            return None
        self._budget.spend(sum(len(item) if isinstance(item, list) else 1 for item in base))
        found: list[Any] = []
        for item in base:
            found += item if isinstance(item, list) else [item]
        return found

    def visit_slice(self, node: Any, value: Any) -> Any:
        if isinstance(value, list):
            start, stop, step = node["children"]
            self._budget.spend(len(range(*slice(start, stop, step).indices(len(value)))))
        return super().visit_slice(node, value)


class _Functions(Functions):
    """jmespath's functions, which spend units for the arguments before they use them."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def call_function(self, function_name: str, resolved_args: Any) -> Any:
        if function_name == "contains" and len(resolved_args) == 2 and isinstance(resolved_args[0], list):
            return any(_is(item, resolved_args[1], self._budget) for item in resolved_args[0])
        if function_name == "to_string":
            self._budget.size([argument for argument in resolved_args if not isinstance(argument, str)])
        elif function_name == "join" and len(resolved_args) == 2:
            self._spend_join(*resolved_args)
        elif function_name not in _AT_ONCE:
            rounds = 1
            for argument in resolved_args:
                if function_name in _SORTING and isinstance(argument, list):
                    rounds = len(argument).bit_length()
                self._budget.spend(rounds * _length(argument, function_name in ("max", "min", *_SORTING)))
        return super().call_function(function_name, resolved_args)

    def _spend_join(self, separator: Any, parts: Any) -> None:
        texts: Iterable[Any] = parts if isinstance(parts, list) else ()
        count, between = _length(parts), len(separator) if isinstance(separator, str) else 0
        characters = sum(len(text) + between for text in texts if isinstance(text, str))
        self._budget.spend(count + characters // TEXT_PER_UNIT)


def _length(value: Any, compares: bool = False) -> int:
    """Units for one pass over a value, not into it. `compares`: the texts in it are compared as well."""
    if isinstance(value, str):
        return 1 + len(value) // TEXT_PER_UNIT
    if not isinstance(value, list | dict):
        return 1
    texts = sum(len(text) for text in value if isinstance(text, str)) if compares else 0
    return 1 + len(value) + texts // TEXT_PER_UNIT


def _is(item: Any, wanted: Any, budget: Budget) -> bool:
    """`item is wanted or item == wanted`, as `in` has it."""
    budget.spend(1 + (len(item) // COMPARED_PER_UNIT if isinstance(item, str) else 0))
    if isinstance(item, list | dict) and isinstance(wanted, list | dict):
        return _equal(item, wanted, budget)
    return item is wanted or bool(item == wanted)


def _equal(left: Any, right: Any, budget: Budget) -> bool:
    """Python's equality of lists and dicts, a unit per pair that is compared."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        budget.spend(1 + (len(one) // TEXT_PER_UNIT if isinstance(one, str) else 0))
        if one is other:
            continue
        if isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            budget.spend(len(one))
            pairs.extend(zip(one, other, strict=True))
        elif isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            budget.spend(len(one))
            pairs.extend((one[name], other[name]) for name in one)
        elif one != other:
            return False
    return True


def _makes_copies(parsed: Any) -> bool:
    """Whether a part of the input can occur in the result more than once: only a multi-select does that."""
    pending = [parsed]
    while pending:
        node = pending.pop()
        if node["type"] in ("multi_select_list", "multi_select_dict"):
            return True
        pending += [child for child in node.get("children", []) if isinstance(child, dict)]
    return False


def _type_error(error: JMESPathTypeError) -> str:
    value = "a value"
    try:
        Budget(_SHOWN).size(error.current_value)
        value = f"invalid type for value: {error.current_value}"
    except BadExpression:
        value = "invalid type for a value too large to show"
    expected = ", ".join(f"'{kind}'" for kind in error.expected_types)
    return (
        f'In function {error.function_name}(), {value}, expected one of: [{expected}], received: "{error.actual_type}"'
    )
