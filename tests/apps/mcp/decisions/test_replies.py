"""What was replied is remembered: no key is used twice, also not by a server that was started later."""

from __future__ import annotations

from pathlib import Path

from plansurvive.apps.mcp.decisions.replies import KEPT_SECONDS, MAX_REPLIES, Replied, Replies
from plansurvive.runtime.settings import Settings


def replies(tmp_path: Path, now: float | None = None) -> Replies:
    """Those of a state directory, as a process that has just started reads them."""
    settings = Settings.read({"PLANS_STATE_DIR": str(tmp_path / "state")})
    return Replies(settings) if now is None else Replies(settings, lambda: now)


def test_a_reply_that_was_not_accepted_is_known_after_a_restart_with_its_reason(tmp_path: Path) -> None:
    with replies(tmp_path).take("p", "b") as held:
        assert held is not None
        before, record = held
        assert before == Replied()
        record(before.refused("not a number"))
    found = replies(tmp_path).of("p", "b")
    assert (found.count, found.why, found.is_open) == (1, "not a number", True)
    assert replies(tmp_path).of("q", "b") == Replied()


def test_two_replies_at_the_same_moment_are_one(tmp_path: Path) -> None:
    with replies(tmp_path).take("p", "b") as first, replies(tmp_path).take("p", "b") as second:
        assert first is not None
        assert second is None


def test_nobody_is_asked_for_ever(tmp_path: Path) -> None:
    found = Replied()
    for _ in range(MAX_REPLIES):
        assert found.is_open
        found = found.refused("no")
    assert not found.is_open
    assert not Replied().put_off().is_open
    assert not Replied().settled().is_open


def test_a_damaged_record_asks_nobody_by_a_key_that_may_have_been_used(tmp_path: Path) -> None:
    with replies(tmp_path).take("p", "b") as held:
        assert held is not None
        held[1](Replied())
    [path] = (tmp_path / "state" / "asked").iterdir()
    path.write_text('{"count":')
    assert not replies(tmp_path).of("p", "b").is_open


def test_records_are_forgotten_in_the_end(tmp_path: Path) -> None:
    with replies(tmp_path).take("p", "old") as held:
        assert held is not None
        held[1](Replied().settled())
    [path] = (tmp_path / "state" / "asked").iterdir()
    with replies(tmp_path, path.stat().st_mtime + KEPT_SECONDS + 1).take("p", "new"):
        assert not path.exists()
