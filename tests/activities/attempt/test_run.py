"""One attempt: references filled in, arguments checked, time kept, errors told apart, values kept small."""

from __future__ import annotations

import asyncio
import errno
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.attempt.run import tool_activity
from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.activities.values.errors import MAX_MESSAGE_BYTES
from plansurvive.activities.values.redaction import Secrets
from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Retry
from tests.activities.attempts import Attempts


def giving(value: Any) -> Tool:
    """A tool with this value."""

    def give() -> Any:
        """Give a value."""
        return value

    return tool(give)


def raising(error: BaseException, *, in_thread: bool = True) -> Tool:
    """A tool that fails in this way."""

    def fail() -> None:
        """Fail."""
        raise error

    async def fail_at_once() -> None:
        """Fail."""
        raise error

    return tool(fail if in_thread else fail_at_once)


async def test_a_value_comes_back_with_its_duration_and_attempt(attempts: Attempts) -> None:
    result = await attempts.but(errors=1).run(giving({"a": [1, None, "ä"]}))
    assert result.value == {"a": [1, None, "ä"]}
    assert result.attempt == 2
    assert result.duration >= 0


async def test_a_long_value_is_kept_outside_history(attempts: Attempts) -> None:
    text = "x" * 100_000
    result = await attempts.run(giving(text))
    assert isinstance(result.large, LargeValue)
    assert (result.value, result.large.bytes) == (None, 100_002)
    assert result.large.preview.startswith('"xxx')
    assert await attempts.values.get(result.large) == text


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_value_beyond_all_measure_is_refused(attempts: Attempts) -> None:
    assert await attempts.code(giving("x" * (65 * 1024 * 1024))) == "VALUE_TOO_LARGE"


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [float("nan"), {"a": float("inf")}, b"bytes", {1, 2}, "\ud800", object(), nested(65), nested(100_000)]
)
async def test_what_is_no_json_value_is_refused_before_it_can_stop_a_workflow(attempts: Attempts, value: Any) -> None:
    error = await attempts.error(giving(value))
    assert error.type == "BAD_VALUE"
    assert error.non_retryable


async def test_nesting_up_to_the_limit_is_fine(attempts: Attempts) -> None:
    assert await attempts.value(giving(nested(64))) == nested(64)


async def test_deferred_references_are_filled_in_from_inline_and_stored_values(attempts: Attempts) -> None:
    large = await attempts.values.put('"' + "y" * 20_000 + '"')
    call = attempts.call({"path": "$inputs.name", "content": "{{big}}!"}).model_copy(
        update={"deferred": [["path"], ["content"]], "values": {"inputs": {"name": "out"}}, "large": {"big": large}}
    )
    await attempts.run("write_file", call)
    assert (attempts.workspace / "out").read_text() == "y" * 20_000 + "!"


async def test_a_value_inserted_into_a_command_is_quoted(attempts: Attempts) -> None:
    call = attempts.call({"command": "echo {{name}}"}).model_copy(
        update={"deferred": [["command"]], "values": {"name": "$(touch evil); x"}, "quoting": {"command": "shell"}}
    )
    result = await attempts.run("run_command", call)
    assert result.value["stdout"] == "$(touch evil); x\n"
    assert not (attempts.workspace / "evil").exists()


@pytest.mark.parametrize(("reference", "code"), [("$gone", "BAD_REFERENCE"), ("$big", "VALUE_MISSING")])
async def test_a_reference_that_cannot_be_filled_in_fails_for_good(
    attempts: Attempts, reference: str, code: str
) -> None:
    large = (
        {"big": LargeValue(sha256="0" * 64, claim={"sha256": "0" * 64}, bytes=9, preview="")}
        if reference == "$big"
        else {}
    )
    call = attempts.call({"path": reference}).model_copy(update={"deferred": [["path"]], "large": large})
    with pytest.raises(ApplicationError) as caught:
        await attempts.run("read_file", call)
    assert (caught.value.type, caught.value.non_retryable) == (code, True)


