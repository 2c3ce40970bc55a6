"""The output of commands: whole, whatever its length, in constant memory, and with secrets masked."""

from __future__ import annotations

import asyncio
import hashlib
import json
import resource
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from pydantic import SecretStr
from temporalio.api.common.v1 import Payload
from temporalio.converter import StorageDriverClaim, StorageDriverStoreContext

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.outputs.recorder import ROOM_BYTES
from plansurvive.activities.outputs.stored_output import output
from plansurvive.activities.outputs.transcript import NUMBERS
from plansurvive.activities.tools.shell import run_command
from plansurvive.activities.values.redaction import Secrets
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Retry
from plansurvive.plans.views.progress.logs import LoggedAttempt
from plansurvive.runtime.buckets import s3_driver
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from tests.activities.attempts import Attempts
from tests.activities.processes import until
from tests.kit.s3_server import bucket as bucket
from tests.nightly import only_nightly

MIB = 1024 * 1024
NOISE = "import random, sys; sys.stdout.buffer.write(random.Random(7).randbytes({}))"
"""Bytes that are not UTF-8."""


def noise(size: int) -> str:
    return f"{sys.executable} -c '{NOISE.format(size)}'"


async def stored(attempts: Attempts, command: str) -> LargeValue:
    """The reference to the value of a command with long output."""
    found = (await attempts.run("run_command", command=command)).large
    assert found is not None
    return found


async def use(attempts: Attempts, tool: str, large: LargeValue, **args: Any) -> Any:
    """The value of a step whose arguments refer to the stored value of the step `s`."""
    deferred = [[name] for name, text in args.items() if "s." in text]
    call = attempts.call(args).model_copy(update={"deferred": deferred, "large": {"s": large}})
    result = await attempts.run(tool, call)
    return await attempts.values.get(result.large) if result.large else result.value


@pytest.mark.parametrize("size", [5_000_000, only_nightly(200_000_000)])
async def test_megabytes_of_output_reach_a_file_byte_for_byte(attempts: Attempts, size: int) -> None:
    large = await stored(attempts, f"{noise(size)} | tee original; echo some words >&2")
    assert large.streams == {"stdout": size}
    assert large.known == {"stderr": "some words\n", "exitCode": 0}
    value = await use(attempts, "write_file", large, path="copy", content="$s.stdout")
    assert value == {"path": "copy", "bytes": size, "created": True}
    digests = [hashlib.sha256((attempts.workspace / name).read_bytes()).hexdigest() for name in ("original", "copy")]
    assert digests[0] == digests[1]


async def test_a_file_that_has_the_output_already_is_left_as_it_is(attempts: Attempts) -> None:
    large = await stored(attempts, f"{noise(300_000)} | tee same")
    before = (attempts.workspace / "same").stat()
    await use(attempts, "write_file", large, path="same", content="$s.stdout")
    assert (attempts.workspace / "same").stat().st_ino == before.st_ino
    with (attempts.workspace / "same").open("r+b") as file:
        file.write(b"other")
    assert await attempts.but(approved=False).code("write_file", path="same", content="x") == "APPROVAL_REQUIRED"
    await use(attempts, "write_file", large, path="same", content="$s.stdout")
    assert (attempts.workspace / "same").stat().st_ino != before.st_ino


async def test_output_that_is_not_text_is_whole_however_short(attempts: Attempts) -> None:
    large = await stored(attempts, "printf 'a\\377b'; printf '\\303' >&2")
    assert large.known == {"stdout": "a\ufffdb", "stderr": "\ufffd", "exitCode": 0}
    await use(attempts, "write_file", large, path="copy", content="$s.stdout")
    assert (attempts.workspace / "copy").read_bytes() == b"a\xffb"
    assert await attempts.values.get(large) == large.known


async def test_short_output_stays_a_plain_value(attempts: Attempts) -> None:
    found = await attempts.run("run_command", command="echo ö; echo err >&2")
    assert (found.value, found.large) == ({"stdout": "ö\n", "stderr": "err\n", "exitCode": 0}, None)


async def test_long_output_is_text_wherever_it_is_a_part(attempts: Attempts) -> None:
    large = await stored(attempts, "seq 1 100000")
    await use(attempts, "write_file", large, path="copy", content="{{s.stdout}}and {{s.exitCode}}")
    assert (attempts.workspace / "copy").read_text().endswith("\n99999\n100000\nand 0")
    whole = await attempts.values.get(large)
    assert whole["stdout"].endswith("\n99999\n100000\n")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_what_is_too_long_to_load_is_refused_where_it_is_a_part_and_its_other_fields_are_not(
    attempts: Attempts,
) -> None:
    large = await stored(attempts, "head -c 70000000 /dev/zero; echo 5 >&2")
    value = await use(attempts, "run_command", large, command="echo {{s.exitCode}} {{s.stderr}}")
    assert value["stdout"] == "0 5\n"
    with pytest.raises(Exception, match=r"stdout has 70000000 bytes.*content: \$step.stdout"):
        await use(attempts, "run_command", large, command="echo {{s.stdout}}")


