"""`make demo-llm`: a plan is made from a request, reviewed, run and recovered, offline: the LLM is a scripted server.

Everything else is real: Temporal, the worker, the commands shown. It runs in a temporary directory, and everything is
stopped at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from examples.scripted_llm.script import Script  # noqa: E402
from examples.scripted_llm.server import ScriptedLlm  # noqa: E402

NAME = "tidy-notes"
STORY: list[tuple[str, list[str]]] = [
    ("The LLM makes a plan from a sentence; the plan waits in review.", ["make", "tidy the notes", "--id", NAME]),
    ("A reviewer has the LLM revise it ...", ["regenerate", NAME, "read the report again before anything is removed"]),
    ("... and edits a step, provided that the plan is still at version 2.",
     ["edit", NAME, "--set", "report.description=Write the report of the notes", "--expect-version", "2"]),
    ("The plan begins. Its second step fails, since there is no todo.md. The LLM recovers it.", ["begin", NAME]),
]  # fmt: skip
AFTER: list[tuple[str, list[str]]] = [
    ("Deleting a file needs approval, even though the LLM's plan says that it does not.", ["pending"]),
    ("A person approves it.", ["approve", NAME, "remove"]),
    ("The log of the plan.", ["watch", NAME]),
    ("The whole plan.", ["show", NAME]),
]


def main() -> int:
    """Play the story; returns the exit code."""
    home = Path(tempfile.mkdtemp(prefix="plans-demo-llm-"))
    workspace = home / "workspace"
    workspace.mkdir()
    for name, text in {"a.txt": "a\n", "old.txt": "old\n", "todo.txt": "- rest\n"}.items():
        (workspace / name).write_text(text)
    with ScriptedLlm(Script.read(ROOT / "examples" / "scripted_llm" / "story.yaml")) as llm:
        environ = _environ(home, workspace, llm.url)
        try:
            code = _play(environ)
        finally:
            _plan(environ, "down", quiet=True)
        left = [*llm.play.left, *llm.play.unexpected]
    if code == 0 and not left:
        print(f"\n{workspace / 'report.md'} contains:\n{(workspace / 'report.md').read_text()}")
    return code or int(bool(left))


def _play(environ: dict[str, str]) -> int:
    for comment, arguments in STORY:
        code = _show(environ, comment, arguments)
        if code:
            return code
    while '"stepId": "remove"' not in _plan(environ, "pending", "--json", quiet=True).stdout:
        status = _plan(environ, "summary", NAME, "--json", quiet=True).stdout
        if '"endedAt": null' not in status:
            print(status)
            return 1
    return next((code for comment, arguments in AFTER if (code := _show(environ, comment, arguments))), 0)


def _show(environ: dict[str, str], comment: str, arguments: list[str]) -> int:
    shown = " ".join(f'"{each}"' if " " in each else each for each in arguments)
    print(f"\n# {comment}\n$ plan {shown}", flush=True)
    return _plan(environ, *arguments).returncode


def _plan(environ: dict[str, str], *arguments: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plansurvive", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, text=True, capture_output=quiet, check=False)


def _environ(home: Path, workspace: Path, url: str) -> dict[str, str]:
    inherited = {
        name: text for name, text in os.environ.items() if not name.startswith(("PLANS_", "TEMPORAL_", "OPENAI_"))
    }
    return inherited | {
        "PLANS_STATE_DIR": str(home / "state"),
        "PLANS_SERVER": "embedded",
        "PLANS_WORKSPACE": str(workspace),
        "PLANS_MODEL": "scripted",
        "OPENAI_BASE_URL": url,
    }


if __name__ == "__main__":
    sys.exit(main())
