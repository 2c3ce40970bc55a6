"""The record alone proves who consented to what under which rule, and whatever is altered in it is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.decisions import Choice, decide
from plansurvive.features.audit import files
from plansurvive.features.audit.chain import chained, head, origin
from plansurvive.features.audit.consent import unproven
from plansurvive.features.audit.entries import Act, Want
from plansurvive.features.audit.history import Record
from plansurvive.features.audit.report import audit
from plansurvive.features.policy.model import kept_as
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.features.audit import keeping
from tests.kit import LEDGER_TOOLS
from tests.kit.desks import Desk
from tests.kit.driving import Plans, work

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
TEXT = """
[[rule]]
name = "release"
tool = "deploy"
decide = "ask"
by = ["group:release"]
count = 2
override = ["boss"]
[[rule]]
name = "soon"
tool = "deploy"
decide = "ask"
not_author = true
expires = "1m"
[[rule]]
name = "reads"
decide = "allow"
[[rule]]
name = "builds"
decide = "ask"
judge = "Builds are fine."
[[rule]]
name = "never"
decide = "deny"
[people]
ann = {logins = ["ann@example.org"]}
bob = {logins = ["bob@example.org"]}
cara = {logins = ["cara@example.org"]}
boss = {logins = ["boss@example.org"]}
[groups]
release = ["ann", "bob"]
[[delegation]]
from = "bob"
to = "cara"
until = 2027-01-01T00:00:00Z
"""
HASH = hashlib.sha256(TEXT.encode()).hexdigest()
RUN = "0123456789abcdef"


def act(action: str, **fields: Any) -> Act:
    return Act(time=NOON + timedelta(seconds=len(action)), action=action, **fields)


def approved(*names: str, step: str = "d") -> list[Act]:
    return [act("approve", step_id=step, by=name, message="ab" * 32, digest="cd" * 32) for name in names]


def made(decide: str, *rules: str, step: str = "d", outcome: str = "completed", **fields: Any) -> list[Act]:
    call = {"step_id": step, "tool": "deploy", "args": "ef" * 32}
    ruled = {"decide": decide, "rules": list(rules), "policy": HASH}
    return [act("step started", **call), act("step ended", **call, outcome=outcome, **ruled, **fields)]


def wanted(*rules: str, authors: tuple[str, ...] = (), late: int = 0, decide: str = "ask", **want: Any) -> list[Act]:
    """A call that the plan itself wants people to approve."""
    started, ended = made(decide, *rules)
    more = {"wants": [Want(**want)] if want else [], "must": bool(want), "authors": list(authors)}
    return [started.model_copy(update={**more, "time": started.time + timedelta(seconds=late)}), ended]


def withdrawn(name: str) -> Act:
    return act("withdraw", step_id="d", by=name, outcome="accepted")


def codes(*acts: Act, policies: dict[str, str] | None = None) -> list[str]:
    entries = chained([act("started", tool="PlanWorkflow"), *acts], origin("plan-a", RUN))
    return [each.code for each in unproven(entries, {HASH: TEXT} if policies is None else policies)]


@pytest.mark.parametrize(
    "acts",
    [
        made("allow", "reads"), made("deny", "never", outcome="failed"), made("ask", "release", outcome="asked first"),
        [*approved("ann", "bob"), *made("ask", "release")],
        [*approved("ann@example.org", "BOB@example.org"), *made("ask", "release")],
        [*approved("ann", "cara"), *made("ask", "release")],
        [act("override", step_id="d", by="boss"), *made("ask", "release")],
        [*approved("ann", "bob", "ann"), withdrawn("bob"), *approved("cara"), *made("ask", "release")],
        [*approved("ann", "bob"), withdrawn("ann"), act("withdraw ended", step_id="d", outcome="refused"),
         *made("ask", "release")],
        made("allow", "builds", judges=["builds"]), [*approved("zoe"), *made("ask", "builds")],
        [*approved("ann"), *wanted(by=["ann"])], [*approved("bob"), *wanted(by=["group:release"])],
        [*approved("ann@example.org", "bob"), *wanted(by=["ann", "bob"], count=2)],
        [*approved("ann"), *wanted(not_author=True, authors=("bob", "cara@example.org"))],
        [*approved("ann", "bob"), *wanted(not_author=True, authors=("?eve",))],
        [*approved("ann"), *wanted(expires=60, late=60)], [*approved("ann"), *wanted("soon", authors=("bob",))],
        [*approved("ann", "bob"), *wanted("release", by=["bob"])],
        [*approved("ann"), *wanted("soon", late=60)],
    ],
    ids=str,
)  # fmt: skip
def test_what_the_record_bears_out_is_proven(acts: list[Act]) -> None:
    assert codes(*acts) == []


@pytest.mark.parametrize(
    ("acts", "code"),
    [
        (made("ask", "release"), "AUDIT_CONSENT"),
        ([*made("ask", "release"), *approved("ann", "bob")], "AUDIT_CONSENT"),
        ([*approved("ann", "bob", step="other"), *made("ask", "release")], "AUDIT_CONSENT"),
        ([*approved("ann"), *made("ask", "release")], "AUDIT_CONSENT"),
        ([*approved("ann", "ann@example.org"), *made("ask", "release")], "AUDIT_CONSENT"),
        ([*approved("ann", "zoe"), *made("ask", "release")], "AUDIT_CONSENT"),
        ([*approved("boss"), *made("ask", "release")], "AUDIT_CONSENT"),
        ([act("override", step_id="d", by="ann"), *made("ask", "release")], "AUDIT_CONSENT"),
        ([*approved("ann", "bob"), withdrawn("ANN"), *made("ask", "release")], "AUDIT_CONSENT"),
        ([*approved("zoe"), withdrawn("zoe"), *made("ask", "builds")], "AUDIT_CONSENT"),
        ([*approved("ann", "bob"), act("approve ended", outcome="refused", entry=3), *made("ask", "release")],
         "AUDIT_CONSENT"),
        (wanted(by=["ann"]), "AUDIT_CONSENT"), ([*approved("bob"), *wanted(by=["ann"])], "AUDIT_CONSENT"),
        ([*approved("ann"), *wanted(by=["ann", "bob"], count=2)], "AUDIT_CONSENT"),
        ([*approved("ann"), *wanted(not_author=True, authors=("ann@example.org",))], "AUDIT_CONSENT"),
        ([*approved("ann"), *wanted(not_author=True, authors=("?eve",))], "AUDIT_CONSENT"),
        ([*approved("ann"), *wanted(expires=60, late=90)], "AUDIT_CONSENT"),
        (wanted(by=["ann"], decide="allow"), "AUDIT_CONSENT"), (wanted(count=2, decide=""), "AUDIT_CONSENT"),
        ([*approved("ann", "bob"), *wanted("release", by=["cara"])], "AUDIT_CONSENT"),
        ([act("override", step_id="d", by="boss"), *wanted("release", by=["ann"])], "AUDIT_CONSENT"),
        ([*approved("ann"), *wanted("soon", authors=("ann",))], "AUDIT_CONSENT"),
        ([*approved("ann"), *wanted("soon", late=90)], "AUDIT_CONSENT"),
        ([*[each.model_copy(update={"digest": "12" * 32}) for each in approved("ann")], *approved("bob"),
          *wanted(count=2)], "AUDIT_CONSENT"),
        (made("allow", "release"), "AUDIT_POLICY"), (made("allow", "builds"), "AUDIT_POLICY"),
        (made("allow", "never"), "AUDIT_POLICY"), (made("deny", "reads", outcome="failed"), "AUDIT_POLICY"),
        (made("allow", "none such"), "AUDIT_POLICY"),
    ],
    ids=str,
)  # fmt: skip
def test_what_it_does_not_bear_out_is_a_problem(acts: list[Act], code: str) -> None:
    assert codes(*acts) == [code]


@pytest.mark.parametrize("policies", [{}, {HASH: TEXT + "\n"}, {HASH: TEXT.replace("deny", "allow")}], ids=len)
def test_a_text_that_is_missing_or_another_one_is_a_problem(policies: dict[str, str]) -> None:
    assert codes(*made("allow", "reads"), policies=policies) == ["AUDIT_POLICY"]


def test_a_resumed_plan_keeps_an_approval_that_was_not_used() -> None:
    start = act("started", linked="plan-before")
    started, ended = made("ask", "builds")
    given = chained([start, started.model_copy(update={"consents": ["ann"]}), ended], origin("plan-a", RUN))
    assert unproven(given, {HASH: TEXT}) == []
    none = chained([start, started, ended], origin("plan-a", RUN))
    assert [each.code for each in unproven(none, {HASH: TEXT})] == ["AUDIT_CONSENT"]


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Path, str]:
    """The file of a record that is whole, and the public key of its state directory."""
    settings = Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path / "state")})
    path = settings.state_dir / kept_as(HASH)
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    acts = [
        act("started", tool="PlanWorkflow", keys={"ann": "12" * 32}), *approved("ann", "bob"), *made("ask", "release"),
        *made("allow", "builds", step="b", judges=["builds"]),
        *approved("ann", step="d"), *wanted("soon", authors=("bob",), by=["ann"], expires=3_600),
    ]  # fmt: skip
    record = Record("plan-a", RUN, chained(acts, origin("plan-a", RUN)), True, last=RUN)
    assert head(record.entries, record.origin)
    file = files.write(settings, record)
    return file, json.loads(file.read_text().splitlines()[0])["key"]


def problems(path: Path, key: str, plan: str = "plan-a") -> list[str]:
    try:
        return [each.code for each in files.problems_of(files.read_file(path, plan), key)]
    except files.BadRecord as error:
        return [error.code]


def test_the_record_alone_is_enough(kept: tuple[Path, str]) -> None:
    path, key = kept
    first = json.loads(path.read_text().splitlines()[0])
    assert first["policies"] == {HASH: TEXT}
    assert problems(path, key) == []
    assert problems(path, "") == []


def changes(value: Any) -> list[Any]:
    """Other values of the same kind."""
    if isinstance(value, bool) or value is None:
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1]
    if isinstance(value, str):
        return ["", value[::-1] + "x", "0" * len(value)]
    if isinstance(value, list):
        return [[], [*value, "x"], list(reversed(value)) if len(value) > 1 else ["y"]]
    return [{}, {**value, "x": "y"}, {name: changes(each)[0] for name, each in value.items()}]


def altered(lines: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The lines with one field changed or left out, or without one line."""
    for number, line in enumerate(lines):
        for name, value in line.items():
            for other in changes(value):
                if other != value:
                    yield f"{number} {name} {other}", [*lines[:number], {**line, name: other}, *lines[number + 1 :]]
            rest = {each: kept for each, kept in line.items() if each != name}
            yield f"{number} without {name}", [*lines[:number], rest, *lines[number + 1 :]]
        yield f"without line {number}", [*lines[:number], *lines[number + 1 :]]


