"""`plan init`: a project with a first plan, a tool of its own and its test. Needs no server."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from plansurvive.client.cli.terminal import output
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.first_project.create import (
    AGENTS,
    EDITOR,
    PLAN,
    SCHEMA,
    TOOL,
    create,
    editor_setting,
    section_for_agents,
)
from plansurvive.client.plan_file import plan_schema
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.base.extras import pytest_lines

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The project's directory; made if it does not exist.")]


def init(directory: Directory = ".", as_json: AsJson = False) -> None:
    """Make a project: a first plan, a tool and its test. With texts for agents and editors; what is there stays."""
    found = create(Path(directory), plan_schema())
    if as_json:
        output.show_json({"directory": str(Path(directory).resolve()), "files": [asdict(each) for each in found]})
        return
    for each in found:
        output.show(f"{each.state:<11}{each.path}")
    if any(each.path == EDITOR and each.state == "kept" for each in found):
        output.say(f"For completion in plan files, add this to {EDITOR}:\n  {editor_setting()}")
    if any(each.path == AGENTS and each.state == "kept" for each in found):
        output.say(f"For agents that work here, add this to {AGENTS}:\n\n{section_for_agents()}")
    enter = f"cd {shlex.quote(line(directory))} && " if Path(directory).resolve() != Path.cwd() else ""
    rows = [f"{enter}export PLANS_TOOLS={TOOL}", f"plan check {PLAN}", f"plan run {PLAN} --input name=Ann"]
    rows += pytest_lines("tests")
    output.show("\n".join(["\nNext", *(f"  {row}" for row in rows)]))
    output.show(f"Editors with YAML support complete plan files by {SCHEMA}.")