async def test_output_beyond_the_limit_fails_the_step_and_kills_the_command(attempts: Attempts) -> None:
    small = attempts.but(site=ToolEnvironment(output_bytes=3 * MIB))
    error = await small.error("run_command", command="trap 'echo bye > bye; exit' TERM; while :; do seq 100000; done")
    assert (error.type, error.non_retryable) == ("OUTPUT_LIMIT", True)
    assert "more than 3 MB to stdout and stderr" in error.message
    assert (attempts.workspace / "bye").exists()
    exact = await small.run("run_command", command=f"head -c {3 * MIB} /dev/zero")
    assert exact.large is not None
    assert exact.large.streams["stdout"] == 3 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("limit", [48, only_nightly(256)])
async def test_a_gigabyte_of_output_ends_at_the_limit_with_less_than_100_mb_of_memory(
    attempts: Attempts, limit: int
) -> None:
    grown, end = (await measured(attempts, "head -c 1000000000 /dev/zero", limit)).split()
    assert end == "OUTPUT_LIMIT"
    assert int(grown) < 100 * 1024


@pytest.mark.slow
async def test_a_gigabyte_of_output_is_stored_with_less_than_100_mb_of_memory(attempts: Attempts) -> None:
    grown, end = (await measured(attempts, "head -c 1000000000 /dev/zero", 1_024)).split()
    assert end == "1000000000"
    assert int(grown) < 100 * 1024


async def measured(attempts: Attempts, command: str, limit: int) -> str:
    """By how many KiB a process grew that ran the command, and how that ended."""
    program = f"""
        import asyncio, resource
        from pathlib import Path
        from plansurvive.activities.attempt.environment import ToolEnvironment
        from plansurvive.activities.workspace.effect_log import Effects
        from plansurvive.runtime.storage import LocalDirectory
        from plansurvive.runtime.value_store import ValueStore
        from temporalio.exceptions import ApplicationError
        from tests.activities.attempts import Attempts

        async def main():
            values, effects = ValueStore(LocalDirectory({str(attempts.workspace / "v")!r})), Effects.at(Path("unused"))
            site = ToolEnvironment(output_bytes={limit} << 20)
            attempts = Attempts(Path({str(attempts.workspace)!r}), values, effects, site, timeout=600)
            await attempts.run("run_command", command="echo")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            try:
                end = (await attempts.run("run_command", command={command!r})).large.streams["stdout"]
            except ApplicationError as error:
                end = error.type
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, end)

        asyncio.run(main())
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(program), cwd=Path(__file__).parents[3], stdout=asyncio.subprocess.PIPE
    )
    return (await process.communicate())[0].decode()


class Gated(LocalDirectory):
    """A storage that stores nothing until it is opened."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.opened, self.asked, self.fails = asyncio.Event(), 0, False

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        self.asked += 1
        await self.opened.wait()
        if self.fails:
            raise RuntimeError("the storage is out of reach")
        return await super().store(context, payloads)


async def test_a_command_waits_while_the_storage_is_behind(attempts: Attempts, state_dir: Path) -> None:
    gate, size = Gated(state_dir / "gated"), 8 * ROOM_BYTES
    slow = attempts.but(values=ValueStore(gate))
    running = asyncio.ensure_future(slow.run("run_command", command=f"head -c {size} /dev/zero; touch written"))
    await until(lambda: gate.asked > 0)
    await attempts.run("run_command", command="seq 100000 | tail -1")  # long enough for the other one to fill its room
    assert not (attempts.workspace / "written").exists()
    gate.opened.set()
    large = (await running).large
    assert large is not None
    assert large.streams["stdout"] == size


async def test_a_storage_that_stays_out_of_reach_fails_the_step_for_a_retry(
    attempts: Attempts, state_dir: Path
) -> None:
    gate = Gated(state_dir / "gated")
    gate.fails = True
    gate.opened.set()
    error = await attempts.but(values=ValueStore(gate)).error("run_command", command="yes")
    assert (error.type, error.non_retryable) == ("TOOL_FAILED", False)
    assert "out of reach" in error.message


