"""The documentation is true: its commands run and print what it says, its plans are sound, its links lead somewhere.

Every ```console block of a page is run, in order, in a directory with a copy of `examples` and the files that the page
tells its reader to save, on an embedded server of its own. What a block shows must come, in that order; `…` stands for
any text, on a line of its own for any lines.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.plan_file import check
from plansurvive.features.secrets.secrets_file import FILE, allowed, read_entries
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.runtime.plan_files.yaml_reader import parse_yaml
from plansurvive.runtime.settings import Settings
from tests.nightly import only_nightly, only_sampled

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOLDERS = ("plans", "runtime", "activities", "workflows", "client", "features", "apps")
SOURCES = [path for name in FOLDERS for path in (ROOT / name).rglob("*.py")]
SOURCES += [ROOT / "worker.py"]
RUN_PAGES = [page for page in PAGES if "```console" in page.read_text()]
CEILING = 600.0
NEARLY = 0.72
"""How much alike two lines are of which one replaced the other."""
MARK = "@@@ ended with"


@dataclass
class Command:
    """One command of a block, and the lines it is shown to print."""

    text: str
    shown: list[str] = field(default_factory=list)


def blocks(page: Path, language: str) -> list[str]:
    """The contents of a page's code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[Command]:
    """The commands of a page, in order."""
    found: list[Command] = []
    for row in "".join(blocks(page, "console")).splitlines():
        if row.startswith("$ "):
            found.append(Command(row[2:]))
        else:
            found[-1].shown.append(row)
    return found