async def test_resolved_arguments_are_checked_and_need_their_approval(attempts: Attempts) -> None:
    call = attempts.call({"path": "$n"}).model_copy(update={"deferred": [["path"]], "values": {"n": 5}})
    with pytest.raises(ApplicationError, match=r"args\.path"):
        await attempts.run("read_file", call)
    asking = attempts.but(approved=False)
    call = asking.call({"url": "http://127.0.0.1:1", "method": "$m"}).model_copy(
        update={"deferred": [["method"]], "values": {"m": "POST"}}
    )
    with pytest.raises(ApplicationError) as caught:
        await asking.run("http_request", call)
    assert caught.value.type == "APPROVAL_REQUIRED"


@pytest.mark.parametrize("tool_name", ["delete_file", "run_command", "run_python"])
async def test_what_nobody_approved_does_not_happen(attempts: Attempts, tool_name: str) -> None:
    (attempts.workspace / "x").write_text("kept")
    args = {"delete_file": {"path": "x"}, "run_command": {"command": "rm x"}}.get(tool_name, {"code": "0"})
    assert await attempts.but(approved=False).code(tool_name, **args) == "APPROVAL_REQUIRED"
    assert (attempts.workspace / "x").exists()


@pytest.mark.parametrize("in_thread", [True, False])
@pytest.mark.parametrize(
    ("error", "code", "final"),
    [
        (ToolError("MINE", "no"), "MINE", True),
        (ToolError("MINE", "no", retryable=True), "MINE", False),
        (ValueError("odd"), "TOOL_FAILED", False),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), "NOT_FOUND", True),
        (PermissionError(errno.EACCES, "Permission denied", "x"), "NO_PERMISSION", True),
        (OSError(errno.ENOSPC, "No space left on device"), "NO_SPACE", False),
        (OSError(errno.EROFS, "Read-only file system"), "NO_PERMISSION", True),
        (OSError(errno.EIO, "Input/output error"), "TOOL_FAILED", False),
        (TimeoutError("slow"), "TOOL_FAILED", False),
        (SystemExit(3), "TOOL_FAILED", None),
        (StopIteration("odd"), "TOOL_FAILED", False),
        (asyncio.CancelledError(), "TOOL_FAILED", False),
    ],
)
async def test_an_error_has_a_code_and_says_whether_to_try_again(
    attempts: Attempts, in_thread: bool, error: BaseException, code: str, final: bool | None
) -> None:
    told = await attempts.error(raising(error, in_thread=in_thread))
    assert told.type == code
    assert told.category == ApplicationErrorCategory.BENIGN
    assert final is None or told.non_retryable is final
    assert told.details[0]["code"] == code


async def test_a_message_is_bounded_and_valid_text(attempts: Attempts) -> None:
    error = await attempts.error(raising(ValueError("\ud800" + "ä" * 100_000)))
    assert len(error.message.encode()) <= MAX_MESSAGE_BYTES
    assert error.message.startswith("ValueError: ")


async def test_errors_are_counted_across_attempts_and_the_waits_grow(attempts: Attempts) -> None:
    failing = raising(ToolError("X", "no", retryable=True))
    rule = Retry(attempts=3, delay=1.0, factor=2.0)
    first, second, third = [await attempts.but(errors=n, retry=rule).error(failing) for n in range(3)]
    assert [first.next_retry_delay, second.next_retry_delay] == [timedelta(seconds=1), timedelta(seconds=2)]
    assert [error.non_retryable for error in (first, second, third)] == [False, False, True]
    assert [error.details[0]["attempt"] for error in (first, second, third)] == [1, 2, 3]
    assert [beat["errors"] for beat in attempts.beats] == [1, 2]


async def test_the_server_s_own_count_of_attempts_does_not_matter(attempts: Attempts) -> None:
    failing = raising(ToolError("X", "no", retryable=True))
    again = attempts.but(again=True, retry=Retry(attempts=2))
    assert not (await again.error(failing)).non_retryable


async def test_a_tool_may_say_when_to_try_again(attempts: Attempts) -> None:
    error = await attempts.error(raising(ToolError("BUSY", "later", retryable=True, retry_after=7.5)))
    assert error.next_retry_delay == timedelta(seconds=7.5)