@pytest.mark.slow
@pytest.mark.in_turn
async def test_output_is_whole_and_can_be_followed_where_values_are_in_s3(
    attempts: Attempts,
    bucket: str,
) -> None:
    """Streams, their chunks, parts of them, and what `plan logs` reads of a failed attempt."""
    store = ValueStore(s3_driver(bucket))
    known = attempts.but(values=store)
    large = await stored(known, f"{noise(3_000_000)} | tee original; echo some words >&2")
    assert (large.streams, large.known) == ({"stdout": 3_000_000}, {"stderr": "some words\n", "exitCode": 0})
    await use(known, "write_file", large, path="copy", content="$s.stdout")
    assert (attempts.workspace / "copy").read_bytes() == (attempts.workspace / "original").read_bytes()
    shown = json.dumps(await store.get(large), ensure_ascii=False)
    assert await store.excerpt(large, 2_000_000, 50) == (shown[2_000_000:2_000_050], len(shown))
    error = await known.but(retry=Retry(attempts=1)).error("run_command", command="cat original; exit 3")
    logs = LoggedAttempt.model_validate(error.details[0]["attempts"][-1])
    read = [piece.data async for piece in output(logs, store, dict.fromkeys(NUMBERS, 0))]
    assert b"".join(read) == (attempts.workspace / "original").read_bytes()
    s3 = boto3.resource("s3").Bucket(bucket)
    await asyncio.to_thread(s3.objects.delete)
    with pytest.raises(ToolError, match="no object") as caught:
        await store.get(large)
    assert caught.value.code == "VALUE_MISSING"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_without_room_for_output_the_step_says_where_it_is_lacking_and_the_worker_goes_on(
    attempts: Attempts,
) -> None:
    """A limit for the length of files stands for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        error = await attempts.error("run_command", command=noise(3_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (error.type, error.non_retryable) == ("NO_SPACE", False)
    assert str(attempts.workspace.parent / "state/values") in error.message
    assert (await stored(attempts, noise(3_000_000))).streams == {"stdout": 3_000_000}


@pytest.mark.parametrize("secret", ['größer "als" \\ drei', only_nightly("swordfish-of-the-seas")])
async def test_secrets_are_masked_across_chunks_and_writes(attempts: Attempts, secret: str) -> None:
    site = ToolEnvironment(secrets=Secrets([SecretStr(secret), SecretStr(f"{secret}-and-more")]))
    code = (
        "import sys, os, time\n"
        f"data = ('x' * 1_048_570 + {secret!r} + '|' + {secret!r} + '-and-more.').encode()\n"
        "for start in range(0, len(data), 4093): os.write(1, data[start : start + 4093])\n"
        f"for byte in {secret!r}.encode(): os.write(2, bytes([byte])); time.sleep(0.002)\n"
    )
    known = attempts.but(site=site)
    value = await known.value("run_python", code=code)
    assert value["stdout"] == "x" * 1_048_570 + "[secret]|[secret]."
    assert value["stderr"] == "[secret]"
    error = await known.error("run_python", code=code + "raise SystemExit(3)")
    assert secret not in error.message
    assert all(secret not in str(beat) for beat in known.beats)


async def test_one_piece_of_a_stored_value_is_read_without_the_others(attempts: Attempts, state_dir: Path) -> None:
    large = await stored(attempts, 'for i in 1 2 3 4; do head -c 999999 /dev/zero | tr "\\0" $i; echo \'é"\'; done')
    text = (await attempts.values.text(large)).decode()
    whole = await attempts.values.get(large)

    shown = json.dumps(whole, ensure_ascii=False)
    for offset, length in [(0, 100), (999_990, 60), (2_000_005, 40), (3_999_990, 200), (len(shown), 5), (7, 0)]:
        assert await attempts.values.excerpt(large, offset, length) == (shown[offset : offset + length], len(shown))
    chunks = json.loads(text)["stdout"]["$stream"]["chunks"]
    driver = LocalDirectory(state_dir / "values")
    for chunk in chunks[1:]:
        driver.path(chunk["claim"]["sha256"]).unlink()
    assert (await attempts.values.excerpt(large, 20, 3))[0] == "111"
    with pytest.raises(ToolError, match="is not in"):
        await attempts.values.excerpt(large, 3_000_000, 3)


async def test_a_lost_chunk_leaves_no_half_file(attempts: Attempts, state_dir: Path) -> None:
    large = await stored(attempts, noise(5_000_000))

    last = json.loads(await attempts.values.text(large))["stdout"]["$stream"]["chunks"][-1]
    LocalDirectory(state_dir / "values").path(last["claim"]["sha256"]).unlink()
    with pytest.raises(Exception, match="VALUE_MISSING"):
        await use(attempts, "write_file", large, path="copy", content="$s.stdout")
    assert list(attempts.workspace.iterdir()) == []


def test_run_command_says_what_its_value_is() -> None:
    assert run_command.spec.value == "{stdout, stderr, exitCode}"
