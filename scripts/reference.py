"""Writes the pages of docs/reference from the code: `make docs`, or `python -m scripts.reference`.

    --check    write nothing; exit code 1 if a page is not what would be written

The texts stand where the thing is: the docstrings of fields, handlers and commands, and `plans/error_codes.py`. In them
`docs/PAGE.md#PLACE` becomes a link. What explains more than a name belongs on a page of docs/, which links here.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from argparse import SUPPRESS
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from temporalio import workflow

from plansurvive import features
from plansurvive.activities.feature import InProcess, InWorker, Layer
from plansurvive.client.cli.commands import COMMANDS, imported
from plansurvive.features.telemetry.instruments import METRICS
from plansurvive.features.workflow_types import FEATURES_OF_WORKER, AgentWorkflow, PlanWorkflow
from plansurvive.plans import error_codes, model
from plansurvive.plans.definition.language import Language
from plansurvive.plans.execution.messages import (
    Approve,
    BriefAsked,
    BudgetAnswer,
    Control,
    ControlPlan,
    Decide,
    Deny,
    FilesAsked,
    FilesChanged,
    InsideAsked,
    LogsAsked,
    Shown,
    Since,
    StepAsked,
)  # fmt: skip
from plansurvive.plans.files.protected_names import CATEGORIES, HARMLESS
from plansurvive.plans.in_views import InViews
from plansurvive.plans.run.feature import Rules
from plansurvive.runtime.service import worker_arguments
from plansurvive.runtime.settings import models
from plansurvive.workflows.admission import Admission
from plansurvive.workflows.feature import InRun, messages_of
from plansurvive.workflows.in_steps import InSteps
from scripts.generated import between

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "docs/reference"
NOTE = "<!-- `make docs` writes this page; change the texts in the code. -->"
_LINK = re.compile(r"\bdocs/(?P<place>(?:reference/)?(?P<page>[\w-]+)\.md(?:#[\w-]+)?)")


def linked(text: str, folder: str = "reference/") -> str:
    """A text of the code as Markdown of a page in docs/reference, or in another folder of docs."""

    def link(found: re.Match[str]) -> str:
        place = found["place"]
        inside = folder and place.startswith(folder)
        return f"[{found['page']}]({place.removeprefix(folder) if inside else '../' * bool(folder) + place})"

    return " ".join(_LINK.sub(link, text).split())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar within a cell is escaped."""
    written = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *written])


def page(title: str, *parts: str) -> str:
    """A page of paragraphs and tables."""
    return "\n\n".join([f"# {title}", NOTE, *parts]) + "\n"


def field_texts(model: type[BaseModel]) -> dict[str, str]:
    """The docstring below each field of a model, its parents' included."""
    texts: dict[str, str] = {}
    for cls in reversed([each for each in model.__mro__ if issubclass(each, BaseModel) and each is not BaseModel]):
        [defined] = [each for each in ast.parse(inspect.getsource(cls)).body if isinstance(each, ast.ClassDef)]
        for place, below in zip(defined.body, defined.body[1:], strict=False):
            if isinstance(place, ast.AnnAssign) and isinstance(place.target, ast.Name) and isinstance(below, ast.Expr):
                texts[place.target.id] = " ".join(str(ast.literal_eval(below.value)).split())
    return texts


# Errors

CODE = "code"
ERRORS: tuple[tuple[str, str, error_codes.Table, tuple[str, ...]], ...] = (
    ("Exit codes", "", error_codes.EXIT_CODES, ("exit code", "meaning")),
    (
        "Plans",
        "Reported by `plan check`, at start, and by `edit` and `regenerate`: all problems of a plan at once.",
        error_codes.PLANS,
        (CODE, "meaning", "what to do"),
    ),
    ("Steps", "", error_codes.STEPS, (CODE, "meaning", "retried")),
    (
        "Messages",
        "A refused signal is a line `REFUSED:<code>` in the plan's log; a refused update answers with the code. Neither"
        " changes anything.",
        error_codes.MESSAGES,
        (CODE, "meaning"),
    ),
    (
        "One-time links",
        "A link (docs/web.md#one-time-links) in a message decides about one call, once.",
        error_codes.LINKS,
        (CODE, "meaning"),
    ),
    ("Commands, servers, settings", "", error_codes.COMMANDS, (CODE, "meaning", "exit code")),
    (
        "Agents, over MCP",
        "The tools of `plan mcp` (docs/mcp.md) answer with the codes of this page, and with these.",
        error_codes.MCP,
        (CODE, "meaning", "what to do"),
    ),
    (
        "The web page",
        "Other errors keep their codes, with status 404 for what there is not, 409 for what a plan refuses, 422 for a"
        " plan with problems, 503 while no server or worker answers; a page then asks again by itself.",
        error_codes.WEB,
        (CODE, "meaning", "status"),
    ),
    ("LLM", "", error_codes.LLM, (CODE, "meaning")),
    ("Weaknesses that `plan doctor` names", "", error_codes.WEAKNESSES, (CODE, "what is weak")),
)


