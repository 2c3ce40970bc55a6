"""The mistakes that new users make: each is answered with what is wrong, where, and what to do; nothing is started."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
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
    where: str = ""
    """The step and the field, as far as the row does not name them."""


FILES: dict[str, Mistake] = {
    "a tab": Mistake(
        "check FILE",
        "line 2, column 1: a tab; YAML is indented with spaces, so replace the tabs at the beginning of lines",
        "steps:\n\t- {id: a}\n",
    ),
    "an empty file": Mistake(
        "check FILE", "a plan is an object with steps, this is empty; `plan init` makes a first one", ""
    ),
    "an option that takes one value, twice": Mistake(
        "rerun ID --only a --only b", "--only is given 2 times, and takes one value"
    ),
    "a list instead of a plan": Mistake(
        "check FILE", "a plan is an object with steps, this is a list; `plan init` makes a first one", "- a\n"
    ),
    "a text instead of a plan": Mistake(
        "check FILE", "a plan is an object with steps, this is a text; `plan init` makes a first one", "hello\n"
    ),
    "steps without a value": Mistake("check FILE", "should be a list, such as `steps: [{id: look,", "steps:\n"),
    "no steps": Mistake("check FILE", "the plan is empty; add at least one step", "steps: []\n"),
    "steps are missing": Mistake("check FILE", "'steps' is missing; add it", "title: A\n"),
    "args without a value": Mistake(
        "check FILE", "such as `args: {path: a.txt}`; it is null", "steps: [{id: a, tool: sleep, args: }]\n"
    ),
    "a dependency that is not in a list": Mistake(
        "check FILE", "should be a list, such as `dependsOn: [STEP]`; it is 'b'",
        f"steps: [{LOOK}, {{id: b, tool: sleep, dependsOn: b}}]\n"
    ),
    "a workflow of GitHub Actions": Mistake(
        "check FILE",
        "1 problem\n  PLAN_SCHEMA  line 2, jobs\n    there is no field 'jobs'; this looks like a GitHub Actions"
        " workflow, of which `plan import /",
        "name: CI\njobs: {a: {}}\non: push\n",
    ),
    "a file of Airflow": Mistake(
        "check FILE", "there is no field 'tasks'; did you mean 'steps'?", "dag_id: a\ntasks: [{task_id: a}]\n",
        where="2 problems\n  PLAN_SCHEMA  line 1, dag_id\n    there is no field 'dag_id'; did you mean 'id'?",
    ),
    "a time table as Airflow has it": Mistake(
        "check FILE", "there is no field 'schedule_interval'; nothing in a plan starts it; `plan schedule create` runs",
        f"schedule_interval: '@daily'\n{OK}",
    ),
    "retries as Temporal has them": Mistake(
        "check FILE", "there is no field 'retryPolicy'; did you mean 'retry'?",
        f"steps: [{{retryPolicy: {{maximumAttempts: 3}}, {LOOK[1:]}]\n",
    ),
    "a directory of a command beside it": Mistake(
        "check FILE", "there is no field 'working-directory'; the directory of a command is in its step: `args: {comm",
        f"steps: [{{working-directory: src, {LOOK[1:]}]\n",
    ),
    "minutes": Mistake(
        "check FILE", "there is no field 'timeout-minutes'; a time is in seconds: five minutes are `timeout: 300`",
        f"steps: [{{timeout-minutes: 5, {LOOK[1:]}]\n",
    ),
    "a number in quotes in a condition": Mistake(
        "check FILE", "the comparison is never true: a number is compared with a text; write `0`, in backticks",
        "steps: [{id: a, tool: run_command, args: {command: ls}},"
        f" {{when: a.exitCode == '0', {LOOK[1:]}]\n", code=0, where="step 'look', when",
    ),
    "a text without quotes in a condition": Mistake(
        "check FILE", "the comparison is always true: a text is compared with a number; write '5', in single quotes",
        "steps: [{id: a, tool: run_command, args: {command: ls}},"
        f" {{when: a.stdout != `5`, {LOOK[1:]}]\n", code=0,
    ),
    "a pattern of files for the items of a loop": Mistake(
        "check FILE",
        "'*.csv' names no step; if it is a pattern of files, find them with a step (`tool: find_files`, `args: {pat",
        "steps: [{id: a, forEach: '*.csv', tool: read_file, args: {path: '{{item}}'}}]\n", where="forEach.items",
    ),
    "turns of an agent": Mistake(
        "check FILE", "agent has no argument 'maxTurns'; did you mean 'maxCalls'?",
        "steps: [{id: a, tool: agent, args: {objective: Fix it, maxTurns: 10}}]\n",
    ),
    "a reference at the beginning of a text": Mistake(
        "check FILE", "inside a text write '{{a.stdout}} lines', or $$ at the beginning for a dollar sign",
        "steps: [{id: a, tool: run_command, args: {command: ls}},"
        " {id: b, tool: write_file, args: {path: b, content: $a.stdout lines}}]\n", where="step 'b', args.content",
    ),
    "an output with a dollar sign": Mistake(
        "check FILE", "an expression has no dollar sign: write look (unexpected '$' at column 1)",
        f"outputs: {{x: $look}}\n{OK}", where="line 1, outputs.x",
    ),
    "a condition with a dollar sign": Mistake(
        "check FILE", "an expression has no dollar sign: write a.exitCode == `0` (",
        "steps: [{id: a, tool: run_command, args: {command: ls}},"
        f" {{when: $a.exitCode == `0`, {LOOK[1:]}]\n",
    ),
    "an output with braces": Mistake(
        "check FILE", "an expression has no braces: write look (", f"outputs: {{x: '${{{{ look }}}}'}}\n{OK}"
    ),
    "a secret where there is none": Mistake(
        "check FILE", "there is no secret TOKEN that http_request may use; write [secrets.TOKEN] with `from`, `tools`",
        "steps: [{id: a, tool: http_request, args: {url: 'https://a.b', headers: {X: '{{secret.TOKEN}}'}}}]\n",
        where="args.headers.X",
    ),
    "a Markdown text around a plan": Mistake(
        "check FILE", "line 1, column 1: this is Markdown: keep what is between the lines with ```, without these",
        f"```yaml\n{OK}```\n",
    ),
    "a step without an id": Mistake("check FILE", "line 3, step '#1', id", "title: a\nsteps:\n- tool: sleep\n"),
    "an id that is none": Mistake(
        "check FILE", "line 4, step 'a b', id", "steps:\n- id: look\n  tool: sleep\n- id: a b\n  tool: sleep\n"
    ),
    "the second of two equal ids": Mistake(
        "check FILE", "PLAN_DUPLICATE_ID  line 3, step 'look', id", f"steps:\n- {LOOK}\n- {LOOK}\n"
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
        "check FILE", "should be a number of seconds; it is '5m': write 300", f"timeout: 5m\nsteps: [{LOOK}]\n"
    ),
    "a loop over a number": Mistake(
        "check FILE", "such as `forEach: {items: [a, b]}`; it is 5",
        f"steps: [{LOOK.removesuffix('}')}, forEach: 5}}]\n",
    ),
    "a deadline": Mistake(
        "check FILE", "there is no field 'deadline'; did you mean 'timeout'?", f"deadline: tomorrow\n{OK}"
    ),
    "a merge of YAML": Mistake(
        "check FILE", "there is no field '<<'; merges of YAML are not read: write the fields in each step",
        "steps:\n  - &a {id: a, tool: sleep, args: {seconds: 1}}\n  - {<<: *a, id: b}\n",
    ),
    "retries as a number": Mistake(
        "check FILE",
        "such as `retry: {attempts: 3}`; it is 3",
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
        "Invalid args for list_directory: should be a string; it is null",
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
    "a value as a dependency": Mistake(
        "check FILE", "name a step of the plan by its id alone, as in `dependsOn: [look]`",
        f"steps: [{LOOK}, {{id: b, tool: sleep, args: {{seconds: 1}}, dependsOn: [look.entries]}}]\n",
    ),
    "an approval as a word": Mistake(
        "check FILE", "it is 'required'; `requiresApproval: true` makes a step ask",
        f"steps: [{LOOK.removesuffix('}')}, approval: required}}]\n",
    ),
    "a misspelt value in an undo": Mistake(
        "check FILE", "'{{valu.path}}' is not a step of the plan; did you mean 'value'?",
        "steps: [{id: a, tool: write_file, args: {path: a, content: b},"
        " undo: {tool: delete_file, args: {path: '{{valu.path}}'}}}]\n",
        where="undo.args.path",
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
    "a secret by the name that other programs have": Mistake(
        "check FILE",
        "'{{secrets.TOKEN}}' is not a step of the plan; did you mean {{secret.TOKEN}}? For the literal text write",
        "steps: [{id: a, tool: http_request, args: {url: 'https://a.b', headers: {X: '{{secrets.TOKEN}}'}}}]\n",
        where="line 1, step 'a', args.headers.X",
    ),
    "a value as GitHub Actions name it": Mistake(
        "check FILE", "is not a step of the plan; did you mean {{look.stdout}}?",
        f"steps: [{LOOK}, {{id: b, tool: read_file, args: {{path: '${{{{ steps.look.outputs.stdout }}}}'}}}}]\n",
        where="step 'b', args.path",
    ),
    "a variable of the environment": Mistake(
        "check FILE", "'{{env.HOME}}' is not a step of the plan; a plan reads no environment: declare an input for it",
        "steps: [{id: a, tool: read_file, args: {path: '{{env.HOME}}'}}]\n", where="args.path",
    ),
    "an input by another name": Mistake(
        "check FILE", "'{{params.name}}' is not a step of the plan; did you mean {{inputs.name}}?",
        "steps: [{id: a, tool: read_file, args: {path: '{{params.name}}'}}]\n",
    ),
    "a misspelt input": Mistake(
        "check FILE", "'{{inputs.nam}}': the plan has no input 'nam'; did you mean 'name'?",
        "inputs: {name: {}}\nsteps: [{id: a, tool: read_file, args: {path: '{{inputs.nam}}'}}]\n",
    ),
    "a misspelt reference": Mistake(
        "check FILE", "'{{lok}}' is not a step of the plan; did you mean 'look'?",
        f"steps: [{LOOK}, {{id: b, tool: read_file, args: {{path: '{{{{lok}}}}'}}}}]\n", where="step 'b', args.path",
    ),
    "an item outside of its loop": Mistake(
        "check FILE", "'item' has a value only in a step with `forEach`",
        "steps: [{id: a, tool: read_file, args: {path: '{{item}}'}}]\n",
    ),
    "the item of a loop that has a name of its own": Mistake(
        "check FILE", "'{{item.name}}' is not a step of the plan; the item of this loop is {{f}}: write {{f.name}};",
        "steps: [{id: a, forEach: {items: [x], as: f}, tool: read_file, args: {path: '{{item.name}}'}}]\n",
    ),
    "the item of a loop as Terraform has it": Mistake(
        "check FILE", "'{{each.value}}' is not a step of the plan; the item of this loop is {{item}}; for the literal",
        "steps: [{id: a, forEach: [x], steps: [{id: b, tool: read_file, args: {path: '{{each.value}}'}}]}]\n",
        where="step 'a.b', args.path",
    ),
    "the item of a loop by another name in a condition": Mistake(
        "check FILE",
        "'item' is neither an earlier step nor `inputs`; write STEP.field; the item of this loop is called 'f' (",
        f"steps: [{{forEach: {{items: [x], as: f}}, when: item == 'x', {LOOK[1:]}]\n", where="when",
    ),
    "the item in the list of its own loop": Mistake(
        "check FILE", "'item' has a value only in a step with `forEach`", f"steps: [{{forEach: item, {LOOK[1:]}]\n",
        where="forEach.items",
    ),
    "the braces of GitHub Actions in a text": Mistake(
        "check FILE", "the dollar sign before '{{ inputs.n }}' stays in the text: leave it out, unless it is meant",
        "inputs: {n: {default: a}}\n"
        "steps: [{id: a, tool: write_file, args: {path: a, content: 'Hello ${{ inputs.n }}'}}]\n", code=0,
        where="step 'a', args.content",
    ),
    "the braces of GitHub Actions in a command": Mistake(
        "check FILE", "after a dollar sign in code: leave it out (`${{ }}` is the form of GitHub Actions, and {{ }}",
        "inputs: {n: {default: a}}\nsteps: [{id: a, tool: run_command, args: {command: 'echo ${{ inputs.n }}'}}]\n",
        where="step 'a', args.command",
    ),
    "the braces of GitHub Actions in Python": Mistake(
        "check FILE", "after a dollar sign in code: leave it out (`${{ }}` is the form of GitHub Actions, and {{ }}",
        "inputs: {n: {default: a}}\nsteps: [{id: a, tool: run_python, args: {code: 'n = ${{ inputs.n }}'}}]\n",
        where="step 'a', args.code",
    ),
    "a step inside a block, from outside": Mistake(
        "check FILE", "it is inside the block 'b': outside of it, write $b.look",
        f"steps: [{{id: b, steps: [{LOOK}]}}, {{id: c, tool: read_file, args: {{path: $look}}}}]\n",
    ),
    "a reference that is not closed": Mistake(
        "check FILE", "'{{look' is not a reference, as it does not end in }}: add what is missing",
        f"steps: [{LOOK}, {{id: b, tool: read_file, args: {{path: '{{{{look'}}}}]\n", code=0,
        where="step 'b', args.path",
    ),
    "a variable of the shell called as a step": Mistake(
        "check FILE", "'$look' is a variable of the shell here, and not the value of 'look': write {{look}} for that",
        f"steps: [{LOOK}, {{id: b, tool: run_command, args: {{command: echo $look}}}}]\n", code=0,
    ),
    "a value in quotes in Python": Mistake(
        "check FILE", "a value in Python code must stand by itself, outside quotes: data = {{step}}",
        f"steps: [{LOOK}, {{id: b, tool: run_python, args: {{code: 'print(\"{{{{look}}}}\")'}}}}]\n",
    ),
    "braces in a condition": Mistake(
        "check FILE", "an expression has no braces; a number is written in backticks, as in a > `0`: write look ==",
        f"steps: [{LOOK}, {{id: b, tool: sleep, args: {{seconds: 1}}, when: '{{{{look}}}} == 0'}}]\n",
        where="step 'b', when",
    ),
    "one sign of equality": Mistake(
        "check FILE", "equality is written ==: write look == `1` (unexpected '=' at column 6)",
        f"steps: [{LOOK}, {{id: b, tool: sleep, args: {{seconds: 1}}, when: look = `1`}}]\n",
    ),
    "a name with a hyphen in a condition": Mistake(
        "check FILE", "write \"a-b\".x == `0` (unexpected '-' at column 2); in YAML all of it in quotes: '\"a-b\".x ==",
        f"steps: [{LOOK.replace('look', 'a-b')}, {{id: b, tool: sleep, args: {{seconds: 1}}, when: a-b.x == 0}}]\n",
    ),
    "`and` in a condition": Mistake(
        "check FILE", "&&, || and ! stand for and, or, not: write look && look (unexpected 'and' at column 6)",
        f"steps: [{LOOK}, {{id: b, tool: sleep, args: {{seconds: 1}}, when: look and look}}]\n",
    ),
    "a text in double quotes in a condition": Mistake(
        "check FILE", "\"done\" in double quotes is the name of a field; write 'done' for the text",
        f"steps: [{LOOK}, {{id: b, tool: sleep, args: {{seconds: 1}}, when: 'look == \"done\"'}}]\n",
    ),
    "a condition that is true": Mistake(
        "check FILE", "should be a string; it is true; put it in quotes",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, when: true}]\n", where="line 1, step 'a', when",
    ),
    "a list of a loop as a text": Mistake(
        "check FILE", "a list is written in brackets: [a, b] (unexpected ',' at column 6)",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, forEach: 'a.txt,b.txt'}]\n", where="forEach.items",
    ),
    "an alternative as other programs write it": Mistake(
        "check FILE", "there is no field 'else'; an alternative of a `switch` without `when` always holds",
        f"steps: [{{id: a, switch: [{{when: inputs.x, steps: [{LOOK}]}}, {{else: true, steps: [{LOOK}]}}]}}]\n",
        where="step 'a', switch.1.else",
    ),
    "alternatives by name": Mistake(
        "check FILE", "it is {\"prod\": [1]}", "steps: [{id: a, switch: {prod: [1]}}]\n", where="step 'a', switch",
    ),
    "a share that is no percentage": Mistake(
        "check FILE", 'should be a number of items, or a percentage, such as `3` or `"10%"`; it is \'ten\'',
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, forEach: {items: [1], tolerate: ten}}]\n",
        where="forEach.tolerate",
    ),
    "a repetition as a number": Mistake(
        "check FILE", "such as `repeat: {until: EXPRESSION, limit: 10}`; it is 3",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, repeat: 3}]\n",
    ),
    "an undo as a text": Mistake(
        "check FILE", "such as `undo: {tool: delete_file, args: {path: a.txt}}`; it is 'delete_file'",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, undo: delete_file}]\n",
    ),
    "an input as its value": Mistake(
        "check FILE", "should be an object, such as `name: {type: string, default: ...}`; it is 'Ann'",
        f"inputs: {{name: Ann}}\n{OK}", where="inputs.name",
    ),
    "steps by name": Mistake(
        "check FILE", "should be a list, such as `steps: [{id: look, tool: list_directory, args: {path: .}}]`",
        "steps: {look: {tool: list_directory}}\n",
    ),
    "a number as an id": Mistake(
        "check FILE",
        "should be a string; it is 1; put it in quotes", "steps: [{id: 1, tool: sleep, args: {seconds: 1}}]\n"
    ),
    "an id with a space": Mistake(
        "check FILE", "'my step' is not a valid id: write 1 to 128 letters, digits, '_' or '-'",
        "steps: [{id: my step, tool: sleep, args: {seconds: 1}}]\n",
    ),
    "a step that may fail, as other programs write it": Mistake(
        "check FILE", "there is no field 'continueOnError'; a failed step stops what depends on it alone",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, continueOnError: true}]\n",
    ),
    "a time table in a plan": Mistake(
        "check FILE",
        "there is no field 'schedule'; `plan schedule create NAME /",
        f"schedule: 0 5 * * *\n{OK}",
    ),
    "a shell as a tool": Mistake(
        "check FILE", "Unknown tool: bash; did you mean 'run_command'?",
        "steps: [{id: a, tool: bash, args: {command: ls}}]\n", where="line 1, step 'a', tool",
    ),
    "the tools of another program for an agent": Mistake(
        "check FILE", "Unknown tool: Bash; did you mean 'run_command'?",
        "steps: [{id: a, tool: agent, args: {objective: Fix it., tools: [Bash, read_file]}}]\n",
        where="line 1, step 'a', args.tools",
    ),
    "a misspelt tool of a policy": Mistake(
        "policy test run_comand", "there is no tool 'run_comand'; did you mean 'run_command'?"
    ),
    "a step that depends on itself": Mistake(
        "check FILE", "Plan contains circular dependencies: the step depends on itself; remove that",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, dependsOn: [a]}]\n",
    ),
    "a colon in a text of YAML": Mistake(
        "check FILE",
        "line 1, column 12: a colon stands where no field can be: put a text that has ': ' in it in quotes",
        f"title: Note: this\n{OK}",
    ),
    "braces without quotes in YAML": Mistake(
        "check FILE", 'line 1, column 40: braces without quotes are an object in YAML; put the text in quotes: "{{a}}"',
        "steps: [{id: a, tool: x, args: {path: {{a}}}}]\n",
    ),
    "a text of YAML that begins with a star": Mistake(
        "check FILE", "`*` or `&` begins an alias in YAML; put the text in quotes", "title: *.csv\n"
    ),
    "a text of YAML that begins with a backtick": Mistake(
        "check FILE", "line 1, column 8: '`' cannot begin a value in YAML; put the text in quotes", "title: `a`\n"
    ),
    "two plans in one file": Mistake(
        "check FILE", "a second document begins here; write each plan into its own file", f"{OK}---\n{OK}"
    ),
    "a comment in JSON": Mistake(
        "check FILE",
        "line 2, column 1: JSON has no comments; remove it, or write the plan as YAML", '{\n// a\n"steps": []}'
    ),
    "single quotes in JSON": Mistake(
        "check FILE", "line 1, column 2: names and texts are written in double quotes", "{'steps': []}"
    ),
    "an extra comma in JSON": Mistake(
        "check FILE", "there is an extra comma", '{"steps": [],}'  # Python 3.13 names its column, older ones the next
    ),
    "a comma too few in JSON": Mistake(
        "check FILE", "line 2, column 1: a comma, or the end of the list or object, is missing before this",
        '{"title": "a"\n"steps": []}',
    ),
    "true as Python writes it": Mistake(
        "check FILE", "line 1, column 11: true, false and null are written in small letters", '{"title": True}'
    ),
    "JSON that ends too early": Mistake(
        "check FILE", "line 1, column 12: the text ends where a value is missing; add it, and close", '{"steps": ['
    ),
    "a backslash in JSON": Mistake(
        "check FILE", "line 1, column 14: a backslash in a text is written twice", '{"title": "C:\\path"}'
    ),
    "a path above the workspace": Mistake(
        "check FILE", "'../x.txt' is outside the workspace; write a path relative to the workspace",
        "steps: [{id: a, tool: write_file, args: {path: ../x.txt, content: b}}]\n", where="step 'a', args.path",
    ),
    "a path above the workspace before a reference": Mistake(
        "check FILE", "'a/../../' is outside the workspace",
        f"steps: [{LOOK}, {{id: b, tool: read_file, args: {{path: 'a/../../{{{{look[0].name}}}}'}}}}]\n",
    ),
    "a path in the home directory": Mistake(
        "check FILE", "'~/notes' is outside the workspace; write a path relative to the workspace",
        "steps: [{id: a, tool: list_directory, args: {path: ~/notes}}]\n",
    ),
    "an absolute path": Mistake(
        "check FILE", "'/etc/passwd' is outside the workspace '", code=0, where="step 'a', args.path",
        file="steps: [{id: a, tool: read_file, args: {path: /etc/passwd}}]\n",
    ),
    "a directory of a command above the workspace": Mistake(
        "check FILE", "'..' is outside the workspace", where="step 'a', args.cwd",
        file="steps: [{id: a, tool: run_command, args: {command: ls, cwd: ..}}]\n",
    ),
    "a URL as a path": Mistake(
        "check FILE", "'https://a.b/c' is a URL, and not a path; http_request reads URLs",
        "steps: [{id: a, tool: read_file, args: {path: 'https://a.b/c'}}]\n",
    ),
    "a URL without its scheme": Mistake(
        "check FILE", "'example.org/a' is not an http or https URL; write https://example.org/a",
        "steps: [{id: a, tool: http_request, args: {url: example.org/a}}]\n",
    ),
    "an address of this machine": Mistake(
        "check FILE", "'localhost' is not a public address: http_request refuses it unless PLANS_HTTP_ALLOW of the",
        "steps: [{id: a, tool: http_request, args: {url: 'http://localhost:8080/'}}]\n", code=0,
    ),
    "an address of this machine as the default of an input": Mistake(
        "check FILE", "'127.0.0.1' is not a public address: http_request refuses it unless PLANS_HTTP_ALLOW of the",
        "inputs: {at: {type: string, default: 'http://127.0.0.1:80'}}\n"
        "steps: [{id: a, tool: http_request, args: {url: '{{inputs.at}}/x'}}]\n", code=0,
    ),
    "a field that a command's result does not have": Mistake(
        "check FILE", "'{{a.output}}': the value has no field 'output'; it has stdout, stderr, exitCode",
        "steps: [{id: a, tool: run_command, args: {command: ls}},"
        " {id: b, tool: write_file, args: {path: x, content: '{{a.output}}'}}]\n",
    ),
    "a condition on a field that a command's result does not have": Mistake(
        "check FILE", "'a.output': the value has no field 'output'; it has stdout, stderr, exitCode",
        "steps: [{id: a, tool: run_command, args: {command: ls}},"
        " {id: b, tool: sleep, args: {seconds: 1}, when: a.output}]\n", where="step 'b', when",
    ),
    "a field of a step at the margin": Mistake(
        "check FILE", "'args' is a field of steps, and not of the plan: indent it like the other fields of its step",
        "steps:\n- id: a\n  tool: sleep\nargs: {seconds: 1}\n",
    ),
    "a field that is nothing like any other": Mistake(
        "check FILE", "there is no field 'all'; known: id, taskId, version, title", "all: {cmds: [ls]}\n"
    ),
    "curly quotes": Mistake(
        "check FILE", "'“a”' is not a valid id: quotes are straight in YAML and JSON",
        "steps: [{id: “a”, tool: sleep, args: {seconds: 1}}]\n",
    ),
    "a number in quotes": Mistake(
        "check FILE", "should be a number; it is '1'; leave out the quotes",
        "steps: [{id: a, tool: sleep, args: {seconds: '1'}}]\n",
    ),
    "a text without quotes": Mistake(
        "check FILE", "should be a string; it is 1; put it in quotes",
        "steps: [{id: a, tool: run_command, args: {command: 1}}]\n",
    ),
    "a field of a loop beside it": Mistake(
        "check FILE", "'key' is a field of `forEach`, and not of the step: `forEach: {..., key: ...}`",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, forEach: [1], key: name}]\n", where="step 'a', key",
    ),
    "a field of a list of objects beside it": Mistake(
        "check FILE", "'codes' is a field of `catch`, and not of the step: `catch: [{..., codes: ...}]`",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, codes: [TIMEOUT]}]\n",
    ),
    "a field of the budget beside it": Mistake(
        "check FILE", "'tokens' is a field of `budget`, and not of the plan: `budget: {..., tokens: ...}`",
        f"tokens: 100\n{OK}",
    ),
    "braces around the list of a loop": Mistake(
        "check FILE", "the list is an expression or a reference, not a text: write `look`, without braces",
        f"steps: [{LOOK}, {{id: b, tool: sleep, args: {{seconds: 1}}, forEach: '{{{{look}}}}'}}]\n",
        where="forEach.items",
    ),
    "a range as a list": Mistake(
        "check FILE", "a range is written out: [`1`, `2`, `3`] (unexpected '1' at column 1)",
        "steps: [{id: a, tool: sleep, args: {seconds: 1}, forEach: 1..5}]\n",
    ),
    "a function of another program": Mistake(
        "check FILE", "there is no function 'success'; a step runs once those that it depends on completed; `catch`",
        f"steps: [{LOOK}, {{id: b, tool: sleep, args: {{seconds: 1}}, when: success()}}]\n",
    ),
    "an argument beside the tool": Mistake(
        "check FILE", "there is no field 'path'; the arguments of a tool are in `args`: `args: {path: ...}`",
        "steps: [{id: a, tool: read_file, path: x}]\n", where="step 'a', path",
    ),
    "steps by name in the list": Mistake(
        "check FILE", "there is no field 'b'; a step is an object with an id: `- id: b`, with its fields below",
        "steps:\n- b: {tool: sleep, args: {seconds: 1}}\n",
    ),
    "an input that is required": Mistake(
        "check FILE", "there is no field 'required'; an input with a `default` may be left out, and one without must",
        f"inputs: {{n: {{type: string, required: true}}}}\n{OK}", where="inputs.n.required",
    ),
    "a channel as a field": Mistake(
        "check FILE", "there is no field 'email'; did you mean `to: email`?",
        f"notify: {{email}}\n{OK}",
    ),
    "a time span with two units": Mistake(
        "check FILE", "should be a number of seconds; it is '1h30m': write 5400", f"timeout: 1h30m\n{OK}"
    ),
    "a budget as a number": Mistake("check FILE", "such as `budget: {tokens: ...}`; it is 100", f"budget: 100\n{OK}"),
    "a filter of another language": Mistake(
        "check FILE", "there is no filter 'upper'; JMESPath does not change texts; a step with run_python does",
        "steps: [{id: a, tool: run_command, args: {command: ls}},"
        " {id: b, tool: write_file, args: {path: x, content: '{{a.stdout | upper}}'}}]\n", code=0,
        where="line 1, step 'b', args.content",
    ),
    "a function as a filter": Mistake(
        "check FILE", "'{{a.stdout | length}}': a function is called with the value before it: | length(@)",
        "steps: [{id: a, tool: run_command, args: {command: ls}},"
        " {id: b, tool: write_file, args: {path: x, content: '{{a.stdout | length}}'}}]\n", code=0,
    ),
    "a filter on a value that may be anything": Mistake(
        "check FILE", "'{{a.body | join}}': a function is called with the value before it: | join(', ', @)",
        "steps: [{id: a, tool: http_request, args: {url: 'https://a.b/c'}},"
        " {id: b, tool: write_file, args: {path: x, content: '{{a.body | join}}'}}]\n", code=0,
    ),
    "a filter with an argument": Mistake(
        "check FILE", "there is no function 'default'; what stands in for a missing value is behind ||, as in STEP",
        f"steps: [{LOOK}, {{id: b, tool: write_file, args: {{path: x, content: \"{{{{look | default('x')}}}}\"}}}}]\n",
        where="step 'b', args.content",
    ),
    "a sum in a reference": Mistake(
        "check FILE", "JMESPath does not calculate; a step with run_python does (unexpected '+'",
        "inputs: {n: {type: number, default: 1}}\n"
        "steps: [{id: b, tool: write_file, args: {path: x, content: '{{inputs.n + 1}}'}}]\n",
    ),
    "an unknown reference that lacks a brace": Mistake(
        "check FILE", "'{{stranger}' is not a reference, as it does not end in }}: add what is missing", code=0,
        file="steps: [{id: a, tool: write_file, args: {path: a, content: 'x {{stranger} y'}}]\n",
    ),
    "a secret that lacks a brace": Mistake(
        "check FILE", "'{{secret.TOKEN' is not a reference, as it does not end in }}: add what is missing", code=0,
        file="steps: [{id: a, tool: write_file, args: {path: a, content: '{{secret.TOKEN'}}]\n",
    ),
    "a reference amid a text as shells have it": Mistake(
        "check FILE", "'$inputs.n' amid a text is not a reference and stays as it is: write {{inputs.n}}", code=0,
        file="inputs: {n: {type: string, default: a}}\n"
        "steps: [{id: a, tool: write_file, args: {path: a, content: 'for $inputs.n'}}]\n",
    ),
    "arguments of a call as a pair": Mistake(
        "call read_file --args path=x", """a text is written in double quotes; write '{"path": "x"}'"""
    ),
    "an id of a plan with a space": Mistake(
        "start FILE --id my+plan", "BAD_PLAN_ID: 'my+plan' is not a plan id: use 1 to 200 letters, digits, '_', '-'"
    ),
    "a schedule without a name": Mistake(
        "schedule create plan.yaml --every 1h", "name the schedule and a plan file (`plan schedule create NAME FILE`)"
    ),
    "a URL as a plan file": Mistake("check https://a.b/p.yaml", "https://a.b/p.yaml is a URL; download it, and pass"),
    "an input of a plan without inputs": Mistake(
        "run FILE --input n=1", "the plan has no input 'n'; it has none: leave it out, or declare it under `inputs`"
    ),
    "tools in a file that there is not": Mistake(
        "tools", "/nope.py; correct the path", environ={"PLANS_TOOLS": "nope.py"}
    ),
    "arguments of a call that are no JSON": Mistake(
        "call read_file --args {path:x}",
        "--args is not valid JSON: line 1, column 2: the name of a field is written in"
    ),
    "an option of another command": Mistake(
        "call read_file --path x",
        "No such option: --path; `plan call --help` lists"
    ),
    "a tool that is nearly one": Mistake("tools readfile", "there is no tool 'readfile'; did you mean 'read_file'?"),
    "the ending of a file": Mistake("check plan.yml", "NOT_FOUND: there is no file plan.yml"),
    "an input without its value": Mistake("run FILE --input n", "BAD_INPUT: --input 'n' is not NAME=VALUE"),
    "a step as broken JSON": Mistake(
        'add p {"id":', "is JSON, and not a file; save it in one, or pass `-` and give it on standard input",
        where="""'{"id":'""",
    ),
    "a step as an option": Mistake(
        "add p --step x", "STEP.json is an argument: `plan add ID STEP.json`; name a file with the step, as JSON or"
    ),
    "a step that may be left out as an option": Mistake(
        "logs p --step x", "No such option: --step; STEP is an argument: `plan logs ID STEP`; name a step"
    ),
    "a plan as an option": Mistake("show --plan p", "--plan; ID is an argument: `plan show ID STEP`; name a plan;"),
    "merging as a command": Mistake("merge p look", "'merge': the tool `merge_worktrees`, as a step, merges worktrees"),
    "a missing file": Mistake("check missing.yaml", "NOT_FOUND: there is no file missing.yaml in"),
    "a directory": Mistake("check .", "NOT_REGULAR: . is a directory; pass a plan file in it"),
    "an option that there is not": Mistake("check FILE --jsn", "BAD_USAGE: No such option: --jsn; did you mean --json"),
    "a command of another program": Mistake("status etl", "No such command 'status': `plan show ID` shows one plan"),
    "a file without a command": Mistake("a.yaml", "No such command 'a.yaml': `plan run a.yaml` runs that file."),
    "in the background as Docker has it": Mistake(
        "run FILE -d", "No such option: -d; `plan start FILE` runs a plan in the background."
    ),
    "a misspelt command": Mistake("shwo", "BAD_USAGE: No such command 'shwo'. Did you mean 'show'?"),
    "no id of a plan": Mistake("show", "BAD_USAGE: Missing argument 'ID': name a plan; `plan list` shows them."),
    "a field of the list of a loop": Mistake(
        "check FILE",
        "'{{each.bytes}}': the value of the loop 'each' is a list; for all items write {{each[*].bytes}}, for the first"
        " {{each[0].bytes}}",
        "steps:\n"
        "  - {id: each, forEach: [a], tool: write_file, args: {path: '{{item}}', content: x}}\n"
        "  - {id: report, tool: write_file, args: {path: b, content: '{{each.bytes}}'}}\n",
    ),
    "no step": Mistake(
        "approve ID",
        "BAD_USAGE: Missing argument 'STEP': name a step; `plan show ID` lists them, "
        "`plan pending ID` those that await a decision",
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
    "an argument of two that is left out": Mistake("approve ID", "(`plan approve ID STEP`)."),
    "a name that is left out": Mistake("template save FILE", "(`plan template save NAME FILE`)."),
    "a step that is left out": Mistake("add ID", "Missing argument 'STEP.json': name a file with the step, as JSON or"),
    "two plans at once": Mistake("run FILE FILE", "': one plan file at a time; `plan run --help` shows what it takes"),
    "two plans for a command about one": Mistake("cancel p q", "unexpected 'q': one plan at a time; `plan cancel"),
    "a schedule without quotes": Mistake(
        "schedule create n FILE --cron 0 2 a b c",
        "unexpected '2 a b c': a value with blanks needs quotes: --cron \"0 7 * * *\"; `plan schedule create --help`",
    ),
    "an input without quotes": Mistake(
        "run --input text=Some words FILE", "a value with blanks needs quotes: --input 'text=Some words'"
    ),
    "a name without quotes": Mistake(
        "approve p look --by Ann Lee", "unexpected 'Lee': a value with blanks needs quotes: --by 'Ann Lee'"
    ),
    "a name before a step too many": Mistake("approve --by ann p a b", "'b': `plan approve` takes one step,"),
    "a request without quotes": Mistake("make copy files", "'files': REQUEST is one argument: put it in quotes"),
    "a reason as an argument": Mistake(
        "deny p look because no", "unexpected 'because no': `plan deny` takes one step, or a pattern",
        where="a reason is given with --comment 'because no'; `plan deny --help`",
    ),
    "a reason as an option of git": Mistake("deny p look -m no", "No such option: -m; did you mean --comment?"),
    "a step to run again as an argument": Mistake(
        "rerun p look", "unexpected 'look': name the step with --from look (with what depends on it) or --only look"
    ),
    "an input as an argument": Mistake("run FILE text=a", "unexpected 'text=a': write --input text=a; `plan run"),
    "a change as an argument": Mistake("edit p title=a", "unexpected 'title=a': write --set title=a; `plan edit"),
    "an argument where there is none": Mistake("doctor all", "unexpected 'all': `plan doctor` takes no arguments;"),
    "an answer to no question": Mistake("approve p look --yes", "--yes; `plan approve` does not ask, so there is"),
    "all plans": Mistake("list --all", "--all; `plan list` lists plans of every status; --limit N lists more than the"),
    "a misspelt option": Mistake("run FILE --worskpace .", "No such option: --worskpace; did you mean --workspace?\n"),
    "a short option": Mistake("run FILE -w .", "No such option: -w; did you mean --workspace?"),
    "an option that is nothing like any other": Mistake("list -x", "No such option: -x; `plan list --help` lists"),
    "a digest that is too short": Mistake(
        "approve p look --digest deadbeef",
        "--digest: a digest has 64 digits, 0-9 and a-f, and 'deadbeef' has 8; copy it from `plan pending ID STEP",
    ),
    "a digest with its kind": Mistake("answer p look x --digest sha256:a", "0-9 and a-f, and this is 'sha256:a'; copy"),
    "the steps as a field": Mistake(
        "edit p --set steps=[]", "--set 'steps=[]': steps are added, removed and moved one by one; a field of one is"
    ),
    "a misspelt field of the plan": Mistake("edit p --set titel=x", "did you mean title=VALUE? A field of a step is"),
    "a field of the plan that stays": Mistake("edit p --set inputs={}", "'inputs' of a plan cannot be set; set one of"),
    "a plan as a step": Mistake("add p FILE", "is a plan; `plan add` takes one step: {id: NAME, tool: TOOL,"),
    "a nickname of a schedule, misspelt": Mistake(
        "schedule create n FILE --cron @dialy", "--cron '@dialy': did you mean @daily? There are @hourly, @daily"
    ),
    "a file as a template": Mistake(
        "template run ok.yaml", "'ok.yaml' is a file, and not the name of a template: plan run ok.yaml, or save it"
    ),
    "a short option for the file": Mistake("run -f FILE", "No such option: -f; FILE is an argument: `plan run FILE`"),
    "directories as in PATH": Mistake(
        "list", "PLANS_WORKSPACES: separate these with commas: /nope/a,/nope/b",
        environ={"PLANS_WORKSPACES": "/nope/a:/nope/b"},
    ),
    "files of tools as in PATH": Mistake(
        "tools", "PLANS_TOOLS: separate these with commas: a.py,b.py", environ={"PLANS_TOOLS": "a.py b.py"}
    ),
    "a short option that a command has": Mistake("resume p -f", "No such option: -f; did you mean --follow?"),
    "a workflow of another program": Mistake(
        "import FILE", "can be imported, and nothing else; `plan init` makes a first plan", "stages: [build]\n"
    ),
    "a list of keys, without a ring": Mistake(
        "keys list", "PLANS_KEYS: it is not set, so nothing is encrypted; to encrypt, export PLANS_KEYS=~/."
    ),
    "a new key, without a ring": Mistake("keys new", "PLANS_KEYS=~/.config/plans/keys.toml, and then `plan keys"),
    "an empty option behind a sign": Mistake("approve p look --by=", "--by is empty; write --by NAME, or leave it out"),
    "a label as an option": Mistake(
        "run FILE --label a=b", "No such option: --label; labels are a field of the plan: `labels: {customer: acme}`"
    ),
    "a host as an option": Mistake("web --host 0.0.0.0", "No such option: --host; set PLANS_WEB_LISTEN=HOST:PORT"),
    "arguments of a call as in a shell": Mistake(
        "call read_file path=a", "'path=a': arguments are one JSON object: --args '{\"NAME\": VALUE}'; `plan call"
    ),
    "a command that there is not": Mistake("frobnicate", "'frobnicate'; `plan --help` lists them."),
    "help as a command": Mistake("help run", "`plan --help` lists the commands, `plan COMMAND --help` shows one."),
    "the version as a command": Mistake("version", "`plan --version` prints it."),
    "a dashboard": Mistake("dashboard", "`plan web` serves the web page, `plan list` lists the plans."),
    "a step's changes, where it has no worktree": Mistake(
        "diff p look", "has no worktree on this machine: a step with `worktree: true` has one once it has started"
    ),
    "a module of tools that there is not": Mistake(
        "tools", "the module 'nope' is not installed here; name a file such as tools/words.py, or install it",
        environ={"PLANS_TOOLS": "nope"},
    ),
    "a command of git": Mistake("diff ID", "Missing argument 'STEP': name a step; `plan show ID` lists them"),
    "a command of the shell": Mistake("ps", "No such command 'ps': `plan list --running` lists the plans that run"),
    "an empty state directory": Mistake(
        "list", "BAD_SETTING: PLANS_STATE_DIR: it is empty; name a directory, or leave", environ={"PLANS_STATE_DIR": ""}
    ),
    "a URL as a host": Mistake(
        "check FILE", "PLANS_HTTP_ALLOW: 'http://localhost' is a URL; write its host alone, as in localhost:8080",
        environ={"PLANS_HTTP_ALLOW": "http://localhost"},
    ),
    "a profile that there is not": Mistake(
        "list", "TEMPORAL_PROFILE: Profile 'nope' not found; name one of", environ={"TEMPORAL_PROFILE": "nope"},
    ),
    "a setting's directory that there is not": Mistake(
        "list", "BAD_SETTING: PLANS_WORKSPACE: /nope is not a directory; create it or choose another\n",
        environ={"PLANS_WORKSPACE": "/nope"},
    ),
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
    "a directory as the storage": Mistake(
        "list", "BAD_SETTING: PLANS_STORAGE: write local, s3://BUCKET or gs://BUCKET; the name of a bucket is 3 to 63",
        environ={"PLANS_STORAGE": "/var/lib/plans"},
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
    "a switch that is none": Mistake(
        "list",
        "BAD_SETTING: TEMPORAL_TLS: 'off' is none of true, false, 1, 0",
        environ={"TEMPORAL_TLS": "off"},
    ),
    "a certificate that is not there": Mistake(
        "list",
        "BAD_SETTING: TEMPORAL_TLS_CLIENT_CERT_PATH: there is no file /nope.pem; name a file that can be read",
        environ={"TEMPORAL_ADDRESS": "127.0.0.1:1", "TEMPORAL_TLS_CLIENT_CERT_PATH": "/nope.pem"},
    ),
    "a directory as the certificate of the authority": Mistake(
        "list",
        "BAD_SETTING: TEMPORAL_TLS_SERVER_CA_CERT_PATH: /tmp: Is a directory; name a file that can be read",
        environ={"TEMPORAL_ADDRESS": "127.0.0.1:1", "TEMPORAL_TLS_SERVER_CA_CERT_PATH": "/tmp"},
    ),
    "a certificate without its key": Mistake(
        "list",
        "BAD_SETTING: TEMPORAL_TLS_CLIENT_KEY_PATH: it is missing; TEMPORAL_TLS_CLIENT_CERT_PATH needs it",
        environ={"TEMPORAL_ADDRESS": "127.0.0.1:1", "TEMPORAL_TLS_CLIENT_CERT_PATH": __file__},
    ),
    "a file of profiles that is not there": Mistake(
        "list",
        "BAD_SETTING: TEMPORAL_CONFIG_FILE: there is no file /nope.toml; correct the path, or unset it",
        environ={"TEMPORAL_CONFIG_FILE": "/nope.toml"},
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
    assert mistake.where in answered.err, answered.err
    for technical in ("NoneType", "None is not", "valid dictionary", "Traceback", "UNEXPECTED", "'?;"):
        assert technical not in answered.err


STARTED: dict[str, tuple[str, str, int]] = {
    "a plan whose id is misspelt": ("show IDD", "`plan list` shows the plans; did you mean 'ID'?", 4),
    "a plan that there is not": ("show nope", "PLAN_NOT_FOUND: there is no plan 'nope' on this server; `plan list`", 4),
    "an id that cannot be": ("show a/b", "BAD_PLAN_ID: 'a/b' is not a plan id: use 1 to 200 letters, digits,", 2),
    "an id that was used": ("run FILE --id ID", "PLAN_EXISTS: the id 'ID' has been used before, and ids are never", 2),
    "a step that there is not": ("show ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "a step that is nearly one": ("approve ID gat", "has no step 'gat'; did you mean 'gate'? `plan show` lists", 2),
    "approving it": ("approve ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "denying it": ("deny ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "removing it": ("remove ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "skipping it": ("skip ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "moving it": ("move ID nope --after gate", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "moving a step behind it": ("move ID gate --after nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "editing it": ("edit ID --set nope.args.x=1", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "editing none": ("edit ID --set args.x=1", "write STEP.args.x, where STEP is one of 'gate', 'form', 'last'", 2),
    "editing a field of none": (
        "edit ID --set when=x",
        "BAD_USAGE: --set 'when=x' names no step; write STEP.when=x",
        2,
    ),
    "removing a step that another uses": (
        "remove ID form",
        "Nothing was changed: the edited plan would have 1 problem\n  BAD_REFERENCE  step 'last', args.command\n"
        "    'form' cannot be removed, as step 'last' uses its value; change or remove step 'last' first",
        2,
    ),
    "an edit that would be wrong": (
        "edit ID --set last.tool=nope",
        "Nothing was changed: the edited plan would have 1 problem\n  UNKNOWN_TOOL  step 'last', tool",
        2,
    ),
    "its logs": ("logs ID nope", "UNKNOWN_STEP: the plan has no step 'nope'", 2),
    "an argument that there is not": ("edit ID --set gate.args.comand=1", "did you mean 'command'?", 2),
    "an edit of nothing": (
        "edit ID",
        "BAD_USAGE: Missing option '--set': say what to change: --set STEP.FIELD=VALUE.",
        2,
    ),
    "arguments that are no JSON": ("approve ID gate --args x", "INVALID_ARGS: --args is not valid JSON", 2),
    "an answer that is no JSON": ("answer ID form {copies:5}", "which is not valid JSON: line 1, column 2: the", 2),
    "an answer to no question": (
        "answer ID gate x",
        "step 'gate' asks no question; it awaits approval: plan approve ID gate\n",
        2,
    ),
    "a field beside the arguments": (
        "edit ID --set gate.command=1",
        "an argument of run_command: set gate.args.command",
        2,
    ),
    "a step nearly named": ("show ID gat", "the plan has no step 'gat'; did you mean 'gate'?", 2),
    "an event without a name": ("event ID ''", "BAD_MESSAGE: '' cannot name an event; use letters, digits and", 2),
    "beginning a plan that runs": ("begin ID", "NOT_IN_REVIEW: plan 'ID' is running, not in review; it has started", 2),
    "unpausing a plan that runs": (
        "unpause ID",
        "NOT_PAUSED: plan 'ID' is running, not paused; there is nothing to",
        2,
    ),
    "resuming a plan that runs": ("resume ID", "NOT_ENDED: plan 'ID' has not ended, and only ended plans are", 2),
    "undoing a plan that runs": ("undo ID", "NOT_ENDED: plan 'ID' is still running; wait until it ends, or", 2),
    "feedback without words": ("regenerate ID ''", "BAD_REQUEST: the feedback is empty; say what the LLM should", 2),
    "an input that there is not": ("run FILE --input a=1", "the plan has no input 'a'", 2),
    "a template that there is not": ("template run nope", "UNKNOWN_TEMPLATE: there is no template 'nope'; `plan", 2),
    "a schedule that there is not": ("schedule show nope", "SCHEDULE_NOT_FOUND: there is no schedule 'nope' on", 4),
    "a minute of a schedule that there is not": (
        "schedule create x FILE --cron CRON",
        "BAD_SCHEDULE: --cron: Minute is not in range [0-59]; its fields are minute,",
        2,
    ),
    "a schedule that cannot be": ("schedule create x FILE --cron x", "BAD_SCHEDULE: --cron 'x' does not have 5", 2),
    "a workspace that there is not": ("run FILE --workspace /nope", "BAD_WORKSPACE: --workspace: /nope is not a", 2),
    "a screen in a pipe": ("review ID", "NO_TERMINAL: plan review needs a terminal", 2),
}


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_mistake_about_a_plan_that_runs(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    gate = {"id": "gate", "tool": "run_command", "args": {"command": "true"}, "requiresApproval": True}
    file = tmp_path / "plan.json"
    form = {"id": "form", "tool": "ask", "args": {"question": "How many?", "schema": {"type": "object"}}}
    last = {"id": "last", "tool": "run_command", "args": {"command": "echo {{form.copies}} {{gate.exitCode}}"}}
    file.write_text(json.dumps({"steps": [gate, form, last]}))
    name = str((await plan(environ, "start", str(file), "--json")).json["planId"])

    async def asks() -> Any:
        return (await plan(environ, "pending", name, "--json")).json

    await until(asks, "it asks")
    wrong = {}
    for what, (command, says, code) in STARTED.items():
        words = {"FILE": str(file), "ID": name, "IDD": f"{name}d", "CRON": "61 * * * *", "''": ""}
        answered = await plan(environ, *(words.get(each, each) for each in command.split()))
        if re.sub(r"\bID\b", name, says) not in answered.err or answered.code != code:
            wrong[what] = (answered.code, answered.err)
    assert not wrong
    assert (await plan(environ, "answer", name, "form", "{}")).code == 0
    assert (await plan(environ, "deny", name, "gate")).code == 0
    assert (await plan(environ, "watch", name)).code == 1
    ended = await plan(environ, "approve", name, "gate")
    assert f"PLAN_CLOSED: plan '{name}' has ended (partial) and accepts no more messages; step 'gate' was" in ended.err
    assert "denied by root, " in ended.err
    assert f"`plan resume {name}` runs what is not done, and asks there again if it must" in ended.err
    edited = await plan(environ, "edit", name, "--set", "gate.args.command=false")
    assert f"has ended (partial) and accepts no more messages; `plan resume {name} --set" in edited.err
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


@pytest.mark.slow
async def test_a_queue_without_workers_is_named_by_the_command_that_starts_the_plan_and_by_those_that_show_it(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("steps: [{id: look, tool: list_directory, queue: nobody-polls-it, args: {path: .}}]\n")
    says = "no worker polls the task queue 'nobody-polls-it' that step 'look' names, and the plan waits for one: `plan"
    started = await plan(environ, "start", str(file), "--json")
    assert says in started.err
    name = str(started.json["planId"])
    assert f"Waiting: {says}" in (await plan(environ, "show", name)).out
    assert says in (await plan(environ, "why", name, "look")).out


@pytest.mark.slow
async def test_in_another_namespace_what_is_missed_is_said_to_be_missing_there(
    environ: Environ, temporal_client: Client
) -> None:
    name = f"elsewhere-{uuid4().hex[:8]}"
    kept = Duration(seconds=86_400)
    asked = RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=kept)
    await temporal_client.workflow_service.register_namespace(asked)
    there = environ | {"TEMPORAL_NAMESPACE": name}

    async def is_known() -> bool:
        return (await plan(there, "list")).code == 0

    await until(is_known, "the server knows the namespace")
    listed = await plan(there, "list")
    assert f"No plans in the namespace '{name}' (TEMPORAL_NAMESPACE) yet. Start one: plan run FILE" in listed.err
    shown = await plan(there, "cancel", "nope")
    assert f"there is no plan 'nope' in the namespace '{name}' of this server; `plan list`" in shown.err
    assert shown.code == 4
