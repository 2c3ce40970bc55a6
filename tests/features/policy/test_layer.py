"""The layer of the policy around one attempt: which decisions count, and for how long. No server."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.features.policy.current import Current
from plansurvive.features.policy.in_worker import Judge
from plansurvive.features.policy.judging import Judged
from plansurvive.features.policy.model import KEY, Decided, JudgedCall, Spoken
from plansurvive.features.policy.ruling import Rulings
from plansurvive.plans.activity_io import Call
from plansurvive.runtime.settings import Settings
from tests.activities.attempts import Attempts
from tests.activities.conftest import attempts

__all__ = ["attempts"]


def judging(attempts: Attempts, tmp_path: Path, rule: str) -> Attempts:
    state = tmp_path / "operator"
    state.mkdir()
    (state / "policy.toml").write_text(f'[[rule]]\nname = "r"\n{rule}\n')
    settings = Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state)})
    return attempts.but(site=ToolEnvironment(layers=[Judge(Rulings(Current(settings)))]), approved=False)


def decided(call: Call, age: timedelta) -> Call:
    part = JudgedCall(decided=[Decided(by="ann", time=datetime.now(UTC) - age)])
    return call.model_copy(update={"parts": {"policy": part}, "approved": True})


def line_of(key: Ed25519PublicKey) -> str:
    """A public key as policy.toml has it."""
    return KEY + base64.b64encode(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


WRITE = {"path": "a.txt", "content": "x"}


async def test_a_decision_counts_for_a_while(attempts: Attempts, tmp_path: Path) -> None:
    site = judging(attempts, tmp_path, 'decide = "ask"\nexpires = "1h"')
    done = await site.run("write_file", decided(site.call(WRITE), timedelta(minutes=59)))
    assert done.parts["policy"].rules == ["r"]
    assert done.parts["policy"].reason == "rule 'r' of the policy asks; approved by ann"
    with pytest.raises(
        ApplicationError, match=r"APPROVAL_EXPIRED: the decision is 61 min . s old, and counts for 1 h"
    ) as late:
        await site.run("write_file", decided(site.call(WRITE), timedelta(minutes=61, seconds=5)))
    assert late.value.type == "APPROVAL_REQUIRED"


async def test_a_decision_that_was_used_in_time_holds_for_further_attempts(attempts: Attempts, tmp_path: Path) -> None:
    site = judging(attempts, tmp_path, 'decide = "ask"\nexpires = "1h"').but(again=True)
    assert await site.run("write_file", decided(site.call(WRITE), timedelta(hours=9)))


@pytest.mark.parametrize(
    ("rule", "args", "code"),
    [
        ('decide = "deny"\nargs.path = "docs/**"', {"path": "docs/../docs/a.txt"}, "POLICY_DENIED"),
        ('decide = "deny"\nargs.path = "real/**"', {"path": "link/a.txt"}, "POLICY_DENIED"),
        ('decide = "deny"\nargs.path = "link/**"', {"path": "link/a.txt"}, "POLICY_DENIED"),
        ('decide = "allow"\nargs.path = "docs/**"', {"path": "docs/../../a.txt"}, "APPROVAL_REQUIRED"),
    ],
)
async def test_paths_count_as_they_are_opened(
    attempts: Attempts, tmp_path: Path, rule: str, args: dict[str, Any], code: str
) -> None:
    (attempts.workspace / "real").mkdir()
    (attempts.workspace / "link").symlink_to("real")
    site = judging(attempts, tmp_path, rule)
    with pytest.raises(ApplicationError) as refused:
        await site.run("write_file", **WRITE | args)
    assert refused.value.type == code
    assert not list((attempts.workspace / "real").iterdir())


async def test_an_allow_covers_what_the_tool_would_ask_about(attempts: Attempts, tmp_path: Path) -> None:
    (attempts.workspace / "docs").mkdir()
    (attempts.workspace / "docs" / "a.txt").write_text("known to nobody")
    with pytest.raises(ApplicationError, match="person"):
        await attempts.but(approved=False).run("write_file", path="docs/a.txt", content="x")
    site = judging(attempts, tmp_path, 'decide = "allow"\nargs.path = "docs/**"')
    assert (await site.run("write_file", path="docs/a.txt", content="x")).parts["policy"].decide == "allow"


async def test_what_an_agent_says_of_itself_is_no_decision(attempts: Attempts, tmp_path: Path) -> None:
    site = judging(attempts, tmp_path, 'decide = "ask"').but(approved=True)
    with pytest.raises(ApplicationError, match="rule 'r' of the policy asks"):
        await site.run("write_file", **WRITE)


async def test_it_counts_once_more_who_has_approved(attempts: Attempts, tmp_path: Path) -> None:
    """What a plan says of its approvals is not enough: the worker's own policy knows the keys."""
    own = Ed25519PrivateKey.generate().public_key()
    site = judging(attempts, tmp_path, f'decide = "ask"\nby = ["ann"]\n[people]\nann = "{line_of(own)}"')
    good = {"by": "ann", "signed": "ann", "key": own.public_bytes_raw().hex()}
    for wrong in ({"signed": ""}, {"key": ""}, {"key": "0" * 64}, {"signed": "bob"}, {"signed": "page:ann"}):
        part = JudgedCall(decided=[Decided(**{**good, **wrong}, time=datetime.now(UTC))])
        call = site.call(WRITE).model_copy(update={"parts": {"policy": part}, "approved": True})
        with pytest.raises(ApplicationError, match="UNVERIFIED") as caught:
            await site.run("write_file", call)
        assert caught.value.type == "APPROVAL_REQUIRED"
    part = JudgedCall(decided=[Decided(**good, time=datetime.now(UTC))])
    call = site.call(WRITE).model_copy(update={"parts": {"policy": part}, "approved": True})
    assert await site.run("write_file", call)