def errors() -> str:
    """Exit codes and error codes."""
    parts = [
        "Every error has a stable code in capitals: in `--json` output, in a step's `result.code`, as the type of the"
        " failure in Temporal, and after `REFUSED:` in a plan's log. Its message says what is wrong, where, and what to"
        " do now."
    ]
    for title, intro, codes, head in ERRORS:
        rows = [(code if code.isdigit() else f"`{code}`", *map(linked, cells)) for code, cells in codes.items()]
        parts += [f"## {title}", *([linked(intro)] if intro else []), table(head, rows)]
    return page("Exit codes and error codes", *parts)


# Settings

SETTINGS: dict[str, tuple[str, str]] = {
    "Plans and workers": (
        "",
        "task_queue queues workspace workspaces workspace_lock tools http_allow decisions approvals edits protected"
        " max_activities grace auto_worker deployment",
    ),
    "Server and storage": (
        "Temporal's own variables (`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS*`,"
        " `TEMPORAL_PROFILE`, `TEMPORAL_CONFIG_FILE`) mean what they mean to the Temporal CLI; which server is used:"
        " docs/operations.md#which-server-is-used.",
        "server temporal_from grpc_compression state_dir cache_dir inline_bytes output_mb storage external_bytes "
        "prune_hours",
    ),
    "Files of the operator": ("", "agents agents_home limits mcp notify policy secrets"),
    "Commands: sandbox and limits": (
        "Levels of the sandbox: docs/security.md. The limits apply to what `run_command` and `run_python` start.",
        "sandbox sandbox_network sandbox_read limit_cpu limit_memory_mb limit_file_mb limit_open_files limit_processes"
        " limit_free_mb",
    ),
    "File changes and results": ("", "trace undo undo_mb cache cache_mb cache_days express worktrees"),
    "Encryption": ("What is encrypted, and how keys are changed: docs/encryption.md.", "keys plain codec_audience"),
    "Workers with a workspace each": (
        "What follows from it: docs/scaling.md#a-workspace-each.",
        "host host_patience host_seed checkpoint_mb",
    ),
    "LLM": (
        "Read by workers only: a plan, a workspace or a model cannot change them.",
        "model llm_timeout context_tokens openai_api_key openai_base_url llm_prices",
    ),
    "Telemetry": (
        "All of it is off by default. What is exported, and what never is: docs/telemetry.md.",
        "otel metrics log log_level",
    ),
    "Web page": (
        "How to let a team in: docs/web.md. Secrets stay in files or other variables, so that they are not passed on"
        " to workers.",
        "web_listen web_url web_oidc_issuer web_oidc_client_id web_oidc_secret_file web_oidc_secret_env"
        " web_oidc_name_claim web_oidc_groups_claim web_oidc_scopes web_proxy_header web_proxy_groups web_proxy_from"
        " web_proxy_secret_file web_roles web_idle_minutes web_session_hours web_mcp web_mcp_audience web_mcp_decide"
        " web_mcp_templates",
    ),
}
"""Sections of the page: what is said first, and the fields."""
_DIRECTORIES = {"state_dir": "`~/.local/state/plans`", "cache_dir": "`~/.cache/plans`"}


