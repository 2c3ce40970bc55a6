"""Checks the call of a tool: the tool, its arguments, and the references in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from plansurvive.plans.definition.arguments import argument_problems
from plansurvive.plans.definition.checks.outside import call_problems
from plansurvive.plans.definition.checks.scope import Meaning, Scope
from plansurvive.plans.definition.dependencies import field_of_place
from plansurvive.plans.definition.durable_tools import DurableTool
from plansurvive.plans.definition.foreign_names import CALLS, item_instead, value_instead, variable_instead
from plansurvive.plans.definition.language import PLAIN, Language, Word
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.definition.schema_keywords import no_keywords
from plansurvive.plans.definition.scopes import VALUE, CallOf
from plansurvive.plans.errors import BadExpression, BadReference
from plansurvive.plans.expressions.conditions import compiled
from plansurvive.plans.expressions.python_code import syntax_error
from plansurvive.plans.expressions.quoting import DOLLAR
from plansurvive.plans.expressions.references import (
    INPUTS,
    Reference,
    check_code,
    find,
    in_text,
    is_literal,
    marked,
    sample,
)
from plansurvive.plans.expressions.slips import instead
from plansurvive.plans.model import Problem, ToolSpec
from plansurvive.plans.model.opaque import scanned

_BRACES = re.compile(r"(?<!\{)\{\{(?!\{)([^{}\n]{1,200})\}\}(?!\})")
_UNCLOSED = re.compile(r"(?<!\{)\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)[^{}\n]{0,200}(?:\}(?!\})|\n|\Z)")
_LACKS_A_BRACE = re.compile(r"\{\{\s*[\w-]+(?:\.[\w-]+)*\s*\}")
_WORD = re.compile(r"(?<![\w.-])[A-Za-z_][A-Za-z0-9_-]*")

_VARIABLE = re.compile(r"(?<![\\$])\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
"""A variable in a shell command."""
_AMID = re.compile(r"(?<![\\$\w])\$([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z_]\w*)*)")
"""A reference amid a text, as shells and other systems have them."""
_DOLLAR = re.compile(r"(?<![\\$\w])\$(\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)[^{}\n]{0,200}\}\})(?!\})")
"""A reference with a dollar sign before it, as GitHub Actions has it."""
_HEAD = re.compile(r"\$[\w-]+(?:\.[A-Za-z_]\w*|\[[^\[\]]*\])*")
"""A reference to a value at the beginning of a text."""
_IN_CODE = (
    "a value cannot safely be inserted after a dollar sign in code: leave it out (`${{ }}` is the form of GitHub"
    " Actions, and {{ }} that of plans), or pass the value in `env`"
)
_SETS = r"(?<!\w){0}\+?=|\b(?:for|read|export|local|declare)\b[^;|&\n]*(?<!\w){0}(?!\w)"
"""How a shell command sets a variable."""

Texts = Sequence[tuple[tuple[str | int, ...], str]]
"""The strings in the arguments of a call in which references may be (`texts_of`), each with its location."""
PathCheck = Callable[[Reference, str], Iterable[Problem]]
"""Given a reference and its field, the problems of its path, and of a value that is all of an argument."""


_LISTED = "; `plan tools` lists them"
_AT_WORKER = "; its worker has no tool of this name: add the tool's module to PLANS_TOOLS where that worker is started"


def at_worker(problem: Problem) -> Problem:
    """A problem as a worker says it: `plan tools` lists those of the machine that it is called on."""
    return problem.model_copy(update={"message": problem.message.replace(_LISTED, _AT_WORKER)})


def unknown_tool(name: str, tools: Collection[str], hints: Hints) -> str:
    """What is said of the name of a tool that is not there."""
    why = ", and `plan mcp servers` says why a server has none" if "." in name else ""
    hint = hints.question(name.strip().lower(), tools, CALLS)
    return f"Unknown tool: {name}{hint or f'{_LISTED}{why}'}"


def texts_of(call: CallOf) -> Texts:
    """The texts of a call in which references may be."""
    return marked(scanned(call.tool, call.args))


def tool_problems(
    call: CallOf, texts: Texts, tools: Mapping[str, ToolSpec], scope: Scope, hints: Hints, language: Language = PLAIN
) -> Iterator[Problem]:
    """An unknown tool, or arguments that it does not take; `texts`: those of the call."""
    spec = tools.get(call.tool)
    if spec is None:
        yield call.problem("UNKNOWN_TOOL", "tool", unknown_tool(call.tool, tools, hints))
        return
    known, declared = _Known(call, scope), language.tool(call.tool)
    found = argument_problems(spec, call.args, known, hints)
    for field, text in found or declared.written_problems(call.args):
        yield call.problem("INVALID_ARGS", field, f"Invalid args for {call.tool}: {text}")
    if not found:
        yield from call_problems(call)
        yield from _schemas(call, declared)
    yield from _code(call, spec, known)
    if not texts:
        return
    yield from _within(call, texts, spec, known)
    for word in language.words:
        if word.name not in known:
            for wrong in word.problems(spec, scanned(call.tool, call.args), tools, hints):
                yield call.problem(wrong.code, field_of_place("args", wrong.place), wrong.message)


def _schemas(call: CallOf, declared: DurableTool) -> Iterator[Problem]:
    """Schemas in arguments that fit every value, as they have fields in place of keywords. Warnings: see `certain`."""
    for name in declared.schema_args:
        schema: Any = call.args.get(name)
        is_known = isinstance(schema, Mapping) and not find(schema) and not schema_problem(schema)
        if is_known and (text := no_keywords(schema)):
            found = call.problem("INVALID_ARGS", f"args.{name}", f"Invalid args for {call.tool}: {text}")
            yield found.model_copy(update={"severity": "warning"})


def reference_problems(
    call: CallOf, texts: Texts, scope: Scope, inputs: Set[str], hints: Hints, start: str = "args",
    paths: PathCheck | None = None, language: Language = PLAIN,
) -> Iterator[Problem]:  # fmt: skip
    """References that mean nothing, or cannot have a value yet; `start` is the field that they are in.

    `texts`: those of the call; `paths` checks the path of each reference that means something.
    """
    known = _Known(call, scope)
    for place, text in texts:
        field = field_of_place(start, place)
        for reference in in_text(text, place):
            if (word := _word(reference, known, language)) is not None:
                if start != "args":
                    code, text = word.misplaced
                    yield call.problem(code, field, text)
            elif not is_literal(reference, known):
                yield from _reference_problems(reference, call, scope, inputs, hints, field, paths, language)
        if "{{" in text and start == "args":
            yield from _braces(text, call, known, field, language)


def _reference_problems(
    reference: Reference, call: CallOf, scope: Scope, inputs: Set[str], hints: Hints, field: str,
    paths: PathCheck | None, language: Language,
) -> Iterator[Problem]:  # fmt: skip
    text = _reference(reference, call, scope, inputs, hints, language)
    if text:
        yield call.problem("BAD_REFERENCE", field, text, reference.root)
    elif reference.path:
        try:
            compiled(reference.path)
        except BadExpression as error:
            yield call.problem("BAD_EXPRESSION", field, _amid(reference) or _path(reference) or error.message)
        else:
            yield from paths(reference, f"{call.start}{field}") if paths is not None else ()
    elif reference.whole and paths is not None:
        yield from paths(reference, f"{call.start}{field}")


def _amid(reference: Reference) -> str:
    """What to write for a text that begins with a reference, which `$` takes as a whole; empty if it does not."""
    head = _HEAD.match(reference.text) if reference.whole else None
    if head is None or not re.search(r"\s", reference.text[head.end() :].rstrip()):
        return ""
    instead = f"{{{{{head[0][1:]}}}}}{reference.text[head.end() :]}"
    return (
        f"`$` takes the whole text as a reference, and '{reference.text[1:100]}' is none: inside a text write"
        f" '{instead[:100]}', or $$ at the beginning for a dollar sign"
    )


def _path(reference: Reference) -> str:
    """What to write for a reference whose path does not parse; empty if that is not known."""
    root, path = "r", reference.path
    if path.startswith("@"):
        whole = instead(path.replace("@", root, 1))
    else:
        whole = instead(f"{root}{path}" if path.startswith("[") else f"{root}.{path}")
    if not whole.expression.startswith(root):
        return ""
    written = reference.alike(f"{reference.root}{whole.expression.removeprefix(root)}")
    return f"'{reference.text[:80]}': {whole.said}: write {written[:200]}"


def _word(reference: Reference, known: _Known, language: Language) -> Word | None:
    """The word that it begins with, whose use is checked with the tool that may take it (`tool_problems`)."""
    return language.word(reference.root) if language.words and reference.root not in known else None


def _braces(text: str, call: CallOf, known: Container[str], field: str, language: Language) -> Iterator[Problem]:
    """Braces around a name that means something, or that lack the last one: not a reference all the same; a warning."""
    references = {each.text for each in in_text(text)}
    for match in _BRACES.finditer(text):
        names = [name for name in _WORD.findall(match[1]) if name == INPUTS or name in known]
        if match[0] not in references and names:
            name, shown = names[0], match[0][:100]
            message = (
                f"'{shown}' is not a reference and stays as it is: begin with the name, as in {{{{{name}.field}}}} or"
                f" {{{{{name} | length(@)}}}}; write {{{{{shown}}}}} if that is meant"
            )
            found = call.problem("NOT_A_REFERENCE", field, message)
            yield found.model_copy(update={"severity": "warning"})
    for match in _UNCLOSED.finditer(text):
        is_name = match[1] == INPUTS or match[1] in known or language.word(match[1]) is not None
        if is_name or _LACKS_A_BRACE.fullmatch(match[0]):
            message = f"'{match[0].strip()[:100]}' is not a reference, as it does not end in }}}}: add what is missing"
            found = call.problem("NOT_A_REFERENCE", field, message)
            yield found.model_copy(update={"severity": "warning"})


class _Known:
    """The names that have a meaning in a call."""

    def __init__(self, call: CallOf, scope: Scope) -> None:
        self._call, self._scope = call, scope

    def __contains__(self, name: object) -> bool:
        return name in self._call.variables or self._scope.meaning(str(name)) is not Meaning.NOTHING


def _code(call: CallOf, spec: ToolSpec, known: Container[str]) -> Iterator[Problem]:
    """What is wrong with code arguments: references that cannot be quoted safely, Python that does not parse."""
    for name, language in spec.quoting.items():
        code, field = call.args.get(name), f"args.{name}"
        try:
            check_code(code, language)
        except BadReference as error:
            has_dollar = _DOLLAR.search(str(code)) and (language == "python" or error.after == DOLLAR)
            yield call.problem("BAD_REFERENCE", field, _IN_CODE if has_dollar else error.message)
            continue
        if not isinstance(code, str):
            continue
        if language == "python" and (wrong := syntax_error(sample(code, language))):
            yield call.problem("INVALID_ARGS", field, f"Invalid args for {call.tool}: the code is not Python: {wrong}")
        if language == "shell":
            yield from _shell_variables(code, call, known, field)


def _shell_variables(command: str, call: CallOf, known: Container[str], field: str) -> Iterator[Problem]:
    """Variables of the shell that are called like a step, and are not set there: empty, not the step's value."""
    given = call.args.get("env")
    for name in dict.fromkeys(match[1] or match[2] for match in _VARIABLE.finditer(command)):
        is_set = (isinstance(given, Mapping) and name in given) or re.search(_SETS.format(name), command)
        if name in known and not is_set:
            message = (
                f"'${name}' is a variable of the shell here, and not the value of '{name}': write {{{{{name}}}}} for"
                " that, or set the variable in `env`"
            )
            yield call.problem("NOT_A_REFERENCE", field, message).model_copy(update={"severity": "warning"})


