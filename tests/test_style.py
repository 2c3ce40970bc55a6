"""What the code keeps to, checked on the source: one tree of errors, one place that sets a status.

Each rule has its control: a seeded breach must be caught.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import pytest

from plansurvive.plans.run import PlanStatus, Status
from tests.test_imports import CORE, ROOT, last_name, modules, nodes
from tests.test_imports import forgotten as forgotten

SETTER = ROOT / "plans" / "execution" / "schedule.py"
STATES = {"StepState", "Run"}
"""The models whose `status` is the schedule's to write."""
STATUSES = {status.value for status in (*Status, *PlanStatus)}
PROGRAMS = ("runtime", "activities", "client", "features", "apps", "scripts", "examples", "benchmarks", "tests")
WITHOUT_TEMPORAL = {"tests/chaos/night/proxy.py", "benchmarks/others/prefect_steps.py"}
_BASES = re.compile(r"^\s*class\s+\w+\s*\(([^:]*):", re.MULTILINE)
_WORD = re.compile(r"\w+")
SOURCES = [path for package in (*sorted(CORE), "features", "worker") for path in modules(package)]


def undrawn_errors(sources: list[str], drawn: str) -> set[str]:
    """The exceptions of the project that are missing where its tree of errors is drawn.

    Only modules are parsed in whose text an error is among what stands after the name of a class.
    """
    unread = {source: set(_WORD.findall(" ".join(_BASES.findall(source)))) for source in sources}
    ours, bases = {"PlanError"}, dict[str, set[str]]()
    while near := [source for source, words in unread.items() if words & ours]:
        for source in near:
            del unread[source]
            classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
            bases |= {node.name: {base.id for base in node.bases if isinstance(base, ast.Name)} for node in classes}
        while more := {name for name, parents in bases.items() if parents & ours} - ours:
            ours |= more
    return ours - set(drawn.split())


def status_setters(source: str) -> list[int]:
    """Lines that give a plan or a step a status."""
    every = nodes(source)
    states = STATES | {
        alias.asname
        for node in every
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname and alias.name in STATES
    }
    returned = {id(call) for call in _returned_views(every)}
    setters = [node for node in every if isinstance(node, ast.Attribute | ast.Subscript | ast.Call)]
    return sorted({line for node in setters if id(node) not in returned for line in _setting_lines(node, states)})


def _returned_views(every: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """What functions return whose type says that it is a client's summary, and not a state: mypy sees to that."""
    for node in every:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.returns is None:
            continue
        if isinstance(node.returns, ast.Name) and node.returns.id == "Summary":
            yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value)


def _setting_lines(node: ast.AST, states: set[str]) -> Iterator[int]:
    """The node's line, when it stores into `status`, of something else than itself, or makes a state that has one."""
    if isinstance(node, ast.Attribute) and node.attr == "status" and not isinstance(node.ctx, ast.Load):
        if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            yield node.lineno
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        if _is_status(node.slice) and _is_namespace(node.value):  # vars(state)["status"] = ...
            yield node.lineno
    elif isinstance(node, ast.Call) and _call_sets_status(node, states):
        yield node.lineno


def _call_sets_status(node: ast.Call, states: set[str]) -> bool:
    name = last_name(node.func)  # `ast.unparse` of every call would take ten times as long
    named = [keyword.arg for keyword in node.keywords]
    if name in ("setattr", "__setattr__", "attrsetter"):
        return any(_is_status(each) for each in node.args)
    if name in ("update", "setdefault", "__setitem__", "__ior__") and isinstance(node.func, ast.Attribute):
        return _is_namespace(node.func.value) and ("status" in named or any(map(_holds_status, node.args)))
    if name in ("model_copy", "copy", "replace", "__replace__"):
        given = [keyword.value for keyword in node.keywords if keyword.arg == "update"]
        return any(map(_holds_status, given)) or ("status" in named and not _is_status_of_others(node))
    of = last_name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if name in ("model_validate", "model_construct", "parse_obj") and of in states:
        return "status" in named or None in named or any(map(_holds_status, node.args))
    makes = name in states or name == "__class__" or isinstance(node.func, ast.Call)  # type(state)(...)
    return makes and ("status" in named or None in named)


