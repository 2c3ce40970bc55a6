"""The seam of `ask_llm`: requests without messages, which a feature composes from its part of them.

class Composer(composing.Composer):
    async def composed(self, request, site):
        return Talk(request.model_copy(update={"messages": ...}), ...)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from plansurvive.plans.llm.request import LlmAnswer, LlmRequest
from plansurvive.plans.model import ToolSpec, Value
from plansurvive.runtime.value_store import ValueStore


class Composed:
    """A request with its messages, and what follows from its answer; here nothing does. A feature overrides it."""

    def __init__(self, request: LlmRequest) -> None:
        self.request = request

    def shorter(self) -> Composed | None:
        """The request again, with fewer words and a key of its own: the endpoint refused it as too long.

        None: it cannot be shortened. Called in a thread.
        """
        return None

    def judged(self, answer: LlmAnswer, value: Value) -> LlmAnswer:  # noqa: ARG002
        """The answer with what else there is to say about its value, which is of the expected kind. In a thread."""
        return answer

    async def answered(self, answer: LlmAnswer, text: str) -> LlmAnswer:  # noqa: ARG002
        """The judged answer with what its next request needs. `text`: as it was received."""
        return answer

    async def failed(self, code: str) -> dict[str, Any]:  # noqa: ARG002
        """Details of a failure with this code, after the last attempt: what its next request needs."""
        return {}


class Site(NamedTuple):
    """What a worker composes with."""

    values: ValueStore
    tools: Mapping[str, ToolSpec]
    context_tokens: int
    """The model's context window, in tokens."""


class Composer:
    """Composes the requests that have a feature's part."""

    feature: ClassVar[str]

    async def composed(self, request: LlmRequest, site: Site) -> Composed:
        """The request with its messages and what it expects. Raises LlmError, and ToolError of the value store."""
        raise NotImplementedError
