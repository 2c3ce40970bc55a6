"""A module of a feature that has the name of a side is one: it defines what those who load that side use of it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from plansurvive import features
from plansurvive.activities.feature import InProcess, InWorker
from plansurvive.activities.llm.composing import Composer
from plansurvive.client import apps
from plansurvive.features import FEATURES, sides
from plansurvive.plans.definition.language import Language
from plansurvive.plans.in_views import InViews
from plansurvive.plans.llm.answers import AnswerKind
from plansurvive.plans.run.feature import Rules
from plansurvive.runtime.feature_settings import FeatureSettings
from plansurvive.runtime.plan_files.library import Library
from plansurvive.runtime.unused import Leftovers, Records, Unused
from plansurvive.workflows.admission import Admission
from plansurvive.workflows.feature import InRun
from scripts.shape import OURS, Module, read_modules
from tests.test_imports import ROOT, last_name

Check = Callable[[Any, str], bool]
"""Whether what a side of a feature defines is what it must be. Arguments: that, and the feature's name."""


def a(kind: type) -> Check:
    return lambda given, _: isinstance(given, kind)


def subclass(kind: type, *, named: bool = True) -> Check:
    """`named`: it has the name of its feature."""

    def is_one(given: Any, feature: str) -> bool:
        return (
            isinstance(given, type)
            and issubclass(given, kind)
            and (not named or getattr(given, "feature", "") == feature)
        )

    return is_one


def function(*arguments: str, is_async: bool = False, **options: object) -> Check:
    """A function that can be called with so many arguments, and with these options."""

    def is_one(given: Any, _: str) -> bool:
        inspect.signature(given).bind(*arguments, **options)
        return inspect.iscoroutinefunction(given) == is_async

    return is_one


def in_run(given: Any, feature: str) -> bool:
    return given is None or subclass(InRun)(given, feature)


def workflow_types(given: Any, _: str) -> bool:
    return isinstance(given, tuple) and all(hasattr(each, "__temporal_workflow_definition") for each in given)


def answer_kinds(given: Any, _: str) -> bool:
    return isinstance(given, tuple) and all(isinstance(each, AnswerKind) for each in given)


def composer(given: Any, feature: str) -> bool:
    return given is None or (isinstance(given, Composer) and given.feature == feature)


SIDES: dict[str, dict[str, Check]] = {
    "rules": {"RULES": lambda given, feature: isinstance(given, Rules) and given.name == feature},
    "in_views": {"IN_VIEWS": lambda given, feature: isinstance(given, InViews) and given.name == feature},
    "language": {"LANGUAGE": a(Language)},
    "in_workflow": {"IN_RUN": in_run, "WORKFLOWS": workflow_types},
    "in_admission": {"ADMISSION": subclass(Admission, named=False)},
    "settings": {"SETTINGS": subclass(FeatureSettings)},
    "check": {"problems": function("plan", settings="settings")},
    "hints": {"hints": function("plan", "tools")},
    "content": {"content": function("plan", "tools", "workspace", "state_dir")},
    "tool_specs": {"described": function("settings")},
    "in_worker": {"IN_WORKER": subclass(InWorker)},
    "in_requests": {"ANSWERS": answer_kinds, "COMPOSER": composer},
    "in_process": {"IN_PROCESS": subclass(InProcess)},
    "connection": {"interceptors": function("settings"), "variables": function("settings", "environ")},
    "sealing": {"sealing": function("settings")},
    "masked": {"masked": function("settings", "environ")},
    "tools": {"specs": function("settings"), "refresh": function("s", "data", is_async=True, everything=True)},
    "verbs": {},
    "commands": {},
    "upkeep": {"UNUSED": a(Unused)},
    "leftovers": {"LEFTOVERS": a(Leftovers)},
    "removal": {"RECORDS": a(Records)},
    "library": {"LIBRARY": a(Library)},
    "remarks": {"remarks": function("result")},
    "dry_run": {"show": function("request", as_json=True)},
    "foresight": {"foresight": function("site")},
    "author": {"author": function("settings", "given")},
    "starting": {"choice": function("given")},
    "restored": {"restored_files": function("client", "run", is_async=True)},
    "changed": {"changed_files": function("client", "run", "queue", "seen", is_async=True)},
    "resuming": {"next_run": function("state", "how"), "id_like": function("child", "plan", "step")},
    "filters": {"kept": function("given")},
    "doctor": {"findings": function("settings", "environ")},
    "doctor_of_server": {"findings": function("settings", "connection", is_async=True)},
    "pages": {"routes": a(Sequence)},
}
"""By side, what its module defines."""
ASKING = ("sides", "sides.sides", "sides.left_out", "apps.sides")
"""Functions that load the modules of a side."""
LAST_NAMES = {name.rpartition(".")[2] for name in ASKING}


def lacks(side: str, module: ModuleType) -> list[str]:
    """What is wrong with a module as this side of its feature."""
    feature = module.__name__.split(".")[-2]
    return [
        f"{module.__name__}.{name}"
        for name, holds in SIDES[side].items()
        if not hasattr(module, name) or not holds(getattr(module, name), feature)
    ]


@pytest.mark.parametrize("side", SIDES)
def test_each_side_of_a_feature_or_an_app_defines_what_is_asked_of_it(side: str) -> None:
    modules = [*sides(side), *(apps.sides(side) if side in ("pages", "doctor", "doctor_of_server") else ())]
    assert modules
    assert [wrong for module in modules for wrong in lacks(side, module)] == []


def test_a_module_that_is_no_such_side_is_seen() -> None:
    made = ModuleType("plansurvive.features.locks.rules")
    assert lacks("rules", made) == ["plansurvive.features.locks.rules.RULES"]
    made.__dict__["RULES"] = Rules("lock")
    assert lacks("rules", made) == ["plansurvive.features.locks.rules.RULES"]
    made.__dict__["RULES"] = Rules("locks")
    assert lacks("rules", made) == []
    made.__dict__["IN_WORKER"] = InWorker
    assert lacks("in_worker", made) == ["plansurvive.features.locks.rules.IN_WORKER"]


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    """Every module of the package, parsed once for this file."""
    return read_modules(ROOT)


def test_the_sides_are_those_that_are_asked_for_and_that_the_package_describes(modules: list[Module]) -> None:
    described = re.findall(r"^- `(\w+)`", features.__doc__ or "", re.MULTILINE)
    assert [*SIDES] == described
    asked = {
        node.args[0].value
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
        and last_name(node.func) in LAST_NAMES and ast.unparse(node.func) in ASKING
    }  # fmt: skip
    assert asked == {*SIDES} - {"commands", "verbs"}, "those are loaded by tables of commands, and imported"


def test_the_api_of_scripts_has_the_verbs_of_each_feature(modules: list[Module]) -> None:
    [api] = [module for module in modules if module.name == "client.runs.__init__"]
    verbs = [side.__name__.removeprefix(OURS) for side in sides("verbs")]
    assert [name for name in verbs if name not in api.imports] == []


def test_each_module_of_a_feature_is_a_side_or_used_by_one(modules: list[Module]) -> None:
    """A side with a misspelt name would never be loaded."""
    used = {name for module in modules for name in module.named}
    named = {place.partition(":")[0] for each in FEATURES for place, _ in package(each).COMMANDS.values()}
    unused = [
        module.name
        for module in modules
        if module.name.startswith("features.") and module.name.count(".") > 1 and not module.base.startswith("__")
        and module.name not in used and module.base not in {*SIDES, *named}
    ]  # fmt: skip
    assert unused == []


def package(name: str) -> Any:
    return import_module(f"plansurvive.features.{name}")
