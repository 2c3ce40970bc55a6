"""Which server a client connects to, and what it says when there is none."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from plansurvive.runtime.connect import Connection, Origin, connect, reach
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.server import Server, workflow_link
from plansurvive.runtime.settings import SettingError, Settings


def settings(tmp_path: Path, **variables: str) -> Settings:
    return Settings.read({"HOME": str(tmp_path), **variables})


async def test_the_address_given_is_used_and_the_client_says_who_it_is(tmp_path: Path, server: Server) -> None:
    client = await connect(settings(tmp_path, TEMPORAL_ADDRESS=server.address))
    assert client.identity.endswith(f"@{socket.gethostname()}")
    assert client.namespace == "default"


async def test_a_profile_leads_to_its_server(tmp_path: Path, server: Server) -> None:
    file = tmp_path / "temporal.toml"
    file.write_text(f'[profile.here]\naddress = "{server.address}"\nnamespace = "default"\n')
    found = await reach(settings(tmp_path, TEMPORAL_CONFIG_FILE=str(file), TEMPORAL_PROFILE="here"))
    assert (found.address, found.origin, found.is_on_this_machine) == (server.address, Origin.CONFIGURED, True)


async def test_a_default_profile_with_an_address_counts(tmp_path: Path, server: Server) -> None:
    file = tmp_path / "temporal.toml"
    file.write_text(f'[profile.default]\naddress = "{server.address}"\n')
    assert (await reach(settings(tmp_path, TEMPORAL_CONFIG_FILE=str(file)))).address == server.address


async def test_a_server_that_is_down_is_named_with_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as deaf:  # the port is taken, so that nobody else listens there
        deaf.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(NotConnected, match=f"{address}.*connection refused.*TEMPORAL_ADDRESS") as caught:
            await connect(settings(tmp_path, TEMPORAL_ADDRESS=address))
    assert caught.value.code == "NOT_CONNECTED"


@pytest.mark.slow
async def test_a_server_that_never_answers_is_given_up_after_ten_seconds(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NotConnected, match=f"{address}: no answer within 10 s"):
            await connect(settings(tmp_path, TEMPORAL_ADDRESS=address))


async def test_a_namespace_that_does_not_exist_is_named_with_what_to_do(tmp_path: Path, server: Server) -> None:
    with pytest.raises(NotConnected, match=r"no namespace 'nowhere'.*namespace create"):
        await connect(settings(tmp_path, TEMPORAL_ADDRESS=server.address, TEMPORAL_NAMESPACE="nowhere"))


@pytest.mark.parametrize("address", ["x", "h:0", "h:70000", "h:x", ":7233", "h:²"])
async def test_an_address_without_a_real_port_is_refused_by_name(tmp_path: Path, address: str) -> None:
    with pytest.raises(SettingError) as caught:
        await connect(settings(tmp_path, TEMPORAL_ADDRESS=address))
    assert caught.value.code == "BAD_SETTING:TEMPORAL_ADDRESS"


async def test_an_unknown_profile_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        await connect(settings(tmp_path, TEMPORAL_PROFILE="nobody"))
    assert caught.value.code == "BAD_SETTING:TEMPORAL_PROFILE"


async def test_a_link_needs_a_known_ui(tmp_path: Path, server: Server) -> None:
    found = await reach(settings(tmp_path, TEMPORAL_ADDRESS=server.address))
    known = Connection(found.client, found.address, found.origin, server.ui)
    assert known.workflow_link("plan-x") == workflow_link(server.ui, "default", "plan-x")
    assert Connection(found.client, "cloud:7233", found.origin).workflow_link("plan-x") is None