def test_whatever_is_altered_is_noticed(kept: tuple[Path, str]) -> None:
    path, key = kept
    tried = list(altered([json.loads(line) for line in path.read_text().splitlines()]))
    assert len(tried) > 200
    for what, lines in tried:
        path.write_text("\n".join(map(json.dumps, lines)) + "\n")
        assert problems(path, key), what
        assert problems(path, ""), what


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_record_proves_whom_the_plan_itself_wanted(
    client: Client, settings: Settings, workspace: Path, tmp_path: Path
) -> None:
    ann, bob = (Desk(client, settings, tmp_path, name) for name in ("ann", "bob"))
    policy = settings.state_dir / "policy.toml"
    policy.write_text(f"[people]\n{ann.own.line}\n{bob.own.line}\n")
    policy.chmod(0o600)
    wants = {"by": ["ann"], "notAuthor": True, "expires": "1h"}
    async with build(client, settings, load_tools([LEDGER_TOOLS]), indexed=True):
        plans = Plans(bob.client, settings.task_queue, workspace)
        plan = await plans.start([{**work("a"), "approval": wants}], {"by": "bob"})
        await plan.until_asked("a")
        await decide(ann.client, plan.id, Choice(step_id="a", by="ann"), approved=True)
        assert (await plan.ended())["status"] == "completed"
        path = await keeping.kept(settings, client, plan)
    report = await audit(client, plan.id, settings, verify=True)
    assert report.is_whole, report.verification
    [call] = [each for each in report.entries if each.action == "step started" and each.consents]
    assert (call.must, call.authors) == (True, ["bob"])
    assert call.wants == [Want(by=["ann"], not_author=True, expires=3_600)]
    record, text = files.read_file(path, plan.id).record, policy.read_text()
    policies = {hashlib.sha256(text.encode()).hexdigest(): text}
    assert unproven(record.entries, policies) == []
    for other in ({"wants": [Want(by=["bob"])]}, {"authors": ["ann"]}, {"wants": [Want(count=2)]}):
        changed = [each.model_copy(update=other) if each.number == call.number else each for each in record.entries]
        assert [each.code for each in unproven(changed, policies)] == ["AUDIT_CONSENT"], other


