"""Finds the name that a misspelt one probably means, with bounded work.

Comparing two names takes time proportional to the product of their lengths, and a hostile plan can misspell 200,000 of
them: so all hints of one check share an allowance, and the mistakes after it are reported without a hint. The
allowance is a count and not a time, since a check inside a workflow must give the same texts when it is replayed.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

MAX_NAMES = 1_000
"""Among more names than this nothing is searched."""
MAX_CHARACTERS = 128
"""Longer names get no hint; ids are not longer."""
ALLOWANCE = 1_000_000
"""Pairs of characters compared in one check: 50 mistakes among 200 names of 10 letters, in at most a quarter second."""
ELSEWHERE = {
    "needs": "dependsOn", "requires": "dependsOn", "after": "dependsOn", "dependencies": "dependsOn",
    "deps": "dependsOn", "upstream": "dependsOn", "if": "when", "condition": "when", "uses": "tool", "action": "tool",
    "operator": "tool", "with": "args", "params": "args inputs", "parameters": "args inputs", "arguments": "args",
    "vars": "inputs", "variables": "inputs", "retries": "retry", "retryPolicy": "retry",
    "tasks": "steps", "then": "steps", "do": "steps",
    "dagId": "id", "taskId": "id", "workflowId": "id", "defaultArgs": "defaults", "maxActiveTasks": "maxParallel",
    "in": "items", "list": "items", "over": "items", "var": "as", "variable": "as", "times": "limit",
    "maxTurns": "maxCalls", "maxIterations": "maxCalls", "maxSteps": "maxCalls", "maxRequests": "maxCalls",
    "every": "delay", "interval": "delay", "maxAttempts": "attempts", "maximumAttempts": "attempts",
    "approvers": "by", "deadline": "timeout", "cmd": "command", "script": "code", "filename": "path", "file": "path",
    "bash": "run_command", "sh": "run_command", "shell": "run_command", "exec": "run_command", "cat": "read_file",
    "curl": "http_request", "http": "http_request", "fetch": "http_request", "rm": "delete_file",
    "read": "read_file", "view": "read_file", "write": "write_file", "create": "write_file", "edit": "edit_file",
    "multiedit": "edit_file", "str_replace": "edit_file", "grep": "find_files", "glob": "find_files",
    "search": "find_files", "webfetch": "http_request", "python": "run_python", "mkdir": "create_directory",
    "task": "agent", "todowrite": "agent",
    "ls": "list_directory", "wait": "sleep", "input": "ask", "question": "ask", "approval": "ask", "llm": "agent",
}  # fmt: skip
"""Names that other programs have for fields of plans, arguments of tools, and tools; those of several, the first that
is known counts. Whether parts of a name are joined by `-`, `_` or a capital is the same."""
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
ANSWERS = {
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
    "secrets": "a secret is named where it is used: `{{secret.NAME}}`",
}  # fmt: skip
"""Fields of other programs that no field of plans and steps stands for, and what to write instead; the parts of a name
may be joined in any way, as in ELSEWHERE."""
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
MIN_COST = 10_000
"""What each hint costs at least: there are at most 100 per check."""


def named_elsewhere(name: str, known: Collection[str]) -> str:
    """The known field or argument that another program calls by this name; empty if there is none."""
    meant = ELSEWHERE.get(name) or _FOLDED.get(_folded(name), "")
    return next((each for each in meant.split() if each in known), "")


def answer(name: str) -> str:
    """What is said of a field of other programs; empty if nothing is."""
    return ANSWERS.get(name) or _FOLDED_ANSWERS.get(_folded(name), "")


def _folded(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


_FOLDED = {_folded(name): meant for name, meant in ELSEWHERE.items()}
_FOLDED_ANSWERS = {_folded(name): text for name, text in ANSWERS.items() if _folded(name)}


class Hints:
    """The hints of one check. Share one between all mistakes of a plan."""

    def __init__(self, allowance: int = ALLOWANCE) -> None:
        self._left = allowance

    def near(self, name: str, known: Collection[str]) -> str:
        """The known name that is most similar; empty if none is, or the allowance is used up."""
        if self._left <= 0 or len(known) > MAX_NAMES or len(name) > MAX_CHARACTERS:
            return ""
        candidates = [other for other in sorted(known) if len(other) <= MAX_CHARACTERS]
        self._left -= max(len(name) * sum(map(len, candidates)), MIN_COST)
        return next(iter(get_close_matches(name, candidates, 1, 0.65)), "") if self._left >= 0 else ""

    def question(self, name: str, known: Collection[str]) -> str:
        """`; did you mean 'x'?`, or nothing."""
        near = self.near(name, known)
        return f"; did you mean '{near}'?" if near else ""
