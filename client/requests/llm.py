"""Whether the LLM can be asked at all, before anything is started for it."""

from __future__ import annotations

from temporalio.client import Client

from plansurvive.client.rpc import describe
from plansurvive.plans.errors import PlanError
from plansurvive.plans.llm.endpoint import is_loopback
from plansurvive.runtime.settings import Settings


def require_llm(settings: Settings, *, own_worker: bool) -> None:
    """Refuse what needs an LLM where none can be asked. Raises PlanError with the code that the worker would give.

    `own_worker`: the worker was started by this machine's command line, with these settings; another one has its own.
    """
    if not own_worker:
        return
    if settings.openai_api_key is None and not is_loopback(settings.openai_base_url):
        text = "no LLM can be asked, so nothing was started: set OPENAI_API_KEY, or OPENAI_BASE_URL to an endpoint on"
        raise PlanError(f"{text} this machine, which needs no key", "LLM_NO_KEY")
    if not settings.model:
        raise PlanError("no LLM can be asked, so nothing was started: set PLANS_MODEL to a model's name", "LLM_MODEL")


async def require_llm_of(client: Client, plan: str, settings: Settings, *, own_worker: bool) -> None:
    """The same for a plan that exists: its own worker asks, which is another one if it has another task queue.

    Raises PlanNotFound, too.
    """
    if own_worker and (await describe(client, plan)).task_queue == settings.task_queue:
        require_llm(settings, own_worker=True)
