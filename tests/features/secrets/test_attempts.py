"""A secret in a call: the tool gets it, and nothing that leaves the worker has it in any spelling."""

from __future__ import annotations

import base64
import html
import json
import logging
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.network.address_policy import AddressPolicy
from plansurvive.activities.sandbox.sandbox import choose
from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.activities.values.redaction import MASK, LogRedaction, Secrets
from plansurvive.activities.values.spellings import spellings
from plansurvive.features.secrets.arguments import SecretArguments
from plansurvive.features.secrets.model import NamedSecrets
from plansurvive.features.secrets.secrets_file import Entry
from plansurvive.features.secrets.store import SecretStore
from plansurvive.plans.activity_io import Call
from plansurvive.plans.errors import ToolError
from tests.activities.attempts import Attempts
from tests.activities.sites import serve

VALUE = 'p/ss "wörd"\'<&>+~42'
SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": json.dumps,
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "repr": repr,
    "url": lambda text: quote(text, safe=""),
    "url path": quote,
    "form": quote_plus,
    "html": html.escape,
    "hex": lambda text: text.encode().hex(),
    "shell": shlex.quote,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "basic": lambda text: base64.b64encode(f"ann:{text}".encode()).decode(),
    "longer": lambda text: base64.b64encode(f"user1:{text}, and more".encode()).decode(),
    "url base64": lambda text: base64.urlsafe_b64encode(f"me:{text}".encode()).decode(),
}


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("value", [VALUE, "AKIA-plain-token-1234", "ÿ" * 9, "??>>~~/+/+/+"])
def test_a_secret_is_masked_in_every_spelling(name: str, value: str) -> None:
    spelt = SPELLINGS[name](value)
    found = Secrets([], [_Seen([value])]).out_of(f"<{spelt}>")
    assert MASK in found
    rest = found.replace(MASK, "")
    assert len(rest) <= len(f"<{spelt}>") - len(value) // 2, f"hardly anything of it is masked: {found}"
    assert value not in found


class _Seen:
    """Secrets that were read; the next one is read later."""

    def __init__(self, seen: list[str]) -> None:
        self.seen, self.version = seen, 1

    def add(self, value: str) -> None:
        """One more."""
        self.seen.append(value)
        self.version += 1


def test_the_lines_of_a_long_secret_are_masked_each() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort\n-----END KEY-----"
    assert "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" in spellings(key)
    assert "short" not in spellings(key)


def test_a_secret_that_is_a_number_is_masked_in_values_too(attempts: Attempts) -> None:
    del attempts
    assert Secrets([], [_Seen(["1234567890"])]).out_of_value({"n": [1234567890, True, 5]}) == {"n": [MASK, True, 5]}


def test_a_stream_masks_a_secret_that_was_read_after_it_began() -> None:
    seen = _Seen(["first-secret"])
    stream = Secrets([], [seen]).out_of_stream()
    out = stream.add(b"a first-se") + stream.add(b"cret ")
    seen.add("second-secret")
    out += stream.add(b"b second-s") + stream.add(b"ecret c") + stream.rest()
    assert out == b"a [secret] b [secret] c"


def test_the_log_of_a_worker_has_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    log, handler = logging.getLogger("tests.secrets"), caplog.handler
    guard = LogRedaction(Secrets([], [_Seen([VALUE])]))
    handler.addFilter(guard)
    try:
        log.warning("said %s", VALUE)
        try:
            raise ValueError(VALUE)
        except ValueError:
            log.exception("it broke")
    finally:
        handler.removeFilter(guard)
    assert VALUE not in caplog.text
    assert caplog.text.count(MASK) == 2


def site(tmp_path: Path, tools: list[str], hosts: list[str] | None = None, value: str = VALUE) -> ToolEnvironment:
    """A worker with one secret, TOKEN."""
    entry = Entry.model_validate({"from": "env:TOKEN", "tools": tools, "hosts": hosts or []})
    store = SecretStore({"TOKEN": entry}, tmp_path, {"TOKEN": value})
    return ToolEnvironment(
        sandbox=choose("off"),
        secrets=Secrets([], [store]),
        layers=[SecretArguments(store)],
        addresses=AddressPolicy.of(["127.0.0.0/8"]),
    )


def calling(
    attempts: Attempts, args: dict[str, Any], place: list[str | int], *, literal: bool = False, **more: Any
) -> Call:
    named = NamedSecrets(places=[place], literal=literal)
    return attempts.call(args).model_copy(update={"parts": {"secrets": named}, **more})


@tool
async def own(token: str, context: ToolContext, how: str = "") -> Any:
    """Do something with a token.

    Args:
        token: What it needs.
        how: What to do with it.

    Returns:
        The token.
    """
    context.progress(f"{'x' * 180} {token}")
    context.warn(f"about {token}")
    if how == "fails":
        raise ToolError("BUSY", f"{'y' * 3_990}{token}{'z' * 9_000}")
    if how == "breaks":
        raise ValueError(token)
    return {"token": token, token: [1, f"<{token}>"]}


def known(chosen: Tool, worker: ToolEnvironment) -> Tool:
    (layer,) = worker.layers
    assert isinstance(layer, SecretArguments)
    return replace(chosen, spec=layer.store.allowed(chosen.spec))


