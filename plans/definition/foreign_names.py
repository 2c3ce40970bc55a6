"""What other programs call fields of plans, tools, arguments and values: what is meant, or what to write instead."""

from __future__ import annotations

from collections.abc import Collection

from plansurvive.plans.definition.near_names import NONE, Foreign, Hints, folded
from plansurvive.plans.definition.scopes import ERROR, INDEX, KEY, ROUND, STATUS, VALUE
from plansurvive.plans.expressions.references import INPUTS

_NAMES = {
    "needs": "dependsOn", "requires": "dependsOn", "after": "dependsOn", "dependencies": "dependsOn",
    "deps": "dependsOn", "upstream": "dependsOn", "if": "when", "condition": "when", "uses": "tool", "action": "tool",
    "operator": "tool", "with": "args", "params": "args inputs", "parameters": "args inputs", "arguments": "args",
    "vars": "inputs", "variables": "inputs", "retries": "retry", "retryPolicy": "retry",
    "tasks": "steps", "then": "steps", "do": "steps",
    "dagId": "id", "taskId": "id", "workflowId": "id", "defaultArgs": "defaults", "maxActiveTasks": "maxParallel",
    "in": "items", "list": "items", "over": "items", "var": "as", "variable": "as", "times": "limit",
    "maxTurns": "maxCalls", "maxIterations": "maxCalls", "maxSteps": "maxCalls", "maxRequests": "maxCalls",
    "every": "delay", "interval": "delay", "maxAttempts": "attempts limit",
    "maximumAttempts": "attempts limit", "limit": "attempts", "backoff": "factor", "multiplier": "factor",
    "backoffCoefficient": "factor", "backoffFactor": "factor",
    "approvers": "by", "deadline": "timeout", "cmd": "command", "script": "code", "filename": "path", "file": "path",
    "bash": "run_command", "sh": "run_command", "shell": "run_command", "exec": "run_command", "cat": "read_file",
    "curl": "http_request", "http": "http_request", "fetch": "http_request", "rm": "delete_file",
    "read": "read_file", "view": "read_file", "write": "write_file", "create": "write_file", "edit": "edit_file",
    "multiedit": "edit_file", "str_replace": "edit_file", "grep": "find_files", "glob": "find_files",
    "search": "find_files", "webfetch": "http_request", "python": "run_python", "mkdir": "create_directory",
    "task": "agent", "todowrite": "agent",
    "ls": "list_directory", "wait": "sleep", "input": "ask", "question": "ask", "approval": "ask", "llm": "agent",
}  # fmt: skip
"""Names that other programs have for fields of plans, arguments of tools, and tools."""
_GITHUB = "this looks like a GitHub Actions workflow, of which `plan import FILE` makes a plan"
_NO_STEPS = "a plan has a list of `steps`: `plan init` makes a first one"
_COMMAND = "a command is `tool: run_command` with `args: {command: ...}`"
_PYTHON = "Python code is `tool: run_python` with `args: {code: ...}`"
_DIRECTORY = "the directory of a command is in its step: `args: {command: ..., cwd: DIR}`"
_SECONDS = "a time is in seconds: five minutes are `timeout: 300`"
_LOOP = "a loop is `forEach: {items: LIST}`"
_ELSE = "an alternative of a `switch` without `when` always holds: write it last, as `- steps: [...]`"
_PLACE = "a step runs on a worker that is there already; `queue` names the task queue of another one"
_NOT_STARTED = "nothing in a plan starts it; `plan schedule create` runs it at set times"
_CONTINUES = (
    "a failed step stops what depends on it alone, unless it is `critical`; `catch` continues with other steps, and "
    "run_command takes `allowFailure: true`"
)
_ANSWERS = {
    "jobs": _GITHUB, "on": _NOT_STARTED, "trigger": _NOT_STARTED, "triggers": _NOT_STARTED,
    "scheduleInterval": _NOT_STARTED, "timetable": _NOT_STARTED, "startDate": _NOT_STARTED, "catchup": _NOT_STARTED,
    "schedule": "`plan schedule create NAME FILE --cron ...` runs a plan at set times",
    "cron": "`plan schedule create NAME FILE --cron ...` runs a plan at set times",
    "run": _COMMAND, "shell": _COMMAND, "command": _COMMAND, "cmd": _COMMAND, "script": _COMMAND,
    "bashCommand": _COMMAND, "pythonCallable": _PYTHON, "workingDirectory": _DIRECTORY, "workingDir": _DIRECTORY,
    "workdir": _DIRECTORY, "timeoutMinutes": _SECONDS, "timeoutSeconds": _SECONDS, "executionTimeout": _SECONDS,
    "startToCloseTimeout": _SECONDS, "runsOn": _PLACE, "runner": _PLACE, "image": _PLACE, "container": _PLACE,
    "as": "the name of an item is part of the loop: `forEach: {items: LIST, as: NAME}`",
    "env": "the environment of a command is in its step: `args: {command: ..., env: {NAME: VALUE}}`",
    "name": "a plan has a `title`, a step an `id` and a `description`",
    "continueOnError": _CONTINUES, "allowFailure": _CONTINUES, "ignoreErrors": _CONTINUES, "triggerRule": _CONTINUES,
    "parallel": "steps run side by side unless one depends on another; `maxParallel` limits how many",
    "loop": _LOOP, "foreach": _LOOP, "strategy": _LOOP, "matrix": _LOOP, "withItems": _LOOP,
    "<<": "merges of YAML are not read: write the fields in each step; `defaults` of the plan has those that all share",
    "else": _ELSE, "default": _ELSE, "otherwise": _ELSE,
    "dryRun": "`plan run FILE --dry-run` says what a plan would do",
    "secrets": "a secret is named where it is used: `{{secret.NAME}}`",
}  # fmt: skip
"""Fields of other programs that no field of plans and steps stands for, and what to write instead."""
FIELDS, CALLS = Foreign(_NAMES, _ANSWERS), Foreign(_NAMES)
"""Of the fields of a plan; of tools and their arguments."""
_ASKS = "a person is asked by a step of the tool `ask`, as in `catch: [{steps: [{id: ..., tool: ask, args: ...}]}]`"
_RETRIES = "`retry: {attempts: 3}` makes more attempts first"
_UNDOES = "`rollback: true` of the plan undoes what its steps have done, as the `undo` of each says"
_BESIDE = "items run side by side, at most `maxParallel` at a time; `maxParallel: 1` takes one after another"
_TYPES = {
    "str": "string", "text": "string", "char": "string", "date": "string", "path": "string", "file": "string",
    "int": "integer", "long": "integer", "float": "number", "double": "number", "decimal": "number", "bool": "boolean",
    "list": "array", "tuple": "array", "set": "array", "dict": "object", "map": "object", "json": "object",
    "struct": "object",
}  # fmt: skip
VALUES = {
    "onFailure": Foreign(
        {
            **dict.fromkeys(("abort", "fail", "failFast", "terminate", "cancel", "halt", "exit", "error"), "stop"),
            **dict.fromkeys(("llm", "repair", "recover", "fix", "heal"), "ask_llm"), "default": "block",
        },
        {
            **dict.fromkeys(("continue", "ignore", "skip", "warn", "pass", "proceed", "none", "never"), _CONTINUES),
            **dict.fromkeys(("retry", "restart", "repeat"), _RETRIES),
            **dict.fromkeys(("rollback", "undo", "revert", "compensate"), _UNDOES),
            **dict.fromkeys(("pause", "wait", "ask", "askPerson", "approve", "approval", "escalate", "manual"), _ASKS),
        },
    ),
    "onTimeout": Foreign({
        **dict.fromkeys(("reject", "refuse", "denied", "rejected", "cancel", "expire", "no"), "deny fail"),
        **dict.fromkeys(("skip", "ignore"), "deny"),
        **dict.fromkeys(("allow", "accept", "approved", "accepted", "proceed", "yes", "pass"), "approve default"),
        **dict.fromkeys(("error", "abort", "stop", "failed", "raise", "deny"), "fail"),
        **dict.fromkeys(("continue", "useDefault"), "approve default"),
    }),
    "mode": Foreign({"children": "plans", "child": "plans", "workflows": "plans"}, dict.fromkeys(
        ("parallel", "concurrent", "sequential", "serial", "ordered"), _BESIDE
    )),
    "keep": Foreign({"latest": "last", "none": "last", "every": "all", "list": "all"}),
    "type": Foreign(_TYPES, dict.fromkeys(
        ("secret", "password"), "name a secret where it is used: `{{secret.NAME}}`"
    )),
    "on": Foreign({
        **dict.fromkeys(("done", "success", "succeeded", "finished", "complete", "end"), "completed"),
        **dict.fromkeys(("failure", "error", "fail", "failing"), "failed"),
        **dict.fromkeys(("waiting", "approval", "pending", "question", "blocked"), "awaiting"),
        **dict.fromkeys(("canceled", "aborted", "stopped"), "cancelled"), "cost": "budget", "limit": "budget",
    }),
}  # fmt: skip
"""By field or argument with certain values, what other programs call these."""
FORMATS = {
    "jobs": _GITHUB,
    "do": "this looks like a Serverless Workflow, of which `plan import FILE` makes a plan",
    "stages": f"this looks like a pipeline of another program; {_NO_STEPS}",
    "services": f"this looks like a Compose file; {_NO_STEPS}",
    "apiVersion": f"this looks like a file of Kubernetes; {_NO_STEPS}",
}
"""By a field that a file without steps has, what it is: the answer to the whole file."""
ARGUMENTS = frozenset({
    "path", "content", "text", "code", "url", "method", "headers", "body", "pattern", "cwd", "allowFailure", "choices",
    "objective", "prompt", "event", "match", "oldText", "newText", "steps", "inputs", "file", "template", "agent",
})  # fmt: skip
"""Arguments of tools that people write beside `tool` instead of in `args`."""
_ITEMS = ("item", "each", "loop", "matrix", "it", "element", "entry", "row", "value", "current")
"""What other programs call the item of a loop."""
_PARTS = {"each": {"value": ""}, "loop": {"item": "", "index0": INDEX, "index": INDEX, "key": KEY}}
"""Those that are an object there: what stands for each of their fields here; nothing stands for the item itself."""