def settings(sections: Mapping[str, tuple[str, str]] = SETTINGS) -> str:
    """Every setting, with its default. Raises LookupError for one that has no section."""
    texts = {name: text for each in models() for name, text in field_texts(each).items()}
    fields = {name: info for each in models() for name, info in each.model_fields.items()}
    parts = [
        "Settings are environment variables, read once when a command or a worker starts. An unusable value, or an"
        " unknown name that begins with `PLANS_`, stops the program at once with `BAD_SETTING:<name>`. `plan doctor`"
        " shows the settings in force; `plan worker --help` lists the flags that override some of them.",
        "The background worker takes the settings of the command that starts it. A later command that starts work"
        " (`run`, `start`, `make`, `agent`, `resume`, ...) with other settings replaces the worker; steps that are"
        " running finish first. A command that looks or decides takes the worker that is there.",
    ]
    left = set(fields) - {"temporal", "of_features"}
    for title, (intro, names) in sections.items():
        rows = [_setting(name, fields[name], linked(texts[name])) for name in names.split()]
        parts += [f"## {title}", *([linked(intro)] if intro else []), table(("variable", "default", "meaning"), rows)]
        left -= set(names.split())
    if left:
        raise LookupError(f"there is no section for {sorted(left)}")
    return page("Settings", *parts)


def _setting(name: str, info: FieldInfo, text: str) -> tuple[str, str, str]:
    """A row: the variable, its default, its meaning. A text may end with what holds by default."""
    meaning, _, otherwise = text.removesuffix(".").partition("; default: ")
    variable = name.upper() if name.startswith("openai_") else f"PLANS_{name.upper()}"
    return f"`{variable}`", otherwise or _default(name, info), f"{meaning}."


def _default(name: str, info: FieldInfo) -> str:
    """A default as one would write it into the environment."""
    value = info.get_default()
    if name in _DIRECTORIES:
        return _DIRECTORIES[name]
    if value in (None, ()):
        return "none"
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    if isinstance(value, tuple):
        value = ",".join(value)
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


# Fields of a plan file

PLAN_FILES = "docs/plan-files.md"
MODELS: dict[str, type[BaseModel]] = {
    "Plan": model.Plan, "Step": model.Step, "ForEach": model.ForEach, "Repeat": model.Repeat, "Case": model.Case,
    "Catch": model.Catch, "Undo": model.Undo, "Input": model.Input, "Retry": model.Retry,
    "Approval": model.ApprovalRule, "Defaults": model.Defaults, "Budget": model.Budget,
}  # fmt: skip
"""What docs/plan-files.md has a table of, between two markers."""


def with_fields(document: str) -> str:
    """The page about plan files with a row for each field of each model. Raises ValueError if it lacks a table."""
    for name, kind in MODELS.items():
        texts = {info.alias or field: info.description or "" for field, info in kind.model_fields.items()}
        rows = [(f"`{field}`", linked(text, "")) for field, text in texts.items()]
        begin, end = f"<!-- fields of {name}: begin (make docs) -->", f"<!-- fields of {name}: end -->"
        document = between(document, begin, end, table(("field", "meaning"), rows))
    return document


# The tree, the seams and the features

ARCHITECTURE = "ARCHITECTURE.md"
ROOMS = ("plans", "workflows", "activities", "runtime", "client", "apps")
SEAMS: dict[str, tuple[type, ...]] = {
    "rules": (Rules,), "in_views": (InViews,), "language": (Language,), "in_workflow": (InRun, InSteps),
    "in_admission": (Admission,), "in_worker": (InWorker, Layer), "in_process": (InProcess,),
}  # fmt: skip
"""By side, the protocols of which a feature fills what it needs."""


def with_tables(document: str) -> str:
    """The page about the architecture with its tables of seams, features and folders."""
    return _with_tree(_with_features(_with_seams(document)))


def _with_seams(document: str) -> str:
    rows = [
        (f"`{side}`", f"[{kind.__name__}]({_file_of(kind)})", ", ".join(f"`{name}`" for name in _members(kind)))
        for side, kinds in SEAMS.items()
        for kind in kinds
    ]
    made = table(("side", "protocol", "seams"), rows)
    return between(document, "<!-- seams: begin (make docs) -->", "<!-- seams: end -->", made)


def _file_of(kind: type) -> str:
    return kind.__module__.removeprefix("plansurvive.").replace(".", "/") + ".py"


def _members(kind: type) -> list[str]:
    """What a feature may define of a protocol, in its order. Its name is no seam."""
    fields = inspect.get_annotations(kind)
    # In the order of the source, in which fields stand above methods. What a dataclass defines besides is for the core.
    named = fields if is_dataclass(kind) else {**fields, **vars(kind)}
    return [name for name in named if not name.startswith("_") and name not in ("name", "feature", "others")]


