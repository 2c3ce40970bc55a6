"""The matrix: what each verb of the command line says and does about all that "the plan's" means.

`MATRIX` has a row for each verb and a column for each kind of what may be inside: a cell names the test that asserts
it, or says why it means nothing. `APART` has the commands that are about no plan's set. A command that is in neither, a
row without one of the kinds, and a cell whose test does not exist, fail.
"""

from __future__ import annotations

from importlib import import_module

import pytest

from plansurvive.client.cli.commands import COMMANDS
from tests.workflows.test_plan_set import AGENT, CHILD, EARLIER, INNER, INSIDE, ITEM

SET = "tests.workflows.test_plan_set"
CONTROL = "tests.workflows.test_control_matrix"


class Means(str):
    """Why a cell means nothing."""


def every(test: str, **other: str) -> dict[str, str]:
    """A row of one test; `other`: cells by the names of `NAMES`."""
    return dict.fromkeys(INSIDE, test) | {NAMES[name]: cell for name, cell in other.items()}


NAMES = {"agent": AGENT, "child": CHILD, "item": ITEM, "inner": INNER, "earlier": EARLIER}
WHOLE = f"{SET}:test_a_plan_is_all_that_works_for_it"
ASKED = f"{CONTROL}:test_all_that_is_asked_below_a_plan_is_shown_listed_and_decided_there"
ENDED = Means("an earlier run has ended: nothing of it runs, is asked or waits")
LISTED = Means("an item is a step of its plan, and its calls are entries of the plan's own record")

MATRIX: dict[str, dict[str, str]] = {
    "files": every(WHOLE),
    "undo": every(WHOLE),
    "undo --dry-run": every(WHOLE),
    "rollback": every(f"{SET}:test_a_rollback_undoes_the_steps_of_all_that_works_for_the_plan"),
    "logs": every(WHOLE),
    "audit": every(WHOLE, item=LISTED),
    "prune": every(WHOLE),
    "why": every(WHOLE),
    "budget": every(f"{CONTROL}:test_a_budget_is_shared_by_all_below_and_extended_once_for_all"),
    "pause": every(f"{CONTROL}:test_a_pause_reaches_all_that_works_for_the_plan_and_so_does_its_end", earlier=ENDED),
    "unpause": every(f"{CONTROL}:test_a_pause_reaches_all_that_works_for_the_plan_and_so_does_its_end", earlier=ENDED),
    "cancel": every(f"{CONTROL}:test_a_cancelled_plan_leaves_nothing_running", earlier=ENDED),
    "interrupt": every(
        f"{CONTROL}:test_an_interrupted_plan_asks_the_same_again_when_it_is_resumed_and_repeats_no_call", earlier=ENDED
    ),
    "resume": every(
        f"{CONTROL}:test_an_interrupted_plan_asks_the_same_again_when_it_is_resumed_and_repeats_no_call"
    ),
    "rerun": every(f"{CONTROL}:test_a_rerun_repeats_what_is_below_the_step_and_nothing_else"),
    "pending": every(
        ASKED, earlier=f"{CONTROL}:test_an_interrupted_plan_asks_the_same_again_when_it_is_resumed_and_repeats_no_call"
    ),
    **{verb: every(ASKED, earlier=ENDED) for verb in ("approve", "deny", "answer", "show", "list", "watch", "run")},
}  # fmt: skip
NOT_COMMANDS = {"undo --dry-run": "an option of `undo`", "rollback": "a field of the plan", "budget": "a field as well"}
ONE_STEP = "changes steps of the plan that is named: those of a child plan are named by its own id"
APART = {
    **dict.fromkeys(("edit", "add", "remove", "move", "skip", "unskip", "regenerate"), ONE_STEP),
    **dict.fromkeys(("begin", "review"), "before a plan starts there is nothing inside it"),
    **dict.fromkeys(
        (
            "init",
            "start",
            "call",
            "demo",
            "make",
            "check",
            "graph",
            "template",
            "import",
            "schema",
            "tools",
            "evaluate",
            "schedule",
        ),
        "about plan files, or starts one",
    ),
    "agent": "an agent by itself has no set: its commands take its id",
    "history": "lists the agents of a machine; `--plan` takes the id of any run of a plan",
    "summary": "what `show` says, shorter",
    "withdraw": "names a decision on one step, which has its path as in `approve`",
    "event": "goes to the steps of the plan that is named: a child plan waits for events of its own",
    "clear-session": "each agent and child plan has a session of its own, and is named",
    **dict.fromkeys(("worktrees", "diff"), "git on this machine has them, under the id of the plan that is named"),
    "watch-files": "reports files to the plan that is named",
    **dict.fromkeys(
        (
            "limits",
            "quotas",
            "notify",
            "web",
            "mcp",
            "up",
            "down",
            "doctor",
            "keys",
            "secrets",
            "policy",
            "codec",
            "worker",
        ),
        "about the machine, not about a plan",
    ),
}


def test_every_command_is_in_the_matrix_or_apart_with_a_reason() -> None:
    assert set(COMMANDS) == (MATRIX.keys() - NOT_COMMANDS.keys()) | APART.keys()
    assert not MATRIX.keys() & APART.keys()
    assert all(APART.values())


@pytest.mark.parametrize("verb", MATRIX)
def test_every_cell_names_a_test_or_says_why_it_means_nothing(verb: str) -> None:
    assert set(MATRIX[verb]) == set(INSIDE)
    for inside, cell in MATRIX[verb].items():
        module, _, name = cell.partition(":")
        assert isinstance(cell, Means) or callable(getattr(import_module(module), name)), (inside, cell)
