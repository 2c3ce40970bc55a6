"""The mistakes that new users make: each is answered with what is wrong, where, and what to do; nothing is started."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from temporalio.worker import Worker

from plansurvive.runtime.settings import Settings
from tests.client.cli.command import plan
from tests.kit.waiting import until

Environ = dict[str, str]
OK = "steps: [{id: look, tool: list_directory, args: {path: .}}]\n"
LOOK = "{id: look, tool: list_directory, args: {path: .}}"


class Mistake(NamedTuple):
    """A command, and the row that answers it."""

    arguments: str
    says: str
    file: str = OK
    code: int = 2
    environ: dict[str, str] = {}  # noqa: RUF012 - never changed


FILES: dict[str, Mistake] = {
    "a tab": Mistake(
        "check FILE",
        "line 2, column 1: a tab; YAML is indented with spaces, so replace the tabs at the beginning of lines",
        "steps:\n\t- {id: a}\n",
    ),
    "an empty file": Mistake(
        "check FILE", "a plan is an object with steps, this is empty; `plan init` makes a first one", ""
    ),
    "a list instead of a plan": Mistake(
        "check FILE", "a plan is an object with steps, this is a list; `plan init` makes a first one", "- a\n"
    ),
    "a text instead of a plan": Mistake(
        "check FILE", "a plan is an object with steps, this is a text; `plan init` makes a first one", "hello\n"
    ),
    "steps without a value": Mistake("check FILE", "should be a list; it is null", "steps:\n"),
    "no steps": Mistake("check FILE", "the plan is empty; add at least one step", "steps: []\n"),
    "steps are missing": Mistake("check FILE", "'steps' is missing; add it", "title: A\n"),
    "args without a value": Mistake(
        "check FILE", "should be an object (`name: value`); it is null", "steps: [{id: a, tool: sleep, args: }]\n"
    ),
    "a dependency that is not in a list": Mistake(
        "check FILE", "should be a list; it is 'b'", f"steps: [{LOOK}, {{id: b, tool: sleep, dependsOn: b}}]\n"
    ),
    "a workflow of GitHub Actions": Mistake(
        "check FILE",
        "there is no field 'jobs'; this looks like a GitHub Actions workflow, of which `plan import FILE` makes a plan",
        "jobs: {a: {}}\n",
    ),
    "a command as GitHub Actions write it": Mistake(
        "check FILE",
        "there is no field 'run'; a command is `tool: run_command` with `args: {command: ...}`",
        "steps: [{id: a, run: ls}]\n",
    ),
    "the name of an item beside the loop": Mistake(
        "check FILE",
        "there is no field 'as'; the name of an item is part of the loop: `forEach: {items: LIST, as: NAME}`",
        f"steps: [{LOOK.removesuffix('}')}, forEach: [1], as: n}}]\n",
    ),
    "a time with its unit": Mistake(
        "check FILE", "should be a number of seconds; it is '5m'", f"timeout: 5m\nsteps: [{LOOK}]\n"
    ),
    "retries as a number": Mistake(
        "check FILE",
        "should be an object (`name: value`); it is 3",
        f"steps: [{LOOK.removesuffix('}')}, retry: 3}}]\n",
    ),
    "no id": Mistake("check FILE", "'id' is missing; add it", "steps: [{tool: sleep}]\n"),
    "dependencies as GitHub Actions call them": Mistake(
        "check FILE",
        "there is no field 'needs'; did you mean 'dependsOn'?",
        f"steps: [{LOOK}, {{id: b, tool: sleep, args: {{seconds: 1}}, needs: [look]}}]\n",
    ),
    "a command as other programs call it": Mistake(
        "check FILE",
        "run_command has no argument 'cmd'; did you mean 'command'?",
        "steps: [{id: a, tool: run_command, args: {cmd: ls}}]\n",
    ),
    "code that is not Python": Mistake(
        "check FILE",
        "the code is not Python: line 2: expected ':'",
        'steps: [{id: a, tool: run_python, args: {code: "x = 1\\nif x\\n  pass"}}]\n',
    ),
    "a misspelt field": Mistake(
        "check FILE",
        "there is no field 'dependOn'; did you mean 'dependsOn'?",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, dependOn: []}]\n",
    ),
    "a misspelt tool": Mistake(
        "check FILE", "did you mean 'list_directory'?", "steps: [{id: a, tool: list_directroy, args: {path: .}}]\n"
    ),
    "no tool": Mistake(
        "check FILE",
        "Unknown tool: null; name a tool, `plan tools` lists them",
        "steps: [{id: a, tool: , args: {}}]\n",
    ),
    "a misspelt argument": Mistake(
        "check FILE", "did you mean 'path'?", "steps: [{id: a, tool: list_directory, args: {pth: .}}]\n"
    ),
    "an argument is missing": Mistake(
        "check FILE", "read_file needs 'path'; add it", "steps: [{id: a, tool: read_file, args: {}}]\n"
    ),
    "an argument without a value": Mistake(
        "check FILE",
        "Invalid args for list_directory: null is not of type string",
        "steps: [{id: a, tool: list_directory, args: {path: }}]\n",
    ),
    "a misspelt dependency": Mistake(
        "check FILE", "did you mean 'look'?", f"steps: [{LOOK}, {{id: b, tool: sleep, dependsOn: [lok]}}]\n"
    ),
    "a cycle": Mistake(
        "check FILE",
        "PLAN_CYCLE",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, dependsOn: [b]},"
        " {id: b, tool: sleep, args: {seconds: 1}, dependsOn: [a]}]\n",
    ),
    "an id twice": Mistake("check FILE", "PLAN_DUPLICATE_ID", f"steps: [{LOOK}, {LOOK}]\n"),
    "a key twice": Mistake("check FILE", "PLAN_DUPLICATE_KEY", "title: a\ntitle: b\nsteps: []\n"),
    "a number without backticks": Mistake(
        "check FILE", "a number is written in backticks, as in a > `0`",
        f"steps: [{LOOK}, {{id: b, tool: sleep, args: {{seconds: 1}}, when: look > 0}}]\n",
    ),
    "a result that the run sets": Mistake(
        "check FILE", "'status' is set by the run, not by the plan; remove it",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, status: completed}]\n",
    ),
    "broken JSON": Mistake("check FILE", "PLAN_NOT_JSON", '{"steps": ['),
    "a missing file": Mistake("check missing.yaml", "NOT_FOUND: there is no file missing.yaml; check the path"),
    "a directory": Mistake("check .", "NOT_REGULAR: . is a directory; pass a plan file in it"),
    "an option that there is not": Mistake("check FILE --jsn", "BAD_USAGE: No such option: --jsn"),
    "a command of another program": Mistake("status etl", "No such command 'status': `plan show ID` shows one plan"),
    "a misspelt command": Mistake("shwo", "BAD_USAGE: No such command 'shwo'. Did you mean 'show'?"),
    "no id of a plan": Mistake("show", "BAD_USAGE: Missing argument 'ID': name a plan; `plan list` shows them."),
    "no step": Mistake(
        "approve ID",
        "BAD_USAGE: Missing argument 'STEP': name a step; `plan show ID` lists them, "
        "`plan pending ID` those that await a decision.",
    ),
    "no file": Mistake("run", "BAD_USAGE: Missing argument 'FILE': name a plan file; `plan init` makes a first one."),
    "a count that is a word": Mistake(
        "run FILE --max-parallel x", "BAD_USAGE: Invalid value for '--max-parallel': should be a whole number"
    ),
    "a limit of nothing": Mistake(
        "list --limit 0", "BAD_USAGE: Invalid value for '--limit': should be greater than or equal to 1"
    ),
    "a status that there is not": Mistake("list --status done", "BAD_USAGE: --status 'done' is not a status of a plan"),
    "a time that is none": Mistake("list --since never", "BAD_USAGE: --since 'never' is not a time; write 90m, 2h, 3d"),
    "an empty setting": Mistake(
        "list", "BAD_SETTING: PLANS_MODEL: should not be empty (it is '')", environ={"PLANS_MODEL": ""}
    ),
    "a setting that is no number": Mistake(
        "list",
        "BAD_SETTING: PLANS_OUTPUT_MB: should be a whole number (it is 'x')",
        environ={"PLANS_OUTPUT_MB": "x"},
    ),
    "a setting out of bounds": Mistake(
        "list",
        "BAD_SETTING: PLANS_OUTPUT_MB: should be greater than or equal to 1 (it is '-1')",
        environ={"PLANS_OUTPUT_MB": "-1"},
    ),
    "a setting of a few words": Mistake(
        "list",
        "BAD_SETTING: PLANS_APPROVALS: should be 'normal' or 'strict' (it is 'x')",
        environ={"PLANS_APPROVALS": "x"},
    ),
    "a misspelt setting": Mistake(
        "list", "BAD_SETTING: PLANS_WORKSPCE: unknown setting; did you mean", environ={"PLANS_WORKSPCE": "."}
    ),
    "an address without a port": Mistake(
        "list",
        "BAD_SETTING: TEMPORAL_ADDRESS: 'localhost' is not HOST:PORT with a port from 1 to 65535",
        environ={"TEMPORAL_ADDRESS": "localhost"},
    ),
    "a URL as the address": Mistake(
        "list",
        "BAD_SETTING: TEMPORAL_ADDRESS: 'http://localhost:7233' is a URL; write HOST:PORT alone, as in 127.0.0.1:7233",
        environ={"TEMPORAL_ADDRESS": "http://localhost:7233"},
    ),
    "nobody listens": Mistake(
        "list",
        "NOT_CONNECTED: No Temporal server could be reached at 127.0.0.1:1: connection refused. Start it, or set",
        environ={"TEMPORAL_ADDRESS": "127.0.0.1:1"},
        code=3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
async def test_a_mistake_before_a_server_is_asked(name: str, tmp_path: Path) -> None:
    mistake = FILES[name]
    file = tmp_path / ("plan.json" if mistake.file.startswith("{") else "plan.yaml")
    file.write_text(mistake.file)
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path / "state"), **mistake.environ}
    arguments = [str(file) if each == "FILE" else each for each in mistake.arguments.split()]
    answered = await plan(environ, *arguments)
    assert answered.code == mistake.code, answered.err
    assert mistake.says in answered.err, answered.err
    for technical in ("NoneType", "None is not", "valid dictionary", "Traceback", "UNEXPECTED"):
        assert technical not in answered.err


STARTED: dict[str, tuple[str, str, int]] = {
    "a plan whose id is misspelt": ("show IDD", "`plan list` shows the plans; did you mean 'ID'?", 4),
    "a plan that there is not": ("show nope", "PLAN_NOT_FOUND: there is no plan 'nope' on this server; `plan list`", 4),
    "an id that cannot be": ("show a/b", "BAD_PLAN_ID: 'a/b' is not a plan id: use 1 to 200 letters, digits,", 2),
    "an id that was used": ("run FILE --id ID", "PLAN_EXISTS: the id 'ID' has been used before, and ids are never", 2),
    "a step that there is not": ("show ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "approving it": ("approve ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "denying it": ("deny ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "removing it": ("remove ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "skipping it": ("skip ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "moving it": ("move ID nope --after gate", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "moving a step behind it": ("move ID gate --after nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "editing it": ("edit ID --set nope.args.x=1", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "its logs": ("logs ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "an argument that there is not": ("edit ID --set gate.args.comand=1", "did you mean 'command'?", 2),
    "an edit of nothing": ("edit ID", "BAD_USAGE: Missing option '--set'.", 2),
    "arguments that are no JSON": ("approve ID gate --args x", "INVALID_ARGS: --args is not valid JSON", 2),
    "an answer to no question": ("answer ID gate x", "NOT_A_QUESTION: step 'gate' asks no question", 2),
    "an event without a name": ("event ID ''", "BAD_MESSAGE: '' cannot name an event; use letters, digits and", 2),
    "beginning a plan that runs": ("begin ID", "NOT_IN_REVIEW: the plan is running, not in review", 2),
    "unpausing a plan that runs": ("unpause ID", "NOT_PAUSED: the plan is running, not paused", 2),
    "resuming a plan that runs": ("resume ID", "NOT_ENDED: plan 'ID' has not ended; stop it first with `plan", 2),
    "undoing a plan that runs": ("undo ID", "NOT_ENDED: plan 'ID' is still running; wait until it ends, or", 2),
    "feedback without words": ("regenerate ID ''", "BAD_REQUEST: the feedback is empty; say what the LLM should", 2),
    "an input that there is not": ("run FILE --input a=1", "the plan has no input 'a'", 2),
    "a template that there is not": ("template run nope", "UNKNOWN_TEMPLATE: there is no template 'nope'; `plan", 2),
    "a schedule that there is not": ("schedule show nope", "SCHEDULE_NOT_FOUND: there is no schedule 'nope' on", 4),
    "a schedule that cannot be": ("schedule create x FILE --cron x", "BAD_SCHEDULE: --cron 'x' does not have 5", 2),
    "a workspace that there is not": ("run FILE --workspace /nope", "BAD_WORKSPACE: --workspace: /nope is not a", 2),
    "a screen in a pipe": ("review ID", "NO_TERMINAL: plan review needs a terminal", 2),
}


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_mistake_about_a_plan_that_runs(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    gate = {"id": "gate", "tool": "run_command", "args": {"command": "true"}, "requiresApproval": True}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"steps": [gate]}))
    name = str((await plan(environ, "start", str(file), "--json")).json["planId"])

    async def asks() -> Any:
        return (await plan(environ, "pending", name, "--json")).json

    await until(asks, "it asks")
    wrong = {}
    for what, (command, says, code) in STARTED.items():
        words = {"FILE": str(file), "ID": name, "IDD": f"{name}d", "''": ""}
        answered = await plan(environ, *(words.get(each, each) for each in command.split()))
        if says.replace("ID'", f"{name}'") not in answered.err or answered.code != code:
            wrong[what] = (answered.code, answered.err)
    assert not wrong
    assert (await plan(environ, "deny", name, "gate")).code == 0
    assert (await plan(environ, "watch", name)).code == 1
    ended = await plan(environ, "approve", name, "gate")
    assert ended.err.startswith(
        f"PLAN_CLOSED: plan '{name}' has ended: nothing is decided there any more; `plan resume"
    )
    assert "digest" not in ended.err


async def test_an_http_port_given_as_the_server_is_recognised(environ: Environ, settings: Settings) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        answered = await plan(environ | {"TEMPORAL_ADDRESS": f"127.0.0.1:{port}"}, "list")
    assert answered.code == 3
    assert (
        "something answers there, but it does not speak gRPC. Is it an HTTP port, such as that of the Temporal UI?"
        in (answered.err)
    )