def saved_files(page: Path) -> dict[str, str]:
    """The files that a page tells its reader to save, by name."""
    return dict(
        re.findall(r"ave\s+this\s+as\s+`([\w.]+)`:\n\n```\w+\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    )


def is_shown(shown: list[str], printed: str) -> bool:
    """Whether an output is as shown, blank space at the ends of lines aside."""
    pattern = "".join(r"(?:.*\n)*?" if row == "…" else _row(row) for row in shown)
    rows = [row.rstrip() for row in printed.splitlines()]
    return re.fullmatch(pattern + r"\s*", "".join(row + "\n" for row in rows)) is not None


def _row(row: str) -> str:
    return ".*".join(re.escape(part) for part in row.rstrip().split("…")) + "\n"


@pytest.fixture
def shell(tmp_path: Path, temporal_binary: Path) -> dict[str, str]:
    """An environment like that of a user who has installed the project: `plan`, `python` and `temporal` on PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "temporal").symlink_to(temporal_binary)
    for name, arguments in (("plan", "-m plansurvive "), ("python", "")):
        program = programs / name  # a link would lose the virtual environment
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        program.chmod(0o755)
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PLANS_SERVER": "embedded",
        "PLANS_GRACE": "2",
    }


def test_the_pages_that_show_commands_are_run() -> None:
    run = {str(page.relative_to(ROOT)): len(commands(page)) for page in RUN_PAGES}
    assert run.keys() >= {"README.md", "docs/tutorial.md", "docs/tools.md", "docs/testing.md"}
    assert sum(run.values()) > 35


@pytest.mark.parametrize(
    "page",
    [only_sampled(page) if page.name == "README.md" else only_nightly(page) for page in RUN_PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
async def test_the_commands_of_a_page_print_what_it_says(page: Path, shell: dict[str, str], tmp_path: Path) -> None:
    shown_commands = commands(page)
    (tmp_path / "home").mkdir()
    shutil.copytree(ROOT / "examples", tmp_path / "clone" / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in saved_files(page).items():
        (tmp_path / "clone" / name).write_text(text)
    script = "\n".join(f"{{ {each.text}\n}} 2>&1\ncode=$?; echo; echo '{MARK}' $code" for each in shown_commands)
    try:
        printed = await output_of("bash", "-c", script, environ=shell, directory=tmp_path / "clone")
    finally:
        await output_of("plan", "down", environ=shell, directory=tmp_path)
    parts = re.split(rf"^{MARK} (\d+)\n", printed, flags=re.MULTILINE)
    for each, text, code in zip(shown_commands, parts[::2], parts[1::2], strict=False):
        if code != "0" or (each.shown and not is_shown(each.shown, text)):
            shown = "\n".join(each.shown)
            pytest.fail(f"$ {each.text}\nprinted, with exit code {code}:\n{text}\nThe page shows:\n{shown}")
    assert len(parts) == 2 * len(shown_commands) + 1, f"took longer than {CEILING:g} s:\n{parts[-1]}"


async def output_of(*command: str, environ: dict[str, str], directory: Path) -> str:
    """What a command prints, errors included; it and what it started are killed when it takes too long."""
    program = shutil.which(command[0], path=environ["PATH"])
    assert program
    with tempfile.TemporaryFile() as printed:
        process = await asyncio.create_subprocess_exec(
            program, *command[1:], env=environ, cwd=directory, stdin=asyncio.subprocess.DEVNULL,
            stdout=printed, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            await asyncio.wait_for(process.wait(), CEILING)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        printed.seek(0)
        return printed.read().decode()


def test_the_example_of_a_tool_is_shown_as_it_is() -> None:
    [shown] = [text for text in blocks(ROOT / "docs/tools.md", "python") if "def word_count" in text]
    assert shown in (ROOT / "examples/tools/word_count.py").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_plans_in_the_documentation_are_sound(page: Path, tmp_path: Path) -> None:
    tools = {name: tool.spec for name, tool in load_tools([str(ROOT / "examples/tools/word_count.py")]).items()}
    for text in (each for each in blocks(page, "toml") if "[secrets." in each):
        (tmp_path / FILE).write_text(text)
        entries = read_entries(Settings.read({"PLANS_SECRETS": str(tmp_path / FILE)}))
        tools = {name: allowed(spec, entries) for name, spec in tools.items()}
    for text in blocks(page, "yaml"):
        if "steps:" in text:
            plan, problems = check(parse_yaml(text), tools)
            assert plan
            assert errors(problems) == [], text


def doubled(text: str) -> list[str]:
    """Entries of lists that a page has twice, and lines that are nearly those a few lines above: merges leave both.

    Tables and the dates below them may repeat.
    """
    prose = re.sub(r"(?ms)^```.*?^```", "", text)
    entries = [" ".join(entry.split()) for entry in re.findall(r"(?ms)^- .*?(?=^- |^\n|^#|\Z)", prose)]
    twice = [entry for entry in dict.fromkeys(entries) if entries.count(entry) > 1]
    aside = ("|", "*20", "<!--")
    lines = [line for line in prose.split("\n") if len(line) >= 40 and not line.lstrip().startswith(aside)]
    near = [(line, later) for at, line in enumerate(lines) for later in lines[at + 1 : at + 4]]
    return twice + [
        later
        for line, later in near
        if line[:15] == later[:15] and SequenceMatcher(None, line, later, autojunk=False).ratio() > NEARLY
    ]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name != "reference"], ids=lambda page: page.name
)
def test_no_page_says_the_same_twice(page: Path) -> None:
    assert doubled(page.read_text()) == []


@pytest.mark.parametrize(
    "second",
    [
        "- [Operations](operations.md): processes, servers, failures, upgrades.",
        "- [Dry run](dry-run.md): what a plan would do.",
    ],
)
def test_an_entry_that_a_merge_has_doubled_is_seen(second: str) -> None:
    first = (
        "- [Operations](operations.md): processes, servers, failures.\n- [Dry run](dry-run.md): what a plan would do.\n"
    )
    assert doubled(first) == []
    assert doubled(f"{first}- [Web](web.md): plans in a browser.\n{second}\n") != []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        place = page.parent / name if name else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), target


def anchors(page: Path) -> set[str]:
    """What links into a page may name."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def codes() -> Iterator[str]:
    """Every error code the sources can give, as they are written there."""
    not_codes = (
        "PLANS_", "OTEL_", "MAX_", "DEFAULT_", "LOG_ENTRIES", "OVERRUN_CODE", "SC_CLK_TCK", "HTTPS_PROXY",
        # Of libraries and other programs.
        "GITHUB_", "TEMPORAL_", "OPENAI_", "TEXTUAL_", "XDG_", "CAP_", "SQLITE_", "CGO_", "LC_", "LD_", "GIT_", "NODE_",
    )  # fmt: skip
    for path in (each for each in SOURCES if each.name != "error_codes.py"):
        for code in re.findall(r'"([A-Z]{2,}(?:_[A-Z]+)+|CONFLICT|EXISTS|DENIED|CANCELLED)"', path.read_text()):
            if not code.startswith(not_codes):
                yield code


def test_every_error_code_is_explained() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text()
    explained = set(re.findall(r"^\| `([A-Z0-9_:<>a-z]+)` \|", page, re.MULTILINE))
    assert sorted(set(codes()) - explained) == []


CITED = {
    "faults.md": r"FAULTS,? ((?:rule |[TFM])?\d+[a-z]?)",
    "temporal.md": r"TEMPORAL\.md (\d+)",
    "contract.md": r"(?:DESIGN|REQUIREMENTS) ([A-H]?\d+(?:\.\d)?)",
    "sources.md": r"[Ss]eed (\d{3})",
}


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("page", CITED)
def test_what_the_code_cites_can_be_looked_up(page: str) -> None:
    text = " ".join(" ".join(path.read_text() for path in [*SOURCES, *(ROOT / "tests").rglob("*.py")]).split())
    cited = set(re.findall(CITED[page], text))
    assert cited
    found = (ROOT / "docs" / page).read_text()
    missing = [each for each in cited if not re.search(rf"(^|\| |\*\*|# |, ){re.escape(each)}\b", found, re.MULTILINE)]
    if page == "faults.md":
        missing = [each for each in missing if not (each.isdigit() and "Bad input" in found)]
    assert sorted(missing) == []
