"""Where the files of a plan are: a host, a directory there, and the last checkpoint of it in storage.

A host is a machine whose workers have a workspace of their own (PLANS_HOST). The steps of a plan stay with one host, on
a task queue that only its workers poll. When it is lost, another host restores the last checkpoint into a directory of
its own: a `Host` with another token. Nothing is ever restored into a directory that was in use, so a worker that
comes back cannot write into the files of a plan that has moved.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from pydantic import Field

from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part

UNSUPPORTED = "HOST_UNSUPPORTED"
"""Code of a step that cannot run where workers have workspaces of their own."""
MOVED = "OUTCOME_UNKNOWN"
"""Code of a call that must not be repeated, and whose worker was lost with its host."""


class Checkpoint(Value):
    """A plan's files in storage, as they were after a step, with the effects that led to them."""

    claim: dict[str, str] = Field(description="The storage driver's claim.")
    number: int = Field(ge=1, description="A later checkpoint of the same directory has a higher number.")
    token: str = Field(description="The directory it was taken of.")
    files: int = Field(default=0, ge=0, description="Number of files.")
    bytes: int = Field(default=0, ge=0, description="Their size.")


class LeftFiles(Part):
    """Part of what a call returns, or leaves when it fails: the plan's files at its host, after it."""

    feature: ClassVar[str] = "hosts"

    checkpoint: Checkpoint | None = Field(default=None, description="None: the call could not change a file.")


class Host(Value):
    """The host that a plan's steps stay with, and the plan's directory there."""

    name: str = Field(description="PLANS_HOST of its workers.")
    queue: str = Field(description="Task queue that only its workers poll.")
    workspace: str = Field(description="Absolute directory, of this plan alone.")
    directory: DirectoryIdentity | None = Field(default=None, description="Which directory that is.")
    token: str = Field(description="Names the directory: another one is another directory, on whatever host.")
    patience: float = Field(default=30.0, description="Seconds that steps wait for the host before the plan moves.")
    checkpoint: Checkpoint | None = Field(default=None, description="The newest one; none: no step has changed a file.")
    guest: bool = Field(default=False, description="It is the place of the plan above, which alone moves it.")
    left: bool = Field(
        default=False, description="Of a guest: the plan above moves the files; nothing counts here now."
    )

    @property
    def pulse(self) -> str:
        """Task queue on which its workers answer however busy they are."""
        return pulse_of(self.queue)

    @property
    def wait(self) -> timedelta:
        """`patience` as a timedelta."""
        return timedelta(seconds=self.patience)

    def after(self, checkpoint: Checkpoint | None) -> Host:
        """This host with the newer of its checkpoint and another one. One of another directory changes nothing."""
        if checkpoint is None or checkpoint.token != self.token:
            return self
        last = self.checkpoint
        is_older = last is not None and last.token == self.token and last.number >= checkpoint.number
        return self if is_older else self.model_copy(update={"checkpoint": checkpoint})

    def for_child(self) -> Host:
        """The same place, for an agent or a plan that works on a step."""
        return self.model_copy(update={"guest": True, "left": False})


class Placed(Part):
    """Part of a run: where its files are, if workers have a workspace each."""

    feature: ClassVar[str] = "hosts"

    host: Host | None = Field(default=None, description="None: the workers of a queue share a workspace.")


class HostRequest(Value):
    """Input of the activity `take_host`."""

    workflow_id: str
    earlier: Host | None = Field(default=None, description="Where the files were; none: the plan begins.")
    stay: bool = Field(default=False, description="Continue in that directory, if it is still there.")


def queue_of_host(queue: str, host: str) -> str:
    """The task queue of one host, for the plans of a task queue."""
    return f"{queue}@{host}"


def pulse_of(queue: str) -> str:
    """The queue on which the workers of a host's queue answer however busy they are."""
    return f"{queue}.pulse"


def elsewhere(workspace: str) -> str:
    """Why a child plan that names a workspace of its own is refused."""
    return (
        f"the plan names another workspace, {workspace!r}, and its files are at one host (PLANS_HOST), where a"
        " plan has one directory with all that it runs; leave `workspace` out, and name the directory in paths"
    )
