"""Steps that may change a file while another uses it are found in a plan, and no others."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from plansurvive.activities.provenance.shell_writes import written_by_shell
from plansurvive.plans.definition.checks.races import CODE, MAX_RACES, races
from plansurvive.plans.model import Problem, Step
from tests.kit.growth import growth
from tests.nightly import only_nightly


def step(name: str, tool: str, after: str = "", **args: Any) -> Step:
    """A step; `after` names those it depends on."""
    return Step(id=name, tool=tool, args=args, depends_on=after.split())


def write(name: str, path: str, after: str = "") -> Step:
    return step(name, "write_file", after, path=path, content="x")


def read(name: str, path: str, after: str = "") -> Step:
    return step(name, "read_file", after, path=path)


def run(name: str, command: str, after: str = "", **more: Any) -> Step:
    return step(name, "run_command", after, command=command, **more)


def where(step_: Step, when: str) -> Step:
    """The same step with a condition."""
    return step_.model_copy(update={"when": when})


def found(*steps: Step) -> list[Problem]:
    return races(steps, written_by_shell)


def test_a_step_that_reads_what_another_writes_and_depends_on_nothing_is_warned_of() -> None:
    [problem] = found(write("c", "c.txt"), read("d", "c.txt"))
    assert (problem.code, problem.step_id, problem.field, problem.severity) == (CODE, "d", "dependsOn", "warning")
    assert problem.message == (
        "steps 'c' and 'd' may run at the same time, and both use 'c.txt': 'c' writes it, 'd' reads it; if the order"
        " matters, add 'c' to dependsOn of 'd', or vice versa"
    )


RACING = {
    "two that write": (write("a", "f"), write("b", "f")),
    "one that writes and one that deletes": (write("a", "f"), step("b", "delete_file", path="f")),
    "one that edits and one that reads JSON": (
        step("a", "edit_file", path="f", oldText="a", newText="b"),
        step("b", "read_json", path="f"),
    ),
    "another spelling": (write("a", "x/../f"), read("b", "./f")),
    "a common step before": (write("z", "other"), write("a", "f", "z"), read("b", "f", "z")),
    "a common step after": (write("a", "f"), read("b", "f"), write("z", "other", "a b")),
    "a redirection": (run("a", "echo 1 > f"), read("b", "f")),
    "a redirection in a directory": (run("a", "echo 1 > f", cwd="sub"), read("b", "sub/f")),
    "two commands": (run("a", "sort x -o f"), run("b", "echo >> f")),
    "a program": (step("a", "run_python", code="open('f', 'w')"), read("b", "f")),
    "a command of a program": (step("a", "run_python", code="import os; os.system('echo > f')"), read("b", "f")),
    "a file where another wants a directory": (write("a", "f"), write("b", "f/x")),
    "a directory that is replaced": (run("a", "mv new f"), read("b", "f/x")),
    "a literal dollar sign": (write("a", "$$f"), read("b", "$$f")),
    "one of two with a condition": (write("z", "o"), where(write("a", "f"), "z"), read("b", "f")),
}  # fmt: skip
APART = {
    "one that depends on the other": (write("a", "f"), read("b", "f", "a")),
    "one that depends on it through others": (write("a", "f"), write("m", "o", "a"), read("b", "f", "m")),
    "one that uses the other's value": (write("a", "f"), step("b", "write_file", path="f", content="$a.path")),
    "one whose condition asks for the other": (write("a", "f"), where(read("b", "f"), "a.created")),
    "two that read": (read("a", "f"), read("b", "f")),
    "two files": (write("a", "f"), write("b", "g"), write("c", "f2"), read("d", "sub/f")),
    "two files in one directory": (write("a", "d/f"), write("b", "d/g"), step("c", "create_directory", path="d")),
    "two that make one directory": (
        run("a", "mkdir -p out && echo > out/a"),
        run("b", "mkdir -p out; echo > out/b"),
        step("c", "run_python", code="import os; os.makedirs('out', exist_ok=True)"),
    ),
    "a path that is not known": (
        write("i", "i"),
        write("a", "$i.path"),
        write("b", "{{i.path}}"),
        run("c", "echo > {{i}}"),
    ),
    "one step alone": (run("a", "echo > f; echo >> f"),),
    "two workers": (write("a", "f").model_copy(update={"queue": "far"}), write("b", "f")),
    "conditions that may exclude each other": (
        write("z", "o"),
        where(write("a", "f"), "z.created"),
        where(write("b", "f"), "!z.created"),
    ),
    "other tools": (step("a", "http_request", path="f"), step("b", "own_tool", path="f"), write("c", "f")),
    "arguments that are no paths": (
        step("a", "write_file", path=7),
        step("b", "run_command", command=["f"]),
        write("c", "7"),
    ),
    "a cycle": (write("a", "f", "b"), read("b", "f", "a"), write("c", "f")),
}  # fmt: skip


@pytest.mark.parametrize("case", RACING)
def test_a_race_is_found(case: str) -> None:
    [problem] = found(*RACING[case])
    assert problem.step_id == "b"
    assert "'a'" in problem.message


@pytest.mark.parametrize("case", APART)
def test_steps_that_do_not_race_are_not_warned_of(case: str) -> None:
    assert found(*APART[case]) == []


def test_each_file_is_named_once_and_not_too_many_of_them() -> None:
    many = [write(f"{name}{number}", f"f{number}") for number in range(MAX_RACES + 10) for name in "ab"]
    assert len(found(*many)) == MAX_RACES
    assert len(found(*(write(f"s{number}", "f") for number in range(20)))) == 1


def test_random_plans_are_judged_as_by_trying_all_pairs() -> None:
    chance = random.Random(7)
    for _ in range(300):
        names = [f"s{number}" for number in range(chance.randint(2, 9))]
        steps = []
        for at, name in enumerate(names):
            after = " ".join(chance.sample(names[:at], chance.randint(0, min(at, 2))))
            kind = chance.choice([write, read])
            steps.append(kind(name, chance.choice("fgh"), after))
        above: dict[str, set[str]] = {}
        for each in steps:
            above[each.id] = {*each.depends_on}.union(*(above[name] for name in each.depends_on))
        racing = {
            one.args["path"]
            for one, other in combinations(steps, 2)
            if one.args["path"] == other.args["path"]
            and "write_file" in (one.tool, other.tool)
            and one.id not in above[other.id]
        }
        assert {problem.message.split("both use '")[1][0] for problem in found(*steps)} == racing


def of_size(count: int, shape: str) -> list[Step]:
    """A plan of many steps that share files."""
    if shape == "a chain that writes one file":
        return [write(f"s{at}", "f", f"s{at - 1}" if at else "") for at in range(count)]
    if shape == "side by side, each its own file":
        return [write(f"s{at}", f"f{at}") for at in range(count)]
    if shape == "side by side, with conditions that may exclude each other":
        return [write("z", "o"), *(where(write(f"s{at}", "f"), "z.created") for at in range(count))]
    return [run(f"s{at}", f"echo {at} > f{at}.txt", f"s{at // 2}" if at > 1 else "") for at in range(1, count)]


@pytest.mark.parametrize(
    "shape",
    [
        only_nightly("a chain that writes one file"),
        "side by side, each its own file",
        only_nightly("side by side, with conditions that may exclude each other"),
        only_nightly("a tree of commands"),
    ],
)
def test_large_plans_are_judged_in_time_that_grows_with_their_size(shape: str) -> None:
    def work(count: int) -> Callable[[], object]:
        steps = of_size(count, shape)
        return lambda: races(steps, written_by_shell)

    assert races(of_size(500, shape), written_by_shell) == []
    assert growth(work, 2_000) < 10


def block(name: str, *steps: Step, **fields: Any) -> Step:
    return Step.model_validate({"id": name, "steps": list(steps), **fields})


def test_steps_inside_blocks_race_with_those_beside_the_block() -> None:
    [problem] = found(block("b", write("x", "f"), read("y", "f", "x")), read("z", "f"))
    assert (problem.code, problem.step_id) == (CODE, "z")
    assert "'b.x' writes it" in problem.message
    assert found(write("a", "f"), block("b", read("x", "f"), dependsOn=["a"]), write("z", "f", "b")) == []


def test_the_cases_of_a_switch_do_not_race_with_each_other() -> None:
    cases = [{"when": "a", "steps": [write("x", "f")]}, {"steps": [write("y", "f")]}]
    assert found(Step.model_validate({"id": "s", "switch": cases})) == []


def test_items_of_a_loop_that_change_the_same_file_are_warned_of() -> None:
    [problem] = found(block("b", write("x", "f"), write("y", "{{item}}.txt"), forEach=["a", "b"]))
    assert (problem.code, problem.step_id, problem.field) == (CODE, "b.x", "args")
    assert "each item of the loop 'b' writes 'f'" in problem.message
    assert found(block("b", write("x", "f"), forEach={"items": ["a", "b"], "maxParallel": 1})) == []
    assert found(block("b", read("x", "f"), forEach=["a", "b"])) == []
