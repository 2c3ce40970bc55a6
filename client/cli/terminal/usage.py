"""What of a command line is refused before the command runs: values that are empty, given twice, or too many.

Imported by `plan --help`, and so without anything that is slow to import. `terminal.failures` words the mistakes that
typer finds itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from typer.core import TyperCommand

ONCE = frozenset(
    {
        "--after", "--args", "--as", "--attempt", "--before", "--data", "--digest", "--from", "--only", "--plan",
        "--schedule", "--template", "--to", "--tools", "--with",
    }
)  # fmt: skip
"""Options that say what a command is about. Of others, such as `--workspace`, the last one counts, as is usual."""
MAY_BE_EMPTY = frozenset({"--comment", "--description", "--note"})
"""Options whose empty value says the same as none. Of any other it is mostly the unset variable of a script."""
WITH_BLANKS = {
    "TEXT": "", "EXPR": '"0 7 * * *"', "NAME=VALUE": "", "JSON": "", "STEP.FIELD=VALUE": "", "STEP.args.x=V": "",
}  # fmt: skip
"""Metavars of options whose value may have blanks, with an example where that is clearer than the words given: of
`--cron 0 2 * * *` the shell has made names of files."""
AFTER_ARGUMENTS = frozenset({"NAME", "TIME"})
"""Metavars of which the same is likely behind the arguments of a command alone: `plan approve p s --by Ann Lee`."""
SENTENCES = frozenset({"REQUEST", "FEEDBACK", "VALUE"})
"""Metavars of arguments that people write as words."""
BY_SIGN = {"--args": "arguments are one JSON object: --args '{\"NAME\": VALUE}'", "--input": "", "--set": ""}
"""Options that take pairs, in the order in which `NAME=VALUE` is looked for; empty: as it was given."""
INSTEAD = {
    "rerun": "name the step with --from {0} (with what depends on it) or --only {0}",
    "resume": "it runs all that is not done; `plan rerun ID --from {0}` runs a step again, and what depends on it",
    "list": "plans are chosen with --status, --label, --since or --running",
    "approve": "`plan approve` takes one step, or a pattern such as 'each[*]'; a remark is given with --comment {all}",
    "deny": "`plan deny` takes one step, or a pattern such as 'each[*]'; a reason is given with --comment {all}",
}
"""By command, what one argument too many means."""
ONE = {
    "FILE": "one plan file at a time", "ID": "one plan at a time", "STEP": "one step at a time",
    "STEP.json": "one step at a time", "NAME": "one name at a time",
}  # fmt: skip
"""By the last argument of a command, why there is no other."""


class Parsed(TyperCommand):
    """A command that refuses what would count for nothing, or for something else than it seems."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As of every command. Raises UsageError."""
        if not (ctx.resilient_parsing or ctx.allow_extra_args):
            given, left, order = self.make_parser(ctx).parse_args(args=list(args))
            for problem in (*_twice(order), *_empty(order, given), *_too_many(ctx, args, left)):
                ctx.fail(problem)
        found: list[str] = super().parse_args(ctx, args)
        return found


def arguments_of(context: Any) -> list[str]:
    """The arguments that a command takes, as its help writes them."""
    return [each.strip("{}[]") for each in context.command.collect_usage_pieces(context)[1:]]


def _twice(order: list[Any]) -> Iterator[str]:
    for each in (each for each in order if ONCE.intersection(each.opts) and not each.multiple):
        if order.count(each) > 1:
            yield f"{each.opts[-1]} is given {order.count(each)} times, and takes one value"


def _empty(order: list[Any], given: dict[str, Any]) -> Iterator[str]:
    for each in (each for each in order if each.param_type_name == "option" and not each.is_flag):
        values = given[each.name] if each.multiple else [given[each.name]]
        if not all(value.strip() for value in values) and not MAY_BE_EMPTY.intersection(each.opts):
            or_none = "" if each.required else ", or leave it out"
            yield f"{each.opts[-1]} is empty; write {each.opts[-1]} {each.metavar or 'VALUE'}{or_none}"


def _too_many(ctx: Any, args: list[str], left: list[str]) -> Iterator[str]:
    """What is said of arguments that a command does not take."""
    if not left:
        return
    why = _unquoted(ctx, args, len(left)) or _meant(ctx, left)
    yield f"unexpected {' '.join(left)[:200]!r}: {why}; `{ctx.command_path} --help` shows what it takes"


def _unquoted(ctx: Any, args: list[str], count: int) -> str:
    """The option whose value was meant to have the next words as well; empty: there is none."""
    options = {name: each for each in ctx.command.params if each.param_type_name == "option" for name in each.opts}
    needed = sum(each.required for each in ctx.command.params if each.param_type_name == "argument")
    for at, word in enumerate(args):
        name, sign, value = word.partition("=")
        option = options.get(name)
        if option is None or option.is_flag:
            continue
        first = at + (not sign)
        words = [value if sign else args[first], *args[first + 1 : first + 1 + count]]
        is_whole = len(words) == 1 + count and not any(each.startswith("--") for each in words[1:])
        is_behind = sum(not each.startswith("-") for each in args[:at]) >= needed
        if is_whole and (option.metavar in WITH_BLANKS or (is_behind and option.metavar in AFTER_ARGUMENTS)):
            example = WITH_BLANKS.get(option.metavar) or shlex.quote(" ".join(words))
            return f"a value with blanks needs quotes: {name} {example}"
    return ""


def _meant(ctx: Any, left: list[str]) -> str:
    taken, options = arguments_of(ctx), {name for each in ctx.command.params for name in each.opts}
    if taken and taken[-1] in SENTENCES:
        return f"{taken[-1]} is one argument: put it in quotes"
    if pairs := [option for option in BY_SIGN if option in options and "=" in left[0]]:
        return BY_SIGN[pairs[0]] or f"write {pairs[0]} {shlex.quote(left[0])}"
    name = ctx.command_path.partition(" ")[2]
    if name in INSTEAD:
        return INSTEAD[name].format(shlex.quote(left[0]), all=shlex.quote(" ".join(left)))
    return ONE.get(taken[-1], f"it takes {' '.join(taken)}") if taken else f"`{ctx.command_path}` takes no arguments"
