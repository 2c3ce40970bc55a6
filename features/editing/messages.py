"""The message that edits a plan: the update `edit`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.signature import Signature

MAX_BYTES = 262_144
"""Maximum size of the message, in bytes of JSON."""


class EditPlan(Edits):
    """Edit a plan that is open."""

    EXAMPLE: ClassVar[str] = '{"edits": [{"op": "set", "stepId": "step_1", "path": "args.path", "value": "b.txt"}]}'

    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")