def item_instead(root: str, path: str, item: str) -> str:
    """What to write for a name of other programs, where the loop calls its item `item`; empty if it is none of them."""
    if not item or root not in _ITEMS:
        return ""
    field, _, rest = path.strip().partition(".")
    if root == "each" and field == KEY:
        return KEY
    if root == "matrix":
        field, path = "", rest
    if field in _PARTS.get(root, {}):
        item, path = _PARTS[root][field] or item, rest
    path = path.strip()
    return f"{item}{path if path.startswith('[') else f'.{path}'}" if path and not path.startswith("@") else item


_VARIABLES = {
    VALUE: ("result", "results", "output", "outputs", "self", "step", "this", "response", "outcome", "returned"),
    ERROR: ("err", "exception", "failure", "errors", "cause"), STATUS: ("result", "outcome", "state"),
    ROUND: ("iteration", "attempt", "retry", "count"), INDEX: ("i", "idx", "position"),
}  # fmt: skip
"""What other programs call the variables of constructs."""


def variable_instead(root: str, path: str, variables: Collection[str]) -> str:
    """What to write for the name of other programs for one of these variables; empty if it is none of them."""
    own = next((each for each, names in _VARIABLES.items() if each in variables and root in names), "")
    path = path.strip()
    if own == VALUE and root in ("self", "step", "this"):
        field, _, rest = path.partition(".")
        path = rest if field in _VARIABLES[VALUE] else path
    joined = path if path.startswith(("[", "|")) else f".{path}"
    return f"{own}{joined}" if own and path and not path.startswith("@") else own


