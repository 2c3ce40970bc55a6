"""What the program of a tool server sees and may do on this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from plansurvive.features.tool_servers.program import order_of
from plansurvive.plans.errors import ToolError
from tests.features.tool_servers.serving import Serving, raw, sandbox
from tests.nightly import only_nightly


@pytest.fixture
def confined(serving: Serving) -> Serving:
    """A place on a machine with a sandbox."""
    if sandbox(serving.place / "state").level == "none":
        pytest.skip("there is no sandbox here")
    return serving


@pytest.mark.slow
async def test_a_program_writes_where_it_was_allowed_and_not_to_protected_files(confined: Serving) -> None:
    git = confined.workspace / ".git"
    git.mkdir()
    (git / "config").write_text("[core]\n")
    paths = [str(confined.workspace), str(git / "config"), str(confined.place / "state"), str(Path.home())]
    async with confined.servers(raw(workspace="write")) as servers:
        seen = await confined.call(servers, "look", paths=paths)
    assert seen["writable"][paths[0]]
    assert not any(Path(path, ".written").exists() for path in paths[2:])  # it may write to what it sees in their place
    if sandbox(confined.place / "state").level == "bwrap":
        assert not seen["writable"][paths[1]]
    assert seen["env"]["HOME"] != str(confined.workspace)


async def test_a_program_gets_no_variable_of_the_worker_that_mcp_toml_does_not_name(confined: Serving) -> None:
    place = Serving(confined.place, {"OPENAI_API_KEY": "sk-not-for-servers", "WANTED": "yes"})
    async with place.servers(raw(env={"GIVEN": "env:WANTED"})) as servers:
        seen = await place.call(servers, "look", paths=[])
    assert set(seen["env"]) <= {"GIVEN", "PATH", "LANG", "HOME", "TERM", "TMPDIR", "TZ", "PWD", "LC_CTYPE", "LC_ALL"}
    assert seen["env"]["GIVEN"] == "yes"


@pytest.mark.parametrize("network", [False, only_nightly(True)])
async def test_a_program_has_the_network_only_if_mcp_toml_says_so(confined: Serving, network: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with confined.servers(raw(network=network)) as servers:
            found = await confined.call(servers, "connects", port=listening.getsockname()[1])
    assert found["connects"] is network


def test_nothing_of_a_server_is_on_a_command_line_but_its_own(serving: Serving) -> None:
    place = Serving(serving.place, {"TOKEN": "not-on-a-command-line"})
    order = order_of("x", raw(env={"GIVEN": "env:TOKEN"}), "", place.site())
    assert order.env["GIVEN"] == "not-on-a-command-line"
    assert "not-on-a-command-line" not in " ".join([*order.command, *order.bwrap])


def test_the_workspace_stands_in_arguments_where_it_is_named(serving: Serving) -> None:
    server = raw("--root={workspace}", workspace="read")
    assert order_of("x", server, str(serving.workspace), serving.site()).command[-1] == f"--root={serving.workspace}"


def test_network_that_the_worker_forbids_is_refused_with_the_way_out(confined: Serving) -> None:
    from dataclasses import replace

    site = confined.site()
    site = replace(site, sandbox=replace(site.sandbox, network="off"))
    with pytest.raises(ToolError, match="PLANS_SANDBOX_NETWORK=off; change one of them"):
        order_of("x", raw(network=True), "", site)
