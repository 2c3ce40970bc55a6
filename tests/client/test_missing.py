"""Of a plan that is not there, every app says where it was looked for, as far as it can."""

from __future__ import annotations

from temporalio.client import Client

from plansurvive.client.errors import PlanExists, PlanNotFound, Sought
from plansurvive.client.missing import completed, in_namespace
from plansurvive.runtime.errors import NotConnected

MISSED = PlanNotFound(Sought("there is no plan 'x'", "`plan list` shows the plans", "x"))


async def test_in_another_namespace_than_the_usual_that_is_named(temporal_client: Client) -> None:
    config = temporal_client.config()
    config["namespace"] = "elsewhere"
    other = Client(**config)
    said = "there is no plan 'x' in the namespace 'elsewhere' of this server; `plan list` shows the plans"
    assert (await completed(other, MISSED)).message == said
    assert not in_namespace(temporal_client)
    assert MISSED.message == "there is no plan 'x' on this server; `plan list` shows the plans"


async def test_without_a_connection_and_about_anything_else_the_error_stays() -> None:
    async def away() -> Client:
        raise NotConnected("no server")

    for error in (MISSED, PlanNotFound("neither the server nor /state has a record"), PlanExists("it is there")):
        assert await completed(away, error) is error
