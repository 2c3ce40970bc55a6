"""Who may set a field of a step, and where it is used: the marker on each field of `plans.model.Step`.

Every list of step fields in the code is derived from these markers with `names` and `aliases`, so that a new field is
described once, in the model. They are not part of the JSON Schema. The fields of a plan have `plans.model.plan.OfPlan`.

Markers in `Annotated`, not `json_schema_extra`: they do not reach the published JSON Schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, StrEnum, auto

from pydantic import BaseModel


class Llm(StrEnum):
    """How a field that the LLM is not asked for is treated if its answer has it all the same."""

    MAY = "may"
    """Accepted; where the answer omits it, a revised step retains what people set."""
    NEVER = "never"
    """Removed from the answer, with a remark; a revised step retains what people set."""


@dataclass(frozen=True)
class Asked:
    """The LLM is asked for the field: an answer sets it, also by omitting it."""

    place: int
    """Its position in the answer. The order matters: what the LLM writes first guides what it writes next."""
    example: str
    """Its value in the prompt's example, as JSON."""
    about: str = ""
    """Its description in the schema of the answer."""


@dataclass(frozen=True)
class Offered:
    """The LLM may use the field, and the schema of its answer has it as text: an expression, or JSON."""

    about: str
    """Its description in that schema; also says how it is written."""
    of_blocks: bool = False
    """Whether only a step without a tool has it."""
    resets: bool = True
    """An answer sets the field, also by omitting it; false: one that omits it retains what people set."""


class On(Flag):
    """Where a field of a step is used."""

    NOTHING = 0
    EDIT = auto()
    """A person may change it before the step begins (update `edit`); its changes are in the change log."""
    RERUN = auto()
    """`plan rerun` may replace it."""
    APPROVAL = auto()
    """An approval covers it: after a change the step needs approval again."""
    FORM = auto()
    """The form of the review screen has a field for it."""
    DETAILS = auto()
    """The review screen lists it under the step, by name, if it is set."""


@dataclass(frozen=True)
class Use:
    """The marker of one field. Nothing has a default, so that a new field must answer every question."""

    on: On
    llm: Asked | Offered | Llm


def use_of(model: type[BaseModel], name: str) -> Use:
    """The marker of a field. Raises TypeError when the field has none, or several."""
    found = [each for each in model.model_fields[name].metadata if isinstance(each, Use)]
    if len(found) != 1:
        raise TypeError(f"field '{name}' of {model.__name__} needs one marker `Use`, it has {len(found)}")
    return found[0]


def names(model: type[BaseModel], chosen: On | Llm | type[Asked] | type[Offered]) -> tuple[str, ...]:
    """The Python names of the fields with this mark, in the order of the model."""
    return tuple(name for name in model.model_fields if _is(use_of(model, name), chosen))


def aliases(model: type[BaseModel], chosen: On | Llm | type[Asked] | type[Offered]) -> tuple[str, ...]:
    """The JSON names of the fields with this mark, in the order of the model."""
    return tuple(model.model_fields[name].alias or name for name in names(model, chosen))


def asked(model: type[BaseModel]) -> dict[str, Asked]:
    """The fields the LLM is asked for, by JSON name, in the order of its answer."""
    found = {model.model_fields[name].alias or name: use_of(model, name).llm for name in model.model_fields}
    answer = [(alias, llm) for alias, llm in found.items() if isinstance(llm, Asked)]
    return dict(sorted(answer, key=lambda item: item[1].place))


def offered(model: type[BaseModel]) -> dict[str, Offered]:
    """The fields that the LLM may use, by JSON name."""
    found = {model.model_fields[name].alias or name: use_of(model, name).llm for name in model.model_fields}
    return {alias: llm for alias, llm in found.items() if isinstance(llm, Offered)}


def _is(use: Use, chosen: On | Llm | type[Asked] | type[Offered]) -> bool:
    if isinstance(chosen, On):
        return chosen in use.on
    return use.llm is chosen if isinstance(chosen, Llm) else isinstance(use.llm, chosen)