def _holds_status(node: ast.AST) -> bool:
    """Whether it is a dict written out, in which `status` gets a value that a plan or a step may have."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict":
        return any(keyword.arg == "status" for keyword in node.keywords)
    if isinstance(node, ast.Constant):
        return node.value == "status"
    pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    return any(key is not None and _is_status(key) and not _is_foreign(value) for key, value in pairs)


def _is_status_of_others(node: ast.Call) -> bool:
    return all(keyword.arg != "status" or _is_foreign(keyword.value) for keyword in node.keywords)


def _is_foreign(value: ast.expr) -> bool:
    """Whether the value is the status of something else: an agent's task, an entry of the agents' history."""
    if isinstance(value, ast.Constant):
        return value.value not in STATUSES
    return ast.unparse(value).startswith("TaskStatus.")


def _is_status(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "status"


def _is_namespace(node: ast.AST) -> bool:
    """Whether it is the attributes of an object as a dict."""
    text = ast.unparse(node)
    return text.startswith("vars(") or text.endswith(("__dict__", "__pydantic_private__"))


def test_every_error_stands_in_the_tree() -> None:
    trees = [ast.parse((ROOT / package / "errors.py").read_text()) for package in ("plans", "runtime", "client")]
    drawn = "\n".join(ast.get_docstring(tree) or "" for tree in trees)
    assert not undrawn_errors([path.read_text() for path in SOURCES], drawn)


def test_only_the_schedule_sets_a_status() -> None:
    assert status_setters(SETTER.read_text())
    others = {path: status_setters(path.read_text()) for path in SOURCES if path != SETTER}
    assert not {str(path.relative_to(ROOT)): lines for path, lines in others.items() if lines}


@pytest.mark.parametrize(
    "source",
    [
        "run.steps[name].status = Status.FAILED",
        "state.status, state.result = Status.COMPLETED, None",
        "state.status: Status = Status.READY",
        "for state.status in (1, 2): pass",
        "del run.status",
        "made.status = PlanStatus.DRAFT",
        "self.run.status = PlanStatus.RUNNING",
        "[0 for state.status in (1, 2)]",
        "with opened as run.status: pass",
        "setattr(state, 'status', Status.READY)",
        "object.__setattr__(state, 'status', Status.READY)",
        "run.steps[name] = StepState(status=Status.RUNNING)",
        "run.steps[name] = StepState(status=Status.SKIPPED)",
        "StepState.model_construct(status=Status.RUNNING)",
        "StepState.model_validate({'status': 'running'})",
        "StepState(**given)",
        "Run(plan=plan, steps={}, status=PlanStatus.RUNNING)",
        "run.StepState(status=Status.RUNNING)",
        "plans.run.StepState(status=Status.RUNNING)",
        "type(state)(status=Status.RUNNING)",
        "state.__class__(status=Status.RUNNING)",
        "state = state.model_copy(update={'status': Status.FAILED})",
        "state = state.model_copy(update={**given, 'status': 'failed'})",
        "state = state.model_copy(update=dict(status=Status.FAILED))",
        "state = state.copy(update={'status': Status.FAILED})",
        "state = dataclasses.replace(state, status=Status.FAILED)",
        "state = copy.replace(state, status=Status.FAILED)",
        "vars(state)['status'] = Status.FAILED",
        "state.__dict__['status'] = Status.FAILED",
        "state.__dict__.update(status=Status.FAILED)",
        "vars(state).update({'status': Status.FAILED})",
        "state.__dict__.setdefault('status', Status.FAILED)",
    ],
)
def test_a_status_set_elsewhere_is_caught(source: str) -> None:
    assert status_setters(source) == [1]
    assert status_setters(f"def f():\n    if x:\n        {source}") == [3]


def test_a_state_under_another_name_is_caught() -> None:
    assert status_setters("from plansurvive.plans.run import StepState as S\ny = S(status=1)") == [2]


@pytest.mark.parametrize(
    "source",
    [
        "self.status = 1",
        "x = state.status",
        "y = StepState(args=state.status)",
        "task = task.model_copy(update={'status': TaskStatus.DONE})",
        "entry = entry.model_copy(update={'status': 'resumed'})",
        "view['status'] = state.status.value",
        "view.update(status=state.status.value)",
        "Summary(status=PlanStatus.FAILED)",
        "def f(found) -> Summary:\n    return found.model_copy(update={'status': PlanStatus.FAILED})",
    ],
)
def test_looking_at_a_status_is_allowed(source: str) -> None:
    assert not status_setters(source)


def test_an_error_that_is_not_drawn_is_caught() -> None:
    sources = ["class Lost(Drawn): ...", "class Drawn(PlanError): ..."]
    assert undrawn_errors(sources, "PlanError\n└── Drawn  its sentence") == {"Lost"}


def test_programs_that_run_an_event_loop_end_without_interpreter_teardown() -> None:
    """It can crash the threads of Temporal's SDK: the process of a test, or a user's, then ends with -6."""
    texts = {
        str(path.relative_to(ROOT)): path.read_text() for folder in PROGRAMS for path in (ROOT / folder).rglob("*.py")
    }
    ended = {name for name, text in texts.items() if "os._exit(" in text or "leave(" in text}
    programs = {name for name, text in texts.items() if '__name__ == "__main__"' in text and "asyncio.run(" in text}
    assert programs & ended
    assert programs - ended == WITHOUT_TEMPORAL


def cut_off(source: str) -> list[str]:
    """The activities in threads that a cancellation may cut off between any two instructions."""
    found = list[str]()
    for node in ast.walk(ast.parse(source)) if "activity.defn" in source else ():
        if isinstance(node, ast.FunctionDef):
            said = [ast.unparse(each) for each in node.decorator_list]
            found += [node.name for each in said if "activity.defn" in each and "no_thread_cancel" not in each]
    return found


@pytest.mark.slow
@pytest.mark.sampled
def test_no_activity_is_cut_off_in_the_middle_of_what_it_writes() -> None:
    """The SDK raises its exception in the activity's thread, wherever that is: in a lock, between two files."""
    assert not {str(path.relative_to(ROOT)): found for path in SOURCES if (found := cut_off(path.read_text()))}
    assert cut_off("@activity.defn(name='a')\ndef a(): ...\n@activity.defn\nasync def b(): ...") == ["a"]