async def test_a_worker_without_secrets_refuses_the_call(attempts: Attempts, tmp_path: Path) -> None:
    here = attempts.but(site=ToolEnvironment(layers=[SecretArguments(SecretStore({}, tmp_path))]))
    call = calling(here, {"token": "{{secret.TOKEN}}"}, ["token"])
    assert (await _failure(here, own, call)).type == "SECRET_REFUSED"


async def test_a_tool_gets_the_secret_and_its_value_has_none(attempts: Attempts, tmp_path: Path) -> None:
    here = attempts.but(site=site(tmp_path, ["own"]))
    call = calling(here, {"token": "Bearer {{secret.TOKEN}}"}, ["token"])
    done = await here.run(own, call)
    assert done.value == {"token": f"Bearer {MASK}", f"Bearer {MASK}": [1, f"<Bearer {MASK}>"]}
    assert VALUE not in done.model_dump_json()
    assert f"about Bearer {MASK}" in done.warnings
    assert call.args == {"token": "Bearer {{secret.TOKEN}}"}


@pytest.mark.parametrize("how", ["fails", "breaks"])
async def test_no_error_has_a_secret_not_even_where_it_is_cut(attempts: Attempts, tmp_path: Path, how: str) -> None:
    here = attempts.but(site=site(tmp_path, ["own"]), repeatable=False, step="s")
    call = calling(here, {"token": "{{secret.TOKEN}}", "how": how}, ["token"])
    error = await _failure(here, own, call)
    effect = here.effects.log.find(call.key)
    assert effect is not None
    everything = f"{error} {error.details} {effect.value}"
    assert MASK in everything
    assert not any(VALUE[:length] in everything for length in range(6, len(VALUE) + 1))


async def test_what_is_recorded_for_exactly_once_has_no_secret(attempts: Attempts, tmp_path: Path) -> None:
    here = attempts.but(site=site(tmp_path, ["own"]), repeatable=False, step="s")
    call = calling(here, {"token": "{{secret.TOKEN}}"}, ["token"])
    await here.run(own, call)
    effect = here.effects.log.find(call.key)
    assert effect is not None
    assert effect.value["value"]["token"] == MASK


@pytest.mark.parametrize(
    ("tools", "more", "code"),
    [
        (["other"], {}, "SECRET_REFUSED"),
        (["own"], {"literal": True}, "SECRET_REFUSED"),
        (["own"], {"quoting": {"token": "shell"}}, ""),
    ],
)
async def test_the_worker_refuses_what_it_does_not_allow(
    attempts: Attempts, tmp_path: Path, tools: list[str], more: dict[str, Any], code: str
) -> None:
    here = attempts.but(site=site(tmp_path, tools))
    call = calling(here, {"token": "{{secret.TOKEN}}"}, ["token"], **more)
    if code:
        assert (await _failure(here, own, call)).type == code
    else:  # what a history says of the arguments is not asked
        await here.run(own, call)


async def test_a_secret_in_a_command_line_is_refused_by_the_worker(attempts: Attempts, tmp_path: Path) -> None:
    here = attempts.but(site=site(tmp_path, ["run_command"]))
    call = calling(here, {"command": "echo {{secret.TOKEN}}"}, ["command"])
    assert (await _failure(here, builtin_tools()["run_command"], call)).type == "SECRET_MISPLACED"


async def test_a_command_has_it_in_its_environment_alone(attempts: Attempts, tmp_path: Path) -> None:
    """Not in any command line of the machine, which everybody can read; what it prints is masked."""
    here = attempts.but(site=site(tmp_path, ["run_command"]))
    script = (
        'test ${#TOKEN} -gt 8 && printf \'%s\\n\' "$TOKEN"; printf %s "$TOKEN" | base64;'
        " cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -cF \"$TOKEN\""
    )
    args = {"command": script, "env": {"TOKEN": "{{secret.TOKEN}}"}, "allowFailure": True}
    done = await here.run(builtin_tools()["run_command"], calling(here, args, ["env", "TOKEN"]))
    lines = done.value["stdout"].split()
    assert lines[0] == MASK
    assert lines[1].startswith(MASK)
    assert int(lines[2]) <= 1, "only grep itself has it, in a shell's own argument"
    assert VALUE not in done.model_dump_json()


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_a_secret_is_sent_to_its_hosts_only(attempts: Attempts, tmp_path: Path, is_allowed: bool) -> None:
    with serve() as there:
        host = there.url.partition("://")[2].partition("/")[0]
        worker = site(tmp_path, ["http_request"], [host if is_allowed else "api.example.org"], "plain-token-42")
        here, request = attempts.but(site=worker), known(builtin_tools()["http_request"], worker)
        args = {"url": f"{there.url}/json", "headers": {"X-Token": "{{secret.TOKEN}}"}}
        call = calling(here, args, ["headers", "X-Token"])
        if is_allowed:
            assert (await here.run(request, call)).value["status"] == 200
        else:
            assert (await _failure(here, request, call)).type == "SECRET_REFUSED"
    assert [each[2]["x-token"] for each in there.asked] == ["plain-token-42"] * is_allowed


async def _failure(here: Attempts, chosen: Tool, call: Call) -> ApplicationError:
    with pytest.raises(ApplicationError) as caught:
        await here.run(chosen, call)
    return caught.value