async def test_a_step_that_takes_too_long_is_ended_and_may_be_tried_again(attempts: Attempts) -> None:
    told = threading.Event()

    @tool
    def slow(context: ToolContext) -> None:
        """Take long."""
        context.progress("half way")
        while not context.cancelled:
            told.wait(0.01)
        told.set()

    error = await attempts.but(timeout=1.0).error(slow)
    assert (error.type, error.non_retryable) == ("STEP_TIMEOUT", False)
    assert "half way" in error.message
    assert told.is_set()


async def test_progress_and_the_count_of_errors_travel_with_the_heartbeat(attempts: Attempts) -> None:
    @tool
    async def slow(context: ToolContext) -> None:
        """Take a moment."""
        context.progress("line 7")
        while not attempts.beats:
            await asyncio.sleep(0.01)

    await attempts.but(errors=2).run(slow)
    beat = attempts.beats[0]
    assert (beat["errors"], beat["of"], beat["line"]) == (2, 3, "line 7")
    assert beat["lasted"] > 0


async def test_the_workers_own_keys_are_not_in_a_line_of_progress(attempts: Attempts) -> None:
    @tool
    async def leaks(context: ToolContext) -> None:
        """Say the key."""
        context.progress("the key is key-1234567890", percent=12.5)
        while not attempts.beats:
            await asyncio.sleep(0.01)

    await attempts.but(site=ToolEnvironment(secrets=Secrets([SecretStr("key-1234567890")]))).run(leaks)
    assert "1234567890" not in str(attempts.beats)
    assert (attempts.beats[0]["line"].partition(" is ")[0], attempts.beats[0]["progress"]) == ("the key", 12)


@pytest.mark.parametrize("percent", [float("nan"), float("inf"), True, "50", [1]])
async def test_progress_that_is_not_a_number_fails_the_tool(attempts: Attempts, percent: Any) -> None:
    @tool
    async def reports(context: ToolContext) -> None:
        """Report nonsense."""
        context.progress("half", percent=percent)

    error = await attempts.error(reports)
    assert (error.type, error.non_retryable) == ("BAD_PROGRESS", True)


@pytest.mark.parametrize(
    ("percent", "shown"), [(-5, 0), (0, 0), (99.9, 99), (100.0, 100), (1e300, 100), (10**400, 100)]
)
def test_percent_out_of_range_counts_as_the_nearest_end(attempts: Attempts, percent: float, shown: int) -> None:
    context = attempts.context()
    context.progress("on the way", percent)
    context.progress("no percent leaves the last one")
    assert context.percent == shown


async def test_a_cancelled_attempt_tells_the_tool_and_ends_as_cancelled(attempts: Attempts) -> None:
    began, told = threading.Event(), threading.Event()

    @tool
    def slow(context: ToolContext) -> None:
        """Take long."""
        began.set()
        while not context.cancelled:
            told.wait(0.01)
        told.set()

    environment = attempts.environment()
    attempt = asyncio.ensure_future(
        environment.run(tool_activity(slow, attempts.values, attempts.effects), attempts.call({}))
    )
    await asyncio.to_thread(began.wait, 60)
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert told.is_set()


async def test_a_tool_that_exits_does_not_end_the_worker(attempts: Attempts) -> None:
    @tool
    async def leave() -> None:
        """Leave."""
        sys.exit(4)

    assert await attempts.code(leave) == "TOOL_FAILED"


async def test_only_what_sees_the_workspace_minds_that_it_is_another_directory(attempts: Attempts) -> None:
    @tool(effect="pure")
    def double(number: int) -> int:
        """Double a number.

        Args:
            number: The number.
        """
        return 2 * number

    @tool(effect="pure")
    def look(number: int, context: ToolContext) -> int:
        """Look at the workspace.

        Args:
            number: Any number.
        """
        return number + len(context.workspace.root)

    @tool
    def send(number: int) -> int:
        """Do something, nobody knows what.

        Args:
            number: Any number.
        """
        return number

    found = {}
    for each in (double, look, send):
        call = attempts.call({"number": 2})
        moved = DirectoryIdentity(path=call.workspace, inode=1)
        try:
            found[each.spec.name] = (await attempts.run(each, call.model_copy(update={"directory": moved}))).value
        except ApplicationError as error:
            found[each.spec.name] = error.type
    assert found == {"double": 4, "look": "WORKSPACE_MOVED", "send": "WORKSPACE_MOVED"}
