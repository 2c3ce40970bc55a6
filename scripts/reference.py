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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from plans import error_codes
from runtime.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "docs/reference"
NOTE = "<!-- `make docs` writes this page; change the texts in the code. -->"
_LINK = re.compile(r"\bdocs/((?P<page>[\w-]+)\.md(?:#[\w-]+)?)")


def linked(text: str) -> str:
    """A text of the code as Markdown of a page in docs/reference."""
    return " ".join(_LINK.sub(r"[\g<page>](../\1)", text).split())


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
        "server grpc_compression state_dir cache_dir inline_bytes output_mb storage external_bytes prune_hours",
    ),
    "Files of the operator": ("", "limits mcp notify secrets"),
    "Commands: sandbox and limits": (
        "Levels of the sandbox: docs/security.md. The limits apply to what `run_command` and `run_python` start.",
        "sandbox sandbox_network sandbox_read limit_cpu limit_memory_mb limit_file_mb limit_open_files limit_processes"
        " limit_free_mb",
    ),
    "File changes and results": ("", "trace undo undo_mb cache cache_mb cache_days"),
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
    texts = field_texts(Settings)
    parts = [
        "Settings are environment variables, read once when a command or a worker starts. An unusable value, or an"
        " unknown name that begins with `PLANS_`, stops the program at once with `BAD_SETTING:<name>`. `plan doctor`"
        " shows the settings in force; `plan worker --help` lists the flags that override some of them.",
        "The background worker takes the settings of the command that starts it. A later command that starts work"
        " (`run`, `start`, `make`, `agent`, `resume`, ...) with other settings replaces the worker; steps that are"
        " running finish first. A command that looks or decides takes the worker that is there.",
    ]
    left = set(Settings.model_fields) - {"temporal"}
    for title, (intro, names) in sections.items():
        rows = [_setting(name, Settings.model_fields[name], linked(texts[name])) for name in names.split()]
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
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


PAGES: Mapping[str, Callable[[], str]] = {"errors.md": errors, "settings.md": settings}


def outdated(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """The pages that are not what would be written, with their new text."""
    for name, write in PAGES.items():
        file, text = root / FOLDER / name, write()
        if not file.exists() or file.read_text("utf-8") != text:
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
