"""What must hold of a coding agent's work whatever was killed while it worked, judged after its end.

A transcript is what the agent has received, as it logs it; the ledger is the view of its workflow. Each rule compares
them, or one of them with what has happened in the workspace. Nothing here asks a server, so each rule has a control.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

REQUEST = "Fix the test."
CONTINUE = "Continue the interrupted request."
LATE = f"{CONTINUE} If it has not reached you, this is it; begin with it then:\n\n{REQUEST}"
"""What an agent is sent whose process may have been killed before it had the request."""
ASKS = "coding_agent.execute"
LOST = ("OUTCOME_UNKNOWN", "WORKER_LOST", "CANCELLED")
"""How a command ends that was killed with its worker, or with the process that wanted it."""
ENDED = "AGENT_ENDED"


@dataclass(frozen=True)
class Record:
    """Of one agent. Each of its commands adds one line of its own to a file; what it asks for has a title."""

    transcript: list[dict[str, Any]]
    ledger: list[dict[str, Any]]
    """The steps of its workflow."""
    lines: list[str]
    """Of the file that its commands add to."""
    code: str
    """Of the step of its plan: empty if that has completed."""
    kills: int
    """Of its process."""
    restarts: int
    """Of its process, for that or as its worker was killed."""
    files: set[str]
    """Those that the step's value names."""

    def answers(self, method: str) -> list[tuple[str, Any]]:
        """What the agent asked by this method, and what it was given."""
        return [(each["of"], each["answer"]) for each in self.transcript if each.get("to") == method]

    @property
    def prompts(self) -> list[tuple[str, str]]:
        """Session and text of each request."""
        sent = [each["params"] for each in self.transcript if each.get("method") == "session/prompt"]
        return [(each["sessionId"], each["prompt"][0]["text"]) for each in sent]

    @property
    def commands(self) -> dict[str, dict[str, Any]]:
        """The steps that are commands, by the line that each adds."""
        return {each["args"]["command"].split()[3]: each for each in self.ledger if each["tool"] == "run_command"}

    def permissions(self, title: str) -> list[dict[str, Any]]:
        """The steps that asked for this, in order."""
        return [each for each in self.ledger if each["tool"] == ASKS and each["args"]["title"] == title]


def request_is_sent_once(record: Record) -> Iterator[str]:
    """Then continuations follow, in the same session."""
    texts = [text for _, text in record.prompts]
    if texts.count(REQUEST) > 1 or not (texts[0] == REQUEST or texts[0].startswith(LATE)):
        yield f"the request was not sent first, and once: {texts}"
    if any(not text.startswith(CONTINUE) for text in texts[1:]):
        yield f"after the request there is more than continuations: {texts}"
    if len({session for session, _ in record.prompts}) != 1:
        yield f"it worked in more than one session: {record.prompts}"


def commands_run_once(record: Record) -> Iterator[str]:
    """Each line is that of one step; one that has completed has its line, one that was denied has none."""
    if twice := [line for line, times in Counter(record.lines).items() if times > 1]:
        yield f"run twice: {twice}"
    if unknown := set(record.lines) - set(record.commands):
        yield f"run, and not recorded: {unknown}"
    for line, each in record.commands.items():
        code = (each.get("result") or {}).get("code")
        if each["status"] == "completed" and line not in record.lines:
            yield f"recorded as completed, and not run: {each['id']}"
        if each["status"] == "skipped" and line in record.lines:
            yield f"run, and not allowed: {each['id']}"
        if each["status"] == "failed" and code not in LOST:
            yield f"{each['id']} failed with {code}"


def what_may_have_happened_says_so(record: Record) -> Iterator[str]:
    """What was allowed before and is asked again says that it may have happened."""
    for title in {each["args"]["title"] for each in record.ledger if each["tool"] == ASKS}:
        was_allowed = False
        for each in record.permissions(title):
            if was_allowed != ("may have happened" in each["args"].get("again", "")):
                yield f"{each['id']} ({title}) was allowed before: {was_allowed}, and says {each['args'].get('again')}"
            was_allowed = was_allowed or each["status"] == "completed"


def commands_are_told(record: Record) -> Iterator[str]:
    """How a command has ended, the agent learns: by its terminal, or with the next request.

    What was on its way to a process that was killed then is lost with it: one at most for each.
    """
    ends = {number for number, answer in record.answers("terminal/wait_for_exit") if "exitCode" in answer or
            "signal" in answer}  # fmt: skip
    refused = {command for command, answer in record.answers("terminal/create") if "terminalId" not in answer}
    said = "\n".join(text for _, text in record.prompts)
    untold = [
        each["id"]
        for each in record.commands.values()
        if each["id"] not in ends and each["args"]["command"] not in refused and each["args"]["command"] not in said
    ]
    if len(untold) > record.restarts + bool(record.code):
        yield f"the agent does not know how these have ended: {untold}"


def transcript_is_ledger(record: Record) -> Iterator[str]:
    """What the agent was given is what was decided or has happened, once each."""
    given = [(title, answer["outcome"].get("optionId")) for title, answer in record.answers(
        "session/request_permission")]  # fmt: skip
    for (title, option), times in Counter(given).items():
        decided = [each for each in record.permissions(title) if each["status"] == _DECIDED.get(option)]
        if option is not None and times > len(decided):
            yield f"the agent was given {option} for {title} {times} times, and it was decided {len(decided)} times"
    by_id = {each["id"]: each for each in record.ledger}
    for command, answer in record.answers("terminal/create"):
        step = by_id.get(answer.get("terminalId", ""))
        if "terminalId" in answer and (step is None or step["args"]["command"] != command):
            yield f"the terminal {answer['terminalId']} is not recorded as {command}"
    for number, answer in record.answers("terminal/wait_for_exit"):
        result = by_id[number]["result"]
        if answer.get("exitCode") != (result.get("value") or {}).get("exitCode"):
            yield f"{number} has ended as {result}, and the agent was given {answer}"


_DECIDED = {"yes": "completed", "no": "skipped"}


def it_survives(record: Record) -> Iterator[str]:
    """Kills of a worker cost no attempt of a turn; those of the agent's process do, and there are three."""
    if record.code and (record.code != ENDED or record.kills < 3):
        yield f"it failed with {record.code} after {record.kills} kills of its process"


def files_are_known(record: Record) -> Iterator[str]:
    """The step's value names each file that was written through us, in whichever process that was."""
    wrote = {name for name, answer in record.answers("fs/write_text_file") if answer is None}
    if not record.code and not wrote <= record.files:
        yield f"written, and not in the step's value: {wrote - record.files}"


RULES: tuple[Callable[[Record], Iterator[str]], ...] = (
    request_is_sent_once, commands_run_once, what_may_have_happened_says_so, commands_are_told, transcript_is_ledger,
    it_survives, files_are_known,
)  # fmt: skip


def findings(record: Record) -> list[str]:
    """What does not hold; none: all is well."""
    return [f"{rule.__name__}: {found}" for rule in RULES for found in rule(record)]