async def test_a_plan_under_a_policy_has_a_record_that_proves_its_consents(
    client: Client, settings: Settings, workspace: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[[rule]]\nname = "careful"\ntool = "work"\ndecide = "ask"\n[[rule]]\nname = "x"\ndecide = "allow"\n'
    )
    policy.chmod(0o600)
    settings = settings.with_flags(policy=policy)
    async with build(client, settings, load_tools([LEDGER_TOOLS]), indexed=True):
        plan = await Plans(client, settings.task_queue, workspace).start(
            [work("a"), {"id": "c", "tool": "run_command", "args": {"command": "true"}}]
        )
        await plan.until_asked("a")
        await plan.approve("a", by="ann")
        assert (await plan.ended())["status"] == "completed"
        path = await keeping.kept(settings, client, plan)
    report = await audit(client, plan.id, settings, verify=True)
    assert report.is_whole, report.verification
    hash_ = hashlib.sha256(policy.read_bytes()).hexdigest()
    assert report.policies == {hash_: policy.read_text()}
    ends = {
        each.step_id: each for each in report.entries if each.action == "step ended" and each.outcome == "completed"
    }
    assert (ends["a"].decide, ends["a"].rules, ends["a"].policy) == ("ask", ["careful"], hash_)
    assert (ends["c"].decide, ends["c"].rules) == ("allow", ["x"])
    assert [each.consents for each in report.entries if each.consents] == [["ann"]]
    assert problems(path, json.loads(path.read_text().splitlines()[0])["key"], plan.id) == []
