"""What a plan and its children tell each other about the place of the files that they share.

Only the outermost plan moves the files. It asks its children first: what a child has counted as done until it answers
is in the checkpoint that is restored, and what ends at the old place later counts as not done.
"""

from __future__ import annotations

from pydantic import Field

from plansurvive.plans.hosts.host import Checkpoint, Host
from plansurvive.plans.model import Value

TOKEN = 100
"""Most characters of a token."""


class PlaceNews(Value):
    """The signal `place`, of a plan to its agent or child plan: leave the place, or work there from now on."""

    leave: str = Field(default="", max_length=TOKEN, description="Token of the place to leave; to be answered.")
    host: Host | None = Field(default=None, description="Where the files are now; the same again if that host lives.")
    code: str = Field(default="", max_length=200, description="The files could not be moved: why, as a code,")
    error: str = Field(default="", max_length=4_000, description="and as a sentence.")


class PlaceReport(Value):
    """The signal `place_report`, of an agent or child plan to its plan."""

    child: str = Field(max_length=1_000, description="Its workflow id.")
    lost: str = Field(default="", max_length=TOKEN, description="Token of a place where no worker takes its steps.")
    left: str = Field(default="", max_length=TOKEN, description="Token of the place that it has left.")
    checkpoint: Checkpoint | None = Field(default=None, description="The newest that one of its steps has left.")