def value_instead(root: str, path: str) -> str:
    """What to write for a value that other programs have under this root, `needs.a.outputs.x`; empty: it is none."""
    if root in ("steps", "needs") and path:
        name, _, field = path.removesuffix(" ").partition(".")
        return ".".join(filter(None, (name, field.removeprefix("outputs."))))
    return f"{INPUTS}.{path or 'NAME'}" if root in ("input", "params", "vars") else ""


def value_meant(field: str, value: object, allowed: Collection[str]) -> str:
    """Which value of a field is meant by one that it does not take, as the end of a sentence; empty: none is."""
    if not isinstance(value, str) or not value:
        return ""
    same = next((each for each in allowed if folded(each) == folded(value)), "")
    return f"; did you mean '{same}'?" if same else Hints().question(value, allowed, VALUES.get(field, NONE))


def type_named(name: str) -> str:
    """The type of JSON Schema that a text names, in its own word or that of other programs; empty: none."""
    types = ("string", "integer", "number", "boolean", "array", "object", "null")
    return name if name in types else VALUES["type"].meant(name, types)


def no_tool(name: str, tools: Collection[str]) -> str:
    """What is said where a tool is named that there is not."""
    return f"there is no tool '{name}'{Hints().question(name, tools, CALLS) or '; `plan tools` lists them'}"
