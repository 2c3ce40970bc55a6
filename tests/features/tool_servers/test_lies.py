"""A tool server that lies: names and descriptions that pretend, answers to what was not asked, twice, or of no form."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from plansurvive.features.tool_servers.listed_tools import Terms, listing_of
from tests.features.tool_servers.serving import Serving, raw

NAME = re.compile(r"x\.[A-Za-z0-9_.-]{1,200}")


async def test_names_that_pretend_are_left_out_and_no_hint_waives_an_approval(serving: Serving) -> None:
    async with serving.servers(raw("--lying")) as servers:
        listed = await servers.list_tools("x")
    given = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]
    found = listing_of("x", given, datetime.now(UTC), terms=Terms())
    assert {"x.echo", "x.run_command", "x.told"} <= set(found.by_name)
    assert [name for name in found.by_name if not NAME.fullmatch(name)] == []
    assert all(each.approval == "always" for each in found.by_name.values()), "a server's own word waives nothing"
    assert len(found.by_name["x.told"].description) < 20_000


async def test_answers_to_what_was_not_asked_are_nobodys(serving: Serving) -> None:
    async with serving.servers(raw()) as servers:
        for tool, own in (("twice", "first"), ("ahead", "own")):
            assert await serving.call(servers, tool) == own
            for number in range(3):
                assert await serving.call(servers, "echo", n=number) == {"n": number}, tool


async def test_an_answer_of_no_form_fails_its_call_and_no_other(serving: Serving) -> None:
    async with serving.servers(raw()) as servers:
        assert (await serving.error(servers, "unlike")).code.startswith(("MCP_", "OUTCOME_"))
        assert await serving.call(servers, "echo", a=1) == {"a": 1}
