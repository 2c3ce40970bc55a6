"""Diagnoses the installation: one finding for each thing a plan needs, and for each weakness of this machine.

Starts and changes nothing. Every finding that is not good says what to do; weaknesses have codes, listed in
docs/operations.md. The command line prints them.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from plansurvive.activities.attempt.environment import sandbox_of
from plansurvive.activities.sandbox import landlock
from plansurvive.activities.sandbox.probe import is_traced
from plansurvive.activities.sandbox.sandbox import describe, missing
from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.activities.workspace.atomic_swap import is_supported
from plansurvive.activities.workspace.effect_log import EFFECTS, EffectLog
from plansurvive.client import apps
from plansurvive.client.local_tools import known_tools
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.runtime import background_worker, search_attributes, temporal_binary, up
from plansurvive.runtime.base.extras import NAME, install_line, present
from plansurvive.runtime.connect import Connection, Origin, find, storage
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.server import SEARCH_ATTRIBUTES
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.sides import sides
from plansurvive.runtime.start_files import sentence
from plansurvive.runtime.task_queues import listeners
from plansurvive.runtime.weaknesses import Weakness, of_user_namespaces, weaknesses

VERSION_SECONDS = 10.0
"""Timeout of `temporal --version`."""
LITTLE_BYTES = 500 * 1024 * 1024
"""Free disk space below which to warn."""


class Verdict(StrEnum):
    """Severity of a finding."""

    GOOD = "good"
    WARNING = "warning"
    """Plans run, but with a limitation."""
    BAD = "bad"
    """Plans do not run until this is fixed."""


class Finding(BaseModel):
    """The result of one check."""

    model_config = ConfigDict(frozen=True)

    subject: str
    verdict: Verdict
    text: str
    """The state, and what to do unless it is good."""
    code: str = ""
    """Of a weakness: its stable code."""


def about(subject: str, look: Callable[[], tuple[str, str]]) -> list[Finding]:
    """The row of a feature about its file or setting; none if there is neither.

    `look` returns what is there and, if something is lacking, the whole text of the warning; it may raise PlanError.
    """
    try:
        there, lacking = look()
    except PlanError as error:
        return [_bad(subject, error.message)]
    if lacking:
        return [_warning(subject, lacking)]
    return [_good(subject, there)] if there else []


async def examine(environ: Mapping[str, str]) -> list[Finding]:
    """Run all checks. The findings are in the order in which to fix them. Never raises."""
    findings = [_good("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")]
    try:
        settings = Settings.read(environ)
    except PlanError as error:
        return [*findings, _bad("settings", error.message)]
    findings.append(_good("settings", f"queue '{settings.task_queue}', approvals {settings.approvals}"))
    findings += [*_extras(), _state(settings), *_storage(settings), _workspace(settings), _tools(settings), _rights()]
    findings += _sandbox(settings)
    findings += [_tracing(settings), _effects(settings), _saving(settings), _approvals(settings)]
    more = [*sides("doctor"), *apps.sides("doctor")]
    findings += [each for side in more for each in side.findings(settings, environ)]
    found = [_weak("security", each) for each in weaknesses(settings, environ)]
    found = found or [_good("security", "no further weakness of this machine is known")]
    return findings + found + await _server(settings)


def _state(settings: Settings) -> Finding:
    """Checks the nearest existing directory: missing ones are created when needed."""
    place = next(path for path in (settings.state_dir, *settings.state_dir.parents) if path.exists())
    if not os.access(place, os.W_OK | os.X_OK):
        return _bad("state", f"{settings.state_dir} is not writable; change its permissions or set PLANS_STATE_DIR")
    free = shutil.disk_usage(place).free
    text = f"{settings.state_dir}, {free / 1024**3:.1f} GiB free"
    return _good("state", text) if free > LITTLE_BYTES else _warning("state", f"{text}; free some space for its data")


def _extras() -> list[Finding]:
    """Which extras are installed; what needs one that is not says so in a finding of its own."""
    extras = present()
    absent = [name for name, is_there in extras.items() if not is_there]
    if not absent:
        return [_good("extras", f"all installed: {', '.join(extras)}")] if extras else []
    there = ", ".join(name for name, is_there in extras.items() if is_there) or "none"
    line = install_line(f"{NAME}[{','.join(absent)}]")
    return [_good("extras", f"{there}; not installed: {', '.join(absent)}; run: {line}")]


def _storage(settings: Settings) -> list[Finding]:
    """Whether a bucket can be used as far as this machine knows: it is not asked."""

    def look() -> tuple[str, str]:
        if settings.storage == "local":
            return "", ""
        storage(settings)
        return settings.storage, ""

    return about("storage", look)


def _workspace(settings: Settings) -> Finding:
    if settings.workspace is None:
        return _good(
            "workspace",
            f"PLANS_WORKSPACE is not set: plans use their own, or the directory they are started in, now {Path.cwd()}",
        )
    refused = WorkspaceRules.of(settings).refusal(str(settings.workspace))
    return _bad("workspace", f"PLANS_WORKSPACE: {refused}") if refused else _good("workspace", str(settings.workspace))


def _tools(settings: Settings) -> Finding:
    try:
        tools = known_tools(settings)
    except PlanError as error:
        return _bad("tools", error.message)
    return _good("tools", f"{len(tools)}: {', '.join(tools)}")


def _effects(settings: Settings) -> Finding:
    """Checks the effect log; without a valid one, no file is changed."""
    log = EffectLog(settings.state_dir / EFFECTS)
    try:
        log.check()
    except ToolError as error:
        return _bad("effects", error.message)
    finally:
        log.close()
    return _good("effects", f"{log.path}" if log.path.exists() else "no plan has changed a file yet")


def _saving(settings: Settings) -> Finding:
    """Tries with two files whether the file system can swap them atomically, so that concurrent saves are not lost."""
    place = settings.workspace or Path.cwd()
    try:
        is_atomic = is_supported(place)
    except OSError as error:
        return _warning(
            "saving", f"{place} could not be tested: {error.strerror}; set PLANS_WORKSPACE to a writable directory"
        )
    if is_atomic:
        return _good("saving", "files are replaced by an atomic swap: a concurrent save by another program is not lost")
    text = f"the file system of {place} has no atomic swap: a save by another program at the moment of a write is lost"
    return _warning("saving", f"{text}. Use a local file system such as ext4, or do not edit files while plans run")


def _sandbox(settings: Settings) -> list[Finding]:
    sandbox = sandbox_of(settings)
    text = describe(sandbox)
    if sandbox.problem:
        return [_bad("sandbox", text), *_why_no_bubblewrap()]
    if sandbox.level == "bwrap":
        found = [_good("sandbox", text)]
    elif settings.sandbox == "off":
        found = [_weak("sandbox", Weakness("SANDBOX_OFF", f"{text}: PLANS_SANDBOX=off; unset it"))]
    else:
        code = "SANDBOX_LEVEL_1" if sandbox.level == "landlock" else "SANDBOX_LEVEL_0"
        lacking = missing().get("bwrap", "")
        way = "set PLANS_SANDBOX=auto"
        if lacking:
            way = lacking + ("" if shutil.which("bwrap") else f"; run `{_installs('bubblewrap')}`")
        found = [_weak("sandbox", Weakness(code, f"{text}. For level 2: {way}")), *_why_no_bubblewrap()]
    if sandbox.level == "landlock" and landlock.abi() < landlock.WHOLE:
        found.append(_weak("sandbox", Weakness("OLD_LANDLOCK", landlock.gaps(landlock.abi()))))
    if settings.sandbox_network == "on" and sandbox.level != "none":
        network = "every command has network access: PLANS_SANDBOX_NETWORK=on; unset it and let steps ask for it"
        found.append(_weak("network", Weakness("NETWORK_ON", network)))
    return found


def _tracing(settings: Settings) -> Finding:
    without = "a file that changed while several commands ran is shown as one of theirs"
    if not settings.trace:
        return _good("tracing", f"off, by PLANS_TRACE: {without}")
    if is_traced(sandbox_of(settings)):
        return _good(
            "tracing", "commands are traced: of several that run at once, each is named for the files it wrote"
        )
    way = "it needs Linux 5.19 on x86_64 or arm64, and at sandbox level 0 a root worker"
    return _warning("tracing", f"commands cannot be traced here, so {without}; {way}")


def _why_no_bubblewrap() -> list[Finding]:
    """What of the kernel's settings keeps an ordinary user from bubblewrap; root needs none of it."""
    return [_weak("sandbox", each) for each in of_user_namespaces()] if os.geteuid() != 0 else []