def _within(call: CallOf, texts: Texts, spec: ToolSpec, known: Container[str]) -> Iterator[Problem]:
    """`$step` amid a text, which stays as it is; code is read as its language has it."""
    for place, text in texts:
        if "$" not in text or text.startswith("$$") or place[0] in spec.quoting:
            continue
        if any(each.whole for each in in_text(text)):
            continue
        for match in _AMID.finditer(_BRACES.sub("", text)):
            if match[1] != INPUTS and match[1] not in known:
                continue
            instead = f"{{{{{match[1]}{match[2]}}}}}"
            message = f"'{match[0]}' amid a text is not a reference and stays as it is: write {instead} for the value"
            found = call.problem("NOT_A_REFERENCE", field_of_place("args", place), message)
            yield found.model_copy(update={"severity": "warning"})
        for match in _DOLLAR.finditer(text):
            if match[2] == INPUTS or match[2] in known:
                message = (
                    f"the dollar sign before '{match[1][:100]}' stays in the text: leave it out, unless it is meant"
                    " (`${{ }}` is the form of GitHub Actions)"
                )
                found = call.problem("NOT_A_REFERENCE", field_of_place("args", place), message)
                yield found.model_copy(update={"severity": "warning"})


def _variable(reference: Reference, variables: Set[str]) -> str:
    """What to write for the name of another program for a variable that has a value here; empty: it is none."""
    meant = variable_instead(reference.root, reference.path, variables)
    name = meant.partition(".")[0].partition("[")[0]
    return f"; it is called `{name}` here: write {reference.alike(meant)}" if meant else ""