def _with_features(document: str) -> str:
    """A row for each feature: its sides, and its page, which whoever adds the feature writes into the row."""
    begin, end = "<!-- features: begin (make docs) -->", "<!-- features: end -->"
    of_page = document.partition(begin)[2].partition(end)[0]
    pages = dict(re.findall(r"^\| \[(\w+)\]\([^)]*\) \|.*\| ([^|]*) \|$", of_page, re.MULTILINE))
    known = re.findall(r"^- `(\w+)`", features.__doc__ or "", re.MULTILINE)
    rows = []
    for name in features.FEATURES:
        folder = ROOT / "features" / name
        sides = ", ".join(side for side in known if (folder / f"{side}.py").exists())
        rows.append((f"[{name}](features/{name}/)", _subject(folder / "__init__.py"), sides, pages.get(name, "")))
    return between(document, begin, end, table(("feature", "holds", "sides", "page"), rows))


def _with_tree(document: str) -> str:
    """A row for each folder: how its `__init__` begins, up to a colon."""
    files = [
        file for room in ROOMS for file in sorted([ROOT / room / "__init__.py", *(ROOT / room).glob("*/__init__.py")])
    ]
    rows = [(f"`{file.parent.relative_to(ROOT)}/`", subject) for file in files if (subject := _subject(file))]
    return between(document, "<!-- tree: begin (make docs) -->", "<!-- tree: end -->", table(("folder", "holds"), rows))


def _subject(file: Path) -> str:
    """How the docstring of a module begins, up to a colon or the end of the sentence."""
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return re.split(r"[.:;] ", " ".join(text.split("\n\n")[0].split()))[0].rstrip(".")


# Messages

INPUTS: dict[str, type[BaseModel] | None] = {
    "approve": Approve, "deny": Deny, "decide": Decide, "pause": Control, "unpause": Control, "begin": Control,
    "interrupt": Control, "abandon": Control, "clear_session": Control, "control": ControlPlan,
    "files_changed": FilesChanged, "budget_answer": BudgetAnswer, "plan": BriefAsked, "events": Since,
    "stamps": FilesAsked, "inside": InsideAsked, "logs": LogsAsked, "call": StepAsked, "text": Shown, "receipts": None,
    "summary": None, "file": None, "tools": None, "state": None,
}  # fmt: skip
INPUTS |= {
    message.name: message.reads
    for asked in (FEATURES_OF_WORKER, FEATURES_OF_WORKER.of_agents)
    for message in messages_of(asked.in_run)
}
"""What each message is read as; None: it needs no input."""
WORKFLOWS: dict[str, type] = {"plans": PlanWorkflow, "agents": AgentWorkflow}


def messages() -> str:
    """The signals, updates and queries of plans and agents."""
    parts = [
        linked(
            "Every message is one JSON object of at most 16 KiB; `?` marks what may be left out. From Temporal's own"
            " tools: docs/contract.md#22-workflows-and-messages."
        )
    ]
    for kind, intro in {
        "signals": "A signal that is malformed, unknown or too late changes nothing and leaves a log entry"
        " `REFUSED:<code>` (docs/reference/errors.md#messages).",
        "updates": "An update answers, and is refused with a code.",
        "queries": "A query changes nothing, and adds nothing to the history.",
    }.items():
        found = {of: getattr(workflow._Definition.must_from_class(cls), kind) for of, cls in WORKFLOWS.items()}
        names = dict.fromkeys(name for each in found.values() for name in each if name)
        rows = []
        for name in sorted(names):
            of = [each for each in WORKFLOWS if name in found[each]]
            text = inspect.getdoc(found[of[0]][name].fn) or ""
            rows.append((f"`{name}`", ", ".join(of), _input(INPUTS[name]), linked(text)))
        parts += [f"## {kind.capitalize()}", linked(intro), table(("name", "of", "input", "effect"), rows)]
    return page("Messages", *parts)


def _input(model: type[BaseModel] | None) -> str:
    """The shape of a message: `{stepId, by?}`."""
    if model is None:
        return "nothing"
    fields = [(info.alias or name) + "?" * (not info.is_required()) for name, info in model.model_fields.items()]
    return "`{" + ", ".join(fields) + "}`"


# Commands