async def test_an_author_of_whom_nothing_is_said_could_be_anybody(tmp_path: Path) -> None:
    """Of a child plan that was begun by a plan whose worker had no policy."""
    ann, bob = (Ed25519PrivateKey.generate().public_key() for _ in range(2))
    rule = f'[[rule]]\nname = "r"\ndecide = "ask"\nnot_author = true\n[people]\nann = "{line_of(ann)}"'
    (tmp_path / "policy.toml").write_text(f'{rule}\nbob = "{line_of(bob)}"\n')
    rulings = Rulings(Current(Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path)})))
    approved = Decided(by="ann", signed="ann", key=ann.public_bytes_raw().hex(), time=datetime.now(UTC))
    known = Spoken(by="bob", signed="bob", key=bob.public_bytes_raw().hex())
    codes = list[str]()
    for authors in ([], [Spoken(by="bob")], [known]):
        _, error = await rulings.of(Judged("t", {}), JudgedCall(decided=[approved], authors=authors))
        codes.append(error.code if error else "")
    assert codes == ["APPROVAL_REQUIRED", "APPROVAL_REQUIRED", ""]


@pytest.mark.parametrize("how", ["broken", "gone", "writable"])
async def test_a_file_that_cannot_be_read_any_more_asks_no_fewer_people_than_before(
    attempts: Attempts, tmp_path: Path, how: str
) -> None:
    state = tmp_path / "operator"
    state.mkdir()
    file = state / "policy.toml"
    rules = 'tool = "write_file"\ndecide = "ask"\ncount = 2', 'tool = "delete_file"\ndecide = "deny"'
    allow = '[[rule]]\nname = "reads"\ntool = "read_file"\ndecide = "allow"\n'
    file.write_text(allow + "".join(f'[[rule]]\nname = "r{at}"\n{rule}\n' for at, rule in enumerate(rules)))
    rulings = Rulings(Current(Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state)})))
    if how == "broken":
        file.write_text("[[rule]]\n")
    elif how == "gone":
        file.unlink()
    else:
        file.chmod(0o666)
    one = JudgedCall(decided=[Decided(by="ann", signed="ann", time=datetime.now(UTC))])
    ruling, error = await rulings.of(Judged("write_file", WRITE), one)
    assert (ruling.decide, ruling.rules, ruling.terms and ruling.terms.rules[0].count) == ("ask", ["r0"], 2)
    assert error is not None
    assert error.code == "APPROVAL_REQUIRED"
    ruling, error = await rulings.of(Judged("delete_file", {"path": "a"}), None)
    assert (ruling.decide, error and error.code) == ("deny", "POLICY_DENIED")
    ruling, error = await rulings.of(Judged("read_file", {"path": "a"}), None)
    assert (ruling.decide, ruling.rules) == ("ask", [])
    assert error is not None
    assert "POLICY_UNREADABLE" in error.message