def _installs(package: str) -> str:
    """The command that installs a package here, by the package program there is."""
    for program, arguments in (("apt-get", "install"), ("dnf", "install"), ("pacman", "-S"), ("zypper", "install")):
        if shutil.which(program):
            return f"sudo {program} {arguments} {package}"
    return f"apt-get install {package}"


def _rights() -> Finding:
    if os.geteuid() != 0:
        return _good("user", f"not root (id {os.geteuid()})")
    text = "root: the worker and its tools can do anything on this machine"
    way = "run plans as another user: `sudo useradd --create-home plans`, then `sudo -iu plans`"
    return _weak("user", Weakness("ROOT_WORKER", f"{text}; {way}"))


def _approvals(settings: Settings) -> Finding:
    normal = "normal: a plan may waive approvals; with PLANS_APPROVALS=strict none does"
    return _good(
        "approvals", {"strict": "strict: no plan and no flag waives an approval"}.get(settings.approvals, normal)
    )


async def _server(settings: Settings) -> list[Finding]:
    try:
        connection = await find(settings)
    except NotConnected as error:
        return [_bad("server", error.message)]
    except PlanError as error:
        return [_bad("settings", error.message)]
    if connection is None:
        return [await _program(settings)]
    place = f"{connection.address}, namespace '{connection.client.namespace}' ({connection.origin.value})"
    ui = (
        _good("ui", connection.ui)
        if connection.ui
        else _warning("ui", "the address of this server's Temporal UI is not known, so commands show no links to it")
    )
    others = [await _indexed(connection), await _worker(settings, connection)]
    of_server = [*sides("doctor_of_server"), *apps.sides("doctor_of_server")]
    more = [each for side in of_server for each in await side.findings(settings, connection)]
    return [_good("server", place), *_encrypted(connection), ui, *others, *more]


