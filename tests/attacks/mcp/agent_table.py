"""What an agent tries over MCP, what holds, and which tests try it: the table of docs/security.md."""

from __future__ import annotations

from typing import NamedTuple

from scripts.generated import between
from tests.attacks.mcp.loose_plans import WAIVED
from tests.attacks.mcp.obedient import EDITS, WAIVING

BEGIN, END = "<!-- agent attacks: begin (python -m scripts.attack_table --agents) -->", "<!-- agent attacks: end -->"


class AgentAttack(NamedTuple):
    """One attack. `tests`: node ids below tests."""

    kind: str
    tried: str
    held_by: str
    tests: tuple[str, ...]


_HERE = "attacks/mcp/test_mcp_agent.py::"
_ROUNDS = "apps/mcp/decisions/test_rounds.py::"
_ALL = (
    _HERE + "test_an_obedient_agent_approves_and_waives_nothing",
    _HERE + "test_an_obedient_agent_that_tries_each_way_with_each_plan_approves_and_waives_nothing",
    _HERE + "test_an_obedient_agent_over_http_approves_and_waives_nothing",
)
_RUNS = _HERE + "test_control_the_same_plans_run_unasked_if_a_person_starts_them"
_APPROVES = _HERE + "test_control_the_same_agent_does_approve_where_the_person_lets_it"
ATTACKS = (
    AgentAttack(
        "plans that waive",
        f"{len(WAIVED)} plans (steps, blocks, items, ends, failures, children, what time approves, files that it"
        " owns), each passed in, as a file, as a template, as a template at a version",
        "nothing that an agent starts is waived",
        (*_ALL, _RUNS),
    ),
    AgentAttack(
        "arguments that waive or decide", f"{len(WAIVING)} of them, for each tool, offered or not",
        "an argument that a tool does not have is refused, and none decides", _ALL,
    ),
    AgentAttack(
        "edits and repetitions",
        f"{len(EDITS)} edits of its own plan and of a person's; rerun, resume, undo of both",
        "edits are for an agent's plans and for what an LLM may write; a new run waives nothing", _ALL,
    ),
    AgentAttack(
        "tools that decide, by their names", "each with the right digest, although none is listed",
        "they exist with `--may-approve` only", (*_ALL, _APPROVES),
    ),
    AgentAttack(
        "replies that no person gave", "rightly guessed keys, in `plan_decide` and in `tasks/update`",
        "replies count from a client that can ask, and in `plan_decide` with the sealed state of the call that asked",
        (*_ALL, _ROUNDS + "test_a_reply_without_the_state_of_its_own_call_decides_nothing"),
    ),
    AgentAttack(
        "the state of another call", "of another plan, person, caller, server; changed; made up; sent by a client that"
        " cannot ask",
        "sealed with a key of the state directory, for the call and the caller",
        (
            _ROUNDS + "test_a_reply_without_the_state_of_its_own_call_decides_nothing",
            _ROUNDS + "test_the_state_of_one_person_is_of_no_use_to_another_over_http",
            _ROUNDS + "test_a_state_is_of_no_use_to_a_client_that_cannot_ask",
        ),
    ),
    AgentAttack(
        "secrets that would open a way to decide",
        "the page's link, tokens, keys, targets of notifications, `mcp.toml`: as resources, plan files, workspaces, in"
        " every answer",
        "resources are plans; files are plan files below the server's directories; answers name the page without its"
        " secret",
        _ALL,
    ),
    AgentAttack(
        "more than a role allows", "all of this as a viewer; without a token, with a wrong one, with another page's"
        " cookie or header",
        "roles are looked up with each request; without a login, nothing is answered",
        (_ALL[2], _HERE + "test_an_agent_without_a_token_is_answered_nothing"),
    ),
)  # fmt: skip


def table() -> str:
    """The text between the markers."""
    rows = ["| attack | tried | held by |", "| --- | --- | --- |"]
    told = "Approved by the agent: 0. Waived: 0. Steps that ran: 0."
    return "\n".join([*rows, *(f"| {each.kind} | {each.tried} | {each.held_by} |" for each in ATTACKS), "", told])


def written(document: str) -> str:
    """The document with the table between its markers. Raises ValueError if it has no markers."""
    return between(document, BEGIN, END, table())