def _meant(reference: Reference, language: Language, item: str) -> str:
    """What to write for a root that other programs have, or that is nearly a word of the language.

    `item`: what the item of the loop here is called.
    """
    root, path = reference.root, reference.path
    if instead := item_instead(root, path, item):
        return f"; the item of this loop is {{{{{item}}}}}{f': write {{{{{instead}}}}}' if instead != item else ''}"
    word = next((each.name for each in language.words if root.lower() in (each.name, f"{each.name}s")), "")
    path = path.strip()
    if instead := value_instead(root, path) or (f"{word}.{path or 'NAME'}" if word else ""):
        return f"; did you mean {{{{{instead}}}}}?"
    return "; a plan reads no environment: declare an input for it" if root == "env" else ""


def _reference(
    reference: Reference, call: CallOf, scope: Scope, inputs: Set[str], hints: Hints, language: Language
) -> str:
    root, path, text = reference.root, reference.path, reference.text
    if not root:
        return "'$' alone does not name a step; write $STEP, or $$ for a dollar sign"
    if root in call.variables:
        return ""
    meaning = scope.meaning(root, call.own)
    undone = call.own if call.start else scope.undone()
    if meaning is Meaning.ITSELF and root == undone and (call.start or root != call.own):
        instead = text.replace(root, VALUE, 1)
        return f"'{text}': in its own `undo`, the value of a step is called `{VALUE}`; write {instead}"
    if meaning is Meaning.ITSELF and root == call.own:
        return f"'{text}' is the step's own value, which it cannot have yet; name an earlier step"
    if meaning is Meaning.ITSELF:
        return f"'{text}' is the value of the block that contains this step, which it cannot have yet"
    if root == INPUTS:
        name = path.replace("[", ".").split(".")[0].split(" ")[0].strip('"')
        if path and not path.startswith("@") and name not in inputs:
            return f"'{text}': the plan has no input '{name}'{hints.question(name, inputs)}"
        return ""
    if meaning is Meaning.NOTHING:
        literal = f"${text}" if text.startswith("$") else "{{" + text + "}}"
        own = call.own if call.variables else ""  # the list of a loop has no item yet
        meant = _variable(reference, call.variables | scope.loop_names())
        meant = meant or _meant(reference, language, scope.item(own)) or scope.hint(root, hints, own, undone)
        meant = meant or hints.question(root, call.variables)
        end = " For" if meant.endswith("?") else "; for"
        return f"'{text}' is not a step of the plan{meant}{end} the literal text write {literal}"
    return ""
