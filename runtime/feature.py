"""The seams of what processes of ours run on: worker, commands, page. What a feature puts between them and the world.

The sides are modules of a feature's folder, loaded when they are asked for (`runtime.sides`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from plansurvive.runtime.sides import sides

if TYPE_CHECKING:  # `plan --help` loads none of them
    from temporalio.client import Client, Interceptor

    from plansurvive.runtime.sealing import Sealing
    from plansurvive.runtime.settings import Settings


def sealing_of(settings: Settings) -> Sealing:
    """How a process with these settings encrypts: as the first feature says that does. Raises SettingError."""
    from plansurvive.runtime.sealing import UNSEALED

    return next((side.sealing(settings) for side in sides("sealing")), UNSEALED)


def interceptors_of(settings: Settings) -> list[Interceptor]:
    """The interceptors of a client, which its workers take over. Raises SettingError."""
    return [each for side in sides("connection") for each in side.interceptors(settings)]


def variables_of_worker(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that features read besides settings: a background worker that runs with others is replaced."""
    return {name: text for side in sides("connection") for name, text in side.variables(settings, environ).items()}


def sends_to_each(client: Client) -> bool:
    """Whether what a client sends is good for one workflow only, so that a plan cannot pass it on to those below it."""
    return any(getattr(each, "per_workflow", False) for each in client.config()["interceptors"])
