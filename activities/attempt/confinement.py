"""What a worker with these settings does with commands, and what it keeps for undoing: shared by worker and doctor."""

from __future__ import annotations

from pydantic import SecretStr

from activities.attempt.environment import ToolEnvironment
from activities.attempt.redaction import Secrets
from activities.provenance.watcher import Watcher
from activities.sandbox.sandbox import Limits, Sandbox, choose
from activities.workspace.effect_log import Effects
from runtime.settings import Settings

MEBIBYTE = 1024 * 1024


def sandbox_of(settings: Settings) -> Sandbox:
    """The sandbox for commands."""
    limits = Limits(
        cpu=settings.limit_cpu,
        file=settings.limit_file_mb and settings.limit_file_mb * MEBIBYTE,
        memory=settings.limit_memory_mb and settings.limit_memory_mb * MEBIBYTE,
        open_files=settings.limit_open_files,
        processes=settings.limit_processes,
        free=settings.limit_free_mb and settings.limit_free_mb * MEBIBYTE,
    )
    return choose(
        settings.sandbox,
        network=settings.sandbox_network,
        limits=limits,
        state=settings.state_dir,
        readable=settings.sandbox_read,
    )


def environment_of(settings: Settings, effects: Effects) -> ToolEnvironment:
    """What the worker's tools are given."""
    effects.preimages.max_total = settings.undo_mb * MEBIBYTE
    token = settings.temporal.get("TEMPORAL_API_KEY")
    secrets = Secrets([settings.openai_api_key, SecretStr(token) if token else None])
    return ToolEnvironment(sandbox_of(settings), Watcher(settings.state_dir, settings.undo), secrets)
