"""What the code keeps to, checked on the source: short files and functions, one tree of errors, one place
that sets a status.

Each rule has its control: a seeded breach must be caught.
"""

from __future__ import annotations

import ast

import pytest

from tests.test_imports import MAY_IMPORT, ROOT, modules, nodes

FILE_LINES = 300
FUNCTION_LINES = 40
SETTER = ROOT / "plans" / "execution" / "schedule.py"
BEFORE_THE_FIRST_MOVE = {ROOT / "plans" / "execution" / "resume.py", ROOT / "plans" / "agents" / "run.py"}
"""They make the Run that goes on from another: a draft, with steps that are left out from the beginning."""
SOURCES = [path for package in sorted(MAY_IMPORT) for path in modules(package)]


def length_problems(source: str) -> list[str]:
    """What is too long in a module."""
    lines = len(source.splitlines())
    found = [f"{lines} lines; {FILE_LINES} are allowed"] if lines > FILE_LINES else []
    for node in nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                found.append(f"{node.name} has {length} lines; {FUNCTION_LINES} are allowed")
    return found


def undrawn_errors(sources: list[str], drawn: str) -> set[str]:
    """The exceptions of the project that are missing where its tree of errors is drawn."""
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for source in sources
        for node in nodes(source)
        if isinstance(node, ast.ClassDef)
    }
    ours = {"PlanError"}
    while more := {name for name, parents in bases.items() if parents & ours} - ours:
        ours |= more
    return ours - set(drawn.split())


def status_setters(source: str, making: bool = False) -> list[int]:
    """Lines that give a plan or a step a status. `making`: except as a Run is made that goes on from another."""
    return [
        node.lineno
        for node in nodes(source)
        if isinstance(node, ast.stmt | ast.expr) and _sets_status(node) and not (making and _makes(node))
    ]


def _sets_status(node: ast.AST) -> bool:
    """Whether it stores into an attribute `status` of something else than itself, or makes a state that has one."""
    if isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        return node.attr == "status" and not isinstance(node.ctx, ast.Load) and not own
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    if called.split(".")[-1] in ("setattr", "__setattr__"):
        return any(isinstance(each, ast.Constant) and each.value == "status" for each in node.args)
    return called.split(".")[0] == "StepState" and any(keyword.arg in ("status", None) for keyword in node.keywords)


def _makes(node: ast.AST) -> bool:
    """Whether it is a step left out from the beginning; the status of the draft is the Run's own."""
    if isinstance(node, ast.Call):
        return any(
            keyword.arg == "status" and ast.unparse(keyword.value) == "Status.SKIPPED" for keyword in node.keywords
        )
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("run", "made")


def test_files_and_functions_stay_short() -> None:
    assert SOURCES
    assert not {str(path.relative_to(ROOT)): found for path in SOURCES if (found := length_problems(path.read_text()))}


def test_every_error_stands_in_the_tree() -> None:
    trees = [ast.parse((ROOT / package / "errors.py").read_text()) for package in ("plans", "runtime", "client")]
    drawn = "\n".join(ast.get_docstring(tree) or "" for tree in trees)
    assert not undrawn_errors([path.read_text() for path in SOURCES], drawn)


def test_only_the_schedule_sets_a_status() -> None:
    assert status_setters(SETTER.read_text())
    others = {path: status_setters(path.read_text(), path in BEFORE_THE_FIRST_MOVE) for path in SOURCES}
    assert not {str(path.relative_to(ROOT)): lines for path, lines in others.items() if lines and path != SETTER}


@pytest.mark.parametrize(
    "source",
    [
        "run.steps[name].status = Status.FAILED",
        "state.status, state.result = Status.COMPLETED, None",
        "state.status: Status = Status.READY",
        "for state.status in (1, 2): pass",
        "del run.status",
        "setattr(state, 'status', Status.READY)",
        "object.__setattr__(state, 'status', Status.READY)",
        "run.steps[name] = StepState(status=Status.RUNNING)",
        "StepState.model_construct(status=Status.RUNNING)",
        "StepState(**given)",
    ],
)
def test_a_status_set_elsewhere_is_caught(source: str) -> None:
    assert status_setters(source) == [1]
    assert status_setters(f"def f():\n    if x:\n        {source}") == [3]


def test_looking_at_a_status_is_allowed() -> None:
    assert not status_setters("self.status = 1\nx = state.status\ny = StepState(args=state.status)")


def test_a_run_that_goes_on_from_another_may_be_made_with_steps_left_out_and_no_others() -> None:
    assert not status_setters("made.status = PlanStatus.DRAFT\nStepState(status=Status.SKIPPED)", making=True)
    assert status_setters("run.steps[name].status = Status.READY", making=True)
    assert status_setters("StepState(status=Status.READY)", making=True)


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\n" * (FILE_LINES + 1),
        "def f():\n" + "    x = 1\n" * FUNCTION_LINES,
        "class A:\n    async def f(self):\n" + "        x = 1\n" * FUNCTION_LINES,
    ],
)
def test_what_is_too_long_is_caught(source: str) -> None:
    assert length_problems(source)


def test_the_longest_that_is_allowed_passes() -> None:
    assert not length_problems("def f():\n" + "    x = 1\n" * (FUNCTION_LINES - 1) + "x = 1\n" * (FILE_LINES - 40))


def test_an_error_that_is_not_drawn_is_caught() -> None:
    sources = ["class Lost(Drawn): ...", "class Drawn(PlanError): ..."]
    assert undrawn_errors(sources, "PlanError\n└── Drawn  its sentence") == {"Lost"}
