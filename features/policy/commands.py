"""`plan policy`: the rules of policy.toml, checked and tried, and what came of them. Nothing is started or changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from plansurvive.client.cli.list_plans import time_of
from plansurvive.client.cli.terminal import environment, output, session
from plansurvive.client.cli.terminal.options import AsJson, group
from plansurvive.client.local_tools import known_tools
from plansurvive.features.coding_agents.model import permission_specs
from plansurvive.features.policy.consent import in_words as who_must
from plansurvive.features.policy.model import NO_CALLS, Term
from plansurvive.features.policy.policy_file import (
    Mistake,
    file_of,
    in_one_line,
    policy_of,
    read,
    text_of,
)
from plansurvive.features.policy.reading import reported
from plansurvive.features.policy.reporting import as_file, in_words
from plansurvive.features.policy.resolving import command_of
from plansurvive.features.policy.rule import Policy
from plansurvive.features.policy.trying import Trial
from plansurvive.plans.definition.foreign_names import CALLS
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line

INVALID = 2
"""Exit code if the file has a mistake."""

app = group("Check policy.toml, try calls, report what came of them.")


@app.command("check")
def check(as_json: AsJson = False) -> None:
    """Report every mistake of policy.toml, with its line. Exit code 2 if there is one."""
    settings = environment.settings()
    path, text = file_of(settings), text_of(settings)
    if text is None:
        if as_json:
            output.show_json(None)
        else:
            output.show(f"no policy; {path} would be one (docs/policy.md)")
        return
    found = read(text, datetime.now(UTC))
    warnings = [*found.warnings, *(_doubts(found.policy, known_tools(settings)) if found.policy else ())]
    if as_json:
        output.show_json({
            "file": str(path),
            "hash": found.policy.hash if found.policy else None,
            "rules": len(found.policy.rules) if found.policy else None,
            "mistakes": [_row(each) for each in found.mistakes],
            "warnings": [_row(each) for each in warnings],
        })  # fmt: skip
    else:
        for each in found.mistakes:
            output.show(f"{path}: {line(str(each))}")
        for each in warnings:
            output.show(f"warning: {line(str(each))}")
        if found.policy:
            count = len(found.policy.rules)
            output.show(f"{path}: {number_of(count, 'rule')}, hash {found.policy.hash[:12]}")
    if found.policy is None:
        raise typer.Exit(INVALID)


@app.command("test")
def try_call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool that would be called.")],
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="Its arguments, an object.")] = "{}",
    starter: Annotated[str, typer.Option("--as", metavar="NAME", help="Who has started the plan.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say what the policy makes of a call that a person's plan would make here, and which rules say so."""
    settings = environment.settings()
    policy, tools = policy_of(settings), known_tools(settings)
    tried = Trial(tool, args, starter).under(policy, tools, str(Path.cwd()))
    found, rules = tried.verdict, tried.terms
    if as_json:
        strictest = max(rules, key=lambda each: each.count, default=Term(rule=""))
        output.show_json({"decide": found.decide or None, "rules": list(found.rules), "by": strictest.by,
                          "count": strictest.count, "notAuthor": any(each.not_author for each in rules),
                          "expires": found.expires, "reason": found.reason})  # fmt: skip
        return
    output.show(f"{found.decide or 'as without a policy'}: {line(found.reason)}")
    for each in rules:
        output.show(line(who_must(each)))


@app.command("report")
def report(
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Plans started since: 7d, or 2027-03-28.")
    ] = "7d",
    other: Annotated[
        Path | None, typer.Option("--with", metavar="FILE", help="Also say what this policy would have decided.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the proposed rules to a new file, to be read.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what was asked, allowed and denied, by which rule, and propose rules for what people always approved.

    Nothing puts a proposal into effect.
    """
    settings = environment.settings()
    begin, policy = time_of(since) or datetime.now(UTC), _policy_in(other) if other else None
    tools = known_tools(settings)
    found = session.run(
        lambda here: reported(here.client, here.settings.task_queue, begin, tools, policy), worker=False
    )
    if write is not None:
        try:
            with write.open("x", encoding="utf-8") as file:
                file.write(as_file(found))
        except OSError as error:
            raise PlanError(
                f"--write {write}: {error.strerror}; name a file that does not exist", "BAD_USAGE"
            ) from None
    if as_json:
        output.show_json(found.model_dump(mode="json", by_alias=True))
    else:
        output.show("\n".join(map(line, in_words(found))))


def _policy_in(path: Path) -> Policy:
    try:
        found = read(path.read_text("utf-8"), datetime.now(UTC))
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"--with {path} cannot be read: {error}", "BAD_USAGE") from None
    if found.policy is None:
        raise PlanError(f"--with {path}: {in_one_line(found.mistakes)}", "BAD_USAGE")
    return found.policy


def _doubts(policy: Policy, tools: Mapping[str, ToolSpec]) -> Iterator[Mistake]:
    """Rules that fit no call of this machine's tools: a name that was misspelt must not pass for a rule."""
    hints, tools = Hints(), {**tools, **permission_specs(judged=True)}
    for index, each in enumerate(policy.rules):
        place, fitting = f"rule '{each.rule.name}'", [
            spec for name, spec in tools.items() if any(pattern.fits(name) for pattern in each.tool)
        ]  # fmt: skip
        at = policy.lines.of(("rule", index))
        if not fitting:
            meant = hints.question(each.rule.tool[0], tools, CALLS)
            yield Mistake(
                at, place, f"no tool here has the name {', '.join(each.rule.tool)}{meant or '; `plan tools`'}"
            )
            continue
        if all(spec.name in NO_CALLS for spec in fitting):
            what = " and ".join(spec.name for spec in fitting)
            yield Mistake(at, place, f"it fits {what} alone, whose steps make no call: it is never asked; remove it")
            continue
        names = {name for spec in fitting for name in spec.args_schema.get("properties", {})}
        for name in each.rule.args:
            if name not in names and not any(spec.args_schema.get("additionalProperties") for spec in fitting):
                yield Mistake(at, place, f"none of its tools has the argument '{name}'{hints.question(name, names)}")
        if each.rule.command is not None and not any(map(command_of, fitting)):
            yield Mistake(at, place, "`command` is for tools that take a shell command, such as run_command")
        if each.rule.host is not None and "url" not in names:
            yield Mistake(at, place, "`host` is for tools that take a `url`, such as http_request")


def _row(each: Mistake) -> dict[str, Any]:
    return {"line": each.line, "place": each.place, "problem": each.text}