def _encrypted(connection: Connection) -> list[Finding]:
    """A server on another machine that is talked to in the clear."""
    config = connection.client.service_client.config
    if connection.is_on_this_machine or config.tls or (config.tls is None and config.api_key):
        return []
    text = f"{connection.address} is on another machine, and the connection to it is not encrypted"
    text += ": anyone who sees it can read plans and approve steps; set TEMPORAL_TLS=true, or use a tunnel"
    return [_weak("server", Weakness("SERVER_WITHOUT_TLS", text))]


async def _program(settings: Settings) -> Finding:
    """When no server is running: whether one can be started."""
    program = temporal_binary.installed(settings)
    if program:
        version = await _version(program)
        return _good("server", f"not running; the first plan starts one with {program} ({version})")
    wanted = f"`temporal` {temporal_binary.PINNED.version}, some 45 MB"
    text = f"not running, nor installed; the first plan downloads {wanted}, once. Without a network: "
    return _warning("server", text + temporal_binary.INSTRUCTIONS[0].lower() + temporal_binary.INSTRUCTIONS[1:])


async def _version(program: Path) -> str:
    try:
        async with asyncio.timeout(VERSION_SECONDS):
            process = await asyncio.create_subprocess_exec(str(program), "--version", stdout=asyncio.subprocess.PIPE)
            output, _ = await process.communicate()
    except (OSError, TimeoutError) as error:
        return f"version unknown: {error}"
    return output.decode(errors="replace").strip()


async def _indexed(connection: Connection) -> Finding:
    known = await search_attributes.known(connection.client)
    missing = [name for name in SEARCH_ATTRIBUTES if name not in known]
    if not missing:
        return _good("search", "plans can be searched by status, title and steps awaiting approval")
    text = f"this server does not know {', '.join(missing)}; a worker registers them when it starts, if permitted"
    if known and not known >= search_attributes.TOLD:
        text += "; until then, lists show that a plan awaits approval, but not for which step"
    return _warning("search", text)


async def _worker(settings: Settings, connection: Connection) -> Finding:
    present = await listeners(connection.client, settings.task_queue)
    if present and (changed := up.changed_since(settings)):
        return _warning("worker", sentence(changed))
    if present:
        return _good("worker", f"{len(present)} polling queue '{settings.task_queue}': {', '.join(present)}")
    starts = settings.auto_worker and connection.is_on_this_machine
    if starts:
        background = background_worker.recorded(settings)
        text = f"none polls queue '{settings.task_queue}'; the next command starts one"
        text += f" ({len(background)} run for other queues)" if background else ""
        return _good("worker", text) if connection.origin is Origin.EMBEDDED else _warning("worker", text)
    return _warning("worker", f"none polls queue '{settings.task_queue}', so plans wait; start one with `plan up`")


def _good(subject: str, text: str) -> Finding:
    return Finding(subject=subject, verdict=Verdict.GOOD, text=text)


def _warning(subject: str, text: str) -> Finding:
    return Finding(subject=subject, verdict=Verdict.WARNING, text=text)


def _weak(subject: str, weakness: Weakness) -> Finding:
    return Finding(subject=subject, verdict=Verdict.WARNING, text=weakness.text, code=weakness.code)


def _bad(subject: str, text: str) -> Finding:
    return Finding(subject=subject, verdict=Verdict.BAD, text=text)