NAMED = re.compile(r"`((?:plans|runtime|activities|workflows|client|features|apps)(?:\.\w+)+)`")
FILE = re.compile(r"(?<![\w/.])((?:plans|runtime|activities|workflows|client|features|apps)(?:/\w+)+\.py)\b")


def names_nothing(text: str) -> list[str]:
    """What a text names as a module, a file, or something in a module, although there is none."""
    files = [name for name in FILE.findall(text) if not (ROOT / name).exists()]
    return [name for name in NAMED.findall(text) if not _is_there(name)] + files


def _is_there(name: str) -> bool:
    for depth in range(len(parts := name.split(".")), 0, -1):
        place = ROOT.joinpath(*parts[:depth])
        module = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        if depth == len(parts) and (place.is_dir() or module.is_file()):
            return True
        if module.is_file():
            return re.search(rf"\b{parts[depth]}\b", module.read_text()) is not None
    return False


NOT_MODULES = {"plans.service", "plans.commands", "plans.pages", "features/NAME/settings.py"}
"""The unit of systemd, entry points, and a pattern."""


def test_the_modules_that_the_code_speaks_of_are_there() -> None:
    found = {str(path.relative_to(ROOT)): names_nothing(path.read_text()) for path in [*SOURCES, *modules("apps")]}
    assert not {path: wrong for path, names in found.items() if (wrong := {*names} - NOT_MODULES)}


def test_a_module_that_has_moved_is_seen() -> None:
    text = "`plans.gone` `plans.run.Gone` plans/gone.py; `plans.run`, `plans.run.Run`, `plans.errors`, plans/errors.py"
    assert names_nothing(text) == ["plans.gone", "plans.run.Gone", "plans/gone.py"]
