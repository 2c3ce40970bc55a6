"""The seams of the client: what a feature adds to the command line, `plan check` and the page.

The sides are modules of a feature's folder, loaded when they are asked for, so that no command pays for the features of
others (`runtime.sides`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from plansurvive.runtime.sides import packages, sides

if TYPE_CHECKING:  # `plan --help` loads neither
    from pathlib import Path

    from temporalio.client import Client

    from plansurvive.plans.definition.language import Language
    from plansurvive.plans.in_views import ViewSet
    from plansurvive.plans.model import Plan, Problem, ToolSpec
    from plansurvive.plans.model.parts import Part
    from plansurvive.plans.run import Run
    from plansurvive.plans.run.feature import RuleSet
    from plansurvive.plans.views.models import ResultView
    from plansurvive.runtime.plan_files.library import Library
    from plansurvive.runtime.settings import Settings


Choice: TypeAlias = "Callable[[Client | None, str, Callable[[str], None]], Awaitable[Part | None]]"
"""Makes a part of a run's options of what was given. Its arguments: the client of the plan's server, or None
without one; the plan's title; a function that prints a remark. Raises PlanError."""


def specs_of(settings: Settings) -> dict[str, ToolSpec]:
    """The tools that features add to those of this machine, as last seen. Raises SettingError."""
    return {name: spec for side in sides("tools") for name, spec in side.specs(settings).items()}


async def refresh_tools(settings: Settings, data: Any = None, *, everything: bool = False) -> list[str]:
    """Ask for the tools of features that were not asked for lately; of a plan's data, only for those that it names.

    `everything`: ask for all. Returns sentences about those that could not be had. Raises SettingError.
    """
    return [text for side in sides("tools") for text in await side.refresh(settings, data, everything=everything)]


def rules_of_features() -> RuleSet:
    """The pure sides of all features, for what a client starts."""
    from plansurvive.plans.run.feature import RuleSet

    return RuleSet([side.RULES for side in sides("rules")])


@cache
def views_of_features() -> ViewSet:
    """What all features add to views."""
    from plansurvive.plans.in_views import ViewSet

    return ViewSet([side.IN_VIEWS for side in sides("in_views")])


def read_run(state: Any) -> Run:
    """The Run of JSON data or text, as all features extend its language and its views.

    Clients read every Run with this one, to show it as a worker does. Raises pydantic's ValidationError.
    """
    from plansurvive.plans.run import run_of

    return run_of(state, language(), views_of_features())


def choices_of(given: Mapping[str, Any]) -> list[Choice]:
    """What features make of their options of a command that starts a plan. Raises PlanError BAD_USAGE."""
    found = [side.choice(given) for side in sides("starting")] if given else []
    return [each for each in found if each is not None]


def problems_of(plan: Plan, settings: Settings) -> list[Problem]:
    """What of a plan does not fit the settings of this machine, as the features say. Raises SettingError."""
    return [problem for side in sides("check") for problem in side.problems(plan, settings)]


def hints_of(plan: Plan, tools: Mapping[str, ToolSpec]) -> list[Problem]:
    """What `plan check` suggests, as the features say: warnings about a plan that may run as it is."""
    return [problem for side in sides("hints") for problem in side.hints(plan, tools)]


class Content(NamedTuple):
    """What a plan names and a step reads when it starts, as this machine has it now."""

    problems: list[Problem]
    part: Part
    """What a plan that is started now is told about it, as a part of its options."""


def content_of(
    plan: Plan, tools: Mapping[str, ToolSpec], workspace: Path, state_dir: Path | None
) -> tuple[list[Problem], dict[str, Part]]:
    """The problems of what a plan names, as the features read it, and the parts of its options.

    Example: `children` checks the plan files that steps run.
    """
    found = [side.content(plan, tools, workspace, state_dir) for side in sides("content")]
    problems = [problem for each in found for problem in each.problems]
    return problems, {each.part.feature: each.part for each in found}


def library() -> Library:
    """The plans that are kept under names."""
    from plansurvive.runtime.plan_files.library import Library

    found: Library = next((side.LIBRARY for side in sides("library")), Library())
    return found


@cache
def language() -> Language:
    """The language of plans, as all features extend it."""
    from plansurvive.plans.definition.language import Language

    return Language.of(side.LANGUAGE for side in sides("language"))


def is_of_workers(problem: Problem) -> bool:
    """Whether it is about what this machine does not know and workers may: they check the plan before it starts."""
    return problem.code == "UNKNOWN_TOOL" or any(problem.code == word.unknown for word in language().words)


def remarks_of(result: ResultView) -> list[str]:
    """Sentences of the features about the result of a step. Example: `cache` says why its tool was called."""
    return [sentence for side in sides("remarks") for sentence in side.remarks(result)]


def options_of_features(command: str) -> dict[str, tuple[str, str]]:
    """The options that features add to a command: name -> (metavar, sentence). Data of their packages alone."""
    return {name: data for each in packages() for name, data in getattr(each, "OPTIONS", {}).get(command, {}).items()}


def listed_of_features() -> dict[str, tuple[str, str]]:
    """Command of a feature -> (its group in `plan --help`, the command that it stands behind)."""
    return {name: place for each in packages() for name, place in getattr(each, "LISTED", {}).items()}


def commands_of_features() -> dict[str, tuple[str, str]]:
    """The command table of the features: name -> (`module:function`, sentence). Data of their packages alone.

    `GROUP COMMAND` is a command of a group.
    """
    return {
        name: (f"{package.__name__}.{place}", text)
        for package in packages()
        for name, (place, text) in package.COMMANDS.items()
    }
