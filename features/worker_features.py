"""Composition: the features of a worker process."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from temporalio.client import Client

from plansurvive.activities.feature import InProcess, WorkerFeatures
from plansurvive.activities.llm.composing import Composer
from plansurvive.activities.tools.tool import no_fault
from plansurvive.activities.values.redaction import Seen
from plansurvive.features import FEATURES, sides
from plansurvive.plans.definition.language import Language
from plansurvive.plans.in_views import ViewSet
from plansurvive.plans.llm.answers import AnswerKind
from plansurvive.runtime.plan_files.library import Library
from plansurvive.runtime.settings import Settings


def features_of_worker(
    client: Client, settings: Settings, fault: Callable[[str], None] = no_fault, names: tuple[str, ...] = FEATURES
) -> WorkerFeatures:
    """The worker sides of the features of these names, made once for a process. Raises SettingError."""
    return WorkerFeatures(
        names=names,
        in_worker=[side.IN_WORKER(client, settings, fault) for side in sides("in_worker", names)],
        unused=[side.UNUSED for side in sides("upkeep", names)],
        records=[side.RECORDS for side in sides("removal", names)],
        leftovers=[side.LEFTOVERS for side in sides("leftovers", names)],
        library=next((side.LIBRARY for side in sides("library", names)), Library()),
        checks=[partial(side.problems, settings=settings) for side in sides("check", names)],
        masked=masked(settings, names),
        language=Language.of(side.LANGUAGE for side in sides("language", names)),
        views=ViewSet([side.IN_VIEWS for side in sides("in_views", names)]),
        answers=answer_kinds(names),
        composers=composers(names),
        rules=[side.RULES for side in sides("rules", names)],
        specs=[side.described(settings) for side in sides("tool_specs", names)],
    )


def answer_kinds(names: tuple[str, ...] = FEATURES) -> dict[str, AnswerKind]:
    """The kinds of answers that the features ask the LLM for, by name."""
    return {kind.name: kind for side in sides("in_requests", names) for kind in side.ANSWERS}


def composers(names: tuple[str, ...] = FEATURES) -> dict[str, Composer]:
    """Who composes requests that have a part of a feature instead of messages, by feature."""
    return {side.COMPOSER.feature: side.COMPOSER for side in sides("in_requests", names) if side.COMPOSER}


def masked(settings: Settings, names: tuple[str, ...] = FEATURES) -> list[Seen]:
    """The secrets that the features know, and no history, view or log may show. Raises SettingError."""
    return [side.masked(settings, os.environ) for side in sides("masked", names)]


def process_features(settings: Settings, child: int | None) -> list[InProcess]:
    """What features do for a worker process as a whole. Raises SettingError."""
    return [side.IN_PROCESS(settings, child, masked(settings)) for side in sides("in_process")]


@asynccontextmanager
async def pool_features(settings: Settings) -> AsyncIterator[None]:
    """In the process that keeps those of a pool, as long as it does. Raises SettingError."""
    async with AsyncExitStack() as opened:
        for side in sides("in_process"):
            await opened.enter_async_context(side.IN_PROCESS.pool(settings))
        yield