_COMMON = {"--json", "--help", "--install-completion", "--show-completion"}


def commands() -> str:
    """Every command with its arguments and options."""
    parts = [
        "`plan` (also `python -m plansurvive`). ID is a plan id or a workflow id. `--json` prints JSON wherever"
        " something is shown. " + linked("Exit codes: docs/reference/errors.md#exit-codes."),
    ]
    known: dict[str, str] = {}
    for name in COMMANDS:
        parts += _command(f"plan {name}", imported(name), known)
    return page("Commands", *parts)


def _command(name: str, command: Any, known: dict[str, str]) -> Iterator[str]:
    """The parts of a command; of a group, those of its commands. `known`: lists of options, and who has them."""
    inner = getattr(command, "commands", {})
    if not inner or command.invoke_without_command:
        yield f"## `{' '.join([name, *(_argument(each) for each in command.params if _is_argument(each))])}`"
        yield linked((command.help or "").strip())
        options = [_option(each) for each in command.params if not _COMMON & set(each.opts)]
        if name == "plan worker":
            options = [_flag(each) for each in worker_arguments.parser()._actions if each.help != SUPPRESS]
        listed = "\n".join(option for option in options if option)
        if known.setdefault(listed, name) != name and len(options) > 1:
            yield f"- As `{known[listed]}`."
        elif listed:
            yield listed
    for each, below in inner.items():
        yield from _command(f"{name} {each}", below, known)


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _argument(parameter: Any) -> str:
    shown = (parameter.metavar or parameter.name.upper()) + "..." * (parameter.nargs != 1)
    return shown if parameter.required else f"[{shown}]"


def _option(parameter: Any) -> str:
    if _is_argument(parameter):
        if parameter.help == "Plan id or workflow id.":
            return ""
        return f"- {parameter.metavar or parameter.name.upper()}: {linked(parameter.help or '')}"
    value = f" {parameter.metavar}" if parameter.metavar else ""
    return f"- `{', '.join(parameter.opts)}{value}`: {linked(parameter.help or '')}"


def _flag(action: Any) -> str:
    value = f" {action.metavar}" if action.metavar else ""
    return "" if "--help" in action.option_strings else f"- `{action.option_strings[0]}{value}`: {action.help}"


def metrics() -> str:
    """The metrics of workers."""
    rows = [(f"`{name}`", labels or "none", linked(text)) for name, (labels, text) in METRICS.items()]
    return page(
        "Metrics", linked("What serves them: docs/telemetry.md#metrics."), table(("metric", "labels", "meaning"), rows)
    )


def protected_names() -> str:
    """The names that are written with approval only."""
    rows = []
    for each in CATEGORIES:
        names = [f"`{name}/`" for name in each.folders.split()] + [f"`{name}`" for name in each.files.split()]
        rows.append((each.title, f"may {each.why}", "read-only" if each.strict else "may be written", " ".join(names)))
    return page(
        "Names that need approval",
        linked(
            "What the list is for: docs/files.md#names-that-need-approval. A name with `/` at its end stands for the"
            " directory and everything in it; `*` for any characters. Commands may not change the first kind at sandbox"
            " level 2."
        ),
        table(("what", "why", "for commands", "names"), rows),
        f"Written without approval, as they hold no secrets: {' '.join(f'`{name}`' for name in HARMLESS.split())}.",
    )


PAGES: Mapping[str, Callable[[], str]] = {
    "commands.md": commands,
    "errors.md": errors,
    "messages.md": messages,
    "metrics.md": metrics,
    "protected-names.md": protected_names,
    "settings.md": settings,
}


def outdated(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """The pages that are not what would be written, with their new text."""
    for name, write in PAGES.items():
        file, text = root / FOLDER / name, write()
        if not file.exists() or file.read_text("utf-8") != text:
            yield file, text
    for name, filled in {PLAN_FILES: with_fields, ARCHITECTURE: with_tables}.items():
        file = root / name
        if file.exists() and (text := filled(file.read_text("utf-8"))) != file.read_text("utf-8"):
            yield file, text


def main(arguments: list[str]) -> int:
    """Write the pages; with `--check`, only name those that are out of date."""
    found = list(outdated())
    for file, text in found:
        print(file.relative_to(ROOT))
        if "--check" not in arguments:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, "utf-8")
    return 1 if found and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
