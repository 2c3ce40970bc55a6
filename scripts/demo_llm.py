"""`make demo-llm`: a request becomes a plan, is reviewed, runs, and is mended, offline: the LLM is a scripted server.

Everything else is real: Temporal, the worker, the commands shown. All of it lives in a directory of its own and is
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
    ("A sentence becomes a plan; it waits in review.", ["make", "tidy the notes", "--id", NAME]),
    ("A reviewer has it revised ...", ["regenerate", NAME, "read the report again before anything is removed"]),
    ("... and changes a step; nobody else must have been faster.",
     ["edit", NAME, "--set", "report.description=Write the report of the notes", "--expect-version", "2"]),
    ("It begins. Its second step fails: there is no todo.md. The LLM mends it.", ["begin", NAME]),
]  # fmt: skip
AFTER: list[tuple[str, list[str]]] = [
    ("Nothing is removed before a person said yes, whatever the LLM wrote.", ["pending"]),
    ("The person says yes.", ["approve", NAME, "remove"]),
    ("What happened.", ["watch", NAME]),
    ("All of it.", ["show", NAME]),
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
        print(f"\n{workspace / 'report.md'} says:\n{(workspace / 'report.md').read_text()}")
    return code or int(bool(left))


def _play(environ: dict[str, str]) -> int:
    for told, arguments in STORY:
        code = _tell(environ, told, arguments)
        if code:
            return code
    while '"stepId": "remove"' not in _plan(environ, "pending", "--json", quiet=True).stdout:
        status = _plan(environ, "summary", NAME, "--json", quiet=True).stdout
        if '"endedAt": null' not in status:
            print(status)
            return 1
    return next((code for told, arguments in AFTER if (code := _tell(environ, told, arguments))), 0)


def _tell(environ: dict[str, str], told: str, arguments: list[str]) -> int:
    shown = " ".join(f'"{each}"' if " " in each else each for each in arguments)
    print(f"\n# {told}\n$ plan {shown}", flush=True)
    return _plan(environ, *arguments).returncode


def _plan(environ: dict[str, str], *arguments: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "client", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, text=True, capture_output=quiet, check=False)


def _environ(home: Path, workspace: Path, url: str) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PLANS_", "TEMPORAL_", "OPENAI_"))}
    return kept | {
        "PLANS_STATE_DIR": str(home / "state"),
        "PLANS_SERVER": "embedded",
        "PLANS_WORKSPACE": str(workspace),
        "PLANS_MODEL": "scripted",
        "OPENAI_BASE_URL": url,
    }


if __name__ == "__main__":
    sys.exit(main())
