"""Files as a run last saw them: the test cases of seed 003 under their own names, and what lies between them."""

from __future__ import annotations

from plansurvive.plans.file_stamps import FileTracker, Stamp, new_notes, note_paths, stamp_of

PATH = "src/tools/read-file.ts"
NOTES = {"src/agents.md": "outer", "src/tools/agents.md": "inner"}


def tracker_of(path: str = PATH, content: bytes = b"content") -> FileTracker:
    """A tracker that has seen one file."""
    tracker = FileTracker()
    tracker.track_read(path, content)
    return tracker


def test_track_reads() -> None:
    tracker = tracker_of()
    assert PATH in tracker.stamps
    assert not tracker.has_been_modified_since_read(PATH, b"content")


def test_no_conflict() -> None:
    assert tracker_of().has_been_modified_since_read(PATH, b"content") is False


def test_conflict() -> None:
    assert tracker_of().has_been_modified_since_read(PATH, b"content!") is True
    assert tracker_of().has_been_modified_since_read(PATH, b"contemt") is True


def test_untracked_file() -> None:
    assert FileTracker().has_been_modified_since_read(PATH, b"anything") is False
    assert FileTracker().has_been_modified_since_read(PATH, None) is False


def test_re_track() -> None:
    tracker = tracker_of()
    assert tracker.has_been_modified_since_read(PATH, b"other")
    tracker.track_read(PATH, b"other")
    assert not tracker.has_been_modified_since_read(PATH, b"other")


def test_content_based() -> None:
    assert not tracker_of().has_been_modified_since_read(PATH, bytes(bytearray(b"content")))


def test_same_directory() -> None:
    assert FileTracker().get_agents_md_if_new(PATH, {"src/tools/agents.md": "inner"}) == "inner"


def test_missing() -> None:
    assert FileTracker().get_agents_md_if_new(PATH, {}) is None
    assert FileTracker().get_agents_md_if_new(PATH, {"src/other/agents.md": "elsewhere"}) is None


def test_session_dedupe() -> None:
    tracker = FileTracker()
    assert tracker.get_agents_md_if_new(PATH, NOTES)
    assert tracker.get_agents_md_if_new(PATH, NOTES) is None
    assert tracker.get_agents_md_if_new("src/tools/edit-file.ts", NOTES) is None


def test_session_reset() -> None:
    tracker = FileTracker()
    first = tracker.get_agents_md_if_new(PATH, NOTES)
    tracker.clear_session()
    assert tracker.get_agents_md_if_new(PATH, NOTES) == first


def test_parent_directories() -> None:
    assert FileTracker().get_agents_md_if_new(PATH, NOTES) == "outer\n\ninner"
    tracker = FileTracker()
    assert tracker.get_agents_md_if_new("src/main.ts", NOTES) == "outer"
    assert tracker.get_agents_md_if_new(PATH, NOTES) == "inner"


def test_a_deleted_file_is_modified() -> None:
    assert tracker_of().has_been_modified_since_read(PATH, None)


def test_a_file_the_run_deleted_itself_is_modified_only_when_it_is_back() -> None:
    tracker = tracker_of()
    tracker.track_deleted(PATH)
    assert not tracker.has_been_modified_since_read(PATH, None)
    assert tracker.has_been_modified_since_read(PATH, b"content")


def test_what_somebody_changed_is_stale_until_it_is_read_again() -> None:
    tracker = tracker_of()
    tracker.track_read("other", b"")
    assert tracker.invalidate(["src", "unknown"]) == [PATH]
    assert tracker.has_been_modified_since_read(PATH, b"content")
    assert not tracker.has_been_modified_since_read("other", b"")
    assert tracker.invalidate([PATH]) == []
    tracker.track_read(PATH, b"content")
    assert not tracker.has_been_modified_since_read(PATH, b"content")
    assert sorted(tracker.invalidate(["."])) == ["other", PATH]


def test_a_cleared_session_knows_nothing() -> None:
    tracker = tracker_of()
    tracker.clear_session()
    assert not tracker.has_been_modified_since_read(PATH, b"other")
    assert tracker == FileTracker()


def test_the_state_is_a_value_that_is_carried_and_shared_by_nobody() -> None:
    tracker = tracker_of()
    tracker.get_agents_md_if_new(PATH, NOTES)
    carried = FileTracker.model_validate_json(tracker.model_dump_json())
    assert carried == tracker
    assert carried.has_been_modified_since_read(PATH, b"other")
    assert not FileTracker().stamps
    assert len(tracker.model_dump_json()) < 200


def test_a_stamp_is_short_where_nothing_is_to_be_said() -> None:
    stamp = stamp_of(b"x")
    assert set(stamp.model_dump(mode="json")) == {"hash", "size"}
    assert len(stamp.hash) == 32
    stale = stamp.model_copy(update={"state": "stale"})
    assert Stamp.model_validate(stale.model_dump(mode="json")) == stale


def test_both_spellings_of_agents_md_count_once_per_directory() -> None:
    assert note_paths("a/b.txt") == [["AGENTS.md", "agents.md"], ["a/AGENTS.md", "a/agents.md"]]
    available = {name: name for name in ("agents.md", "AGENTS.md", "a/agents.md", "b/agents.md")}
    tracker = FileTracker()
    assert tracker.get_agents_md_if_new("a/b.txt", available) == "AGENTS.md\n\na/agents.md"
    assert tracker.get_agents_md_if_new("a/c.txt", available) is None
    assert new_notes("a/c/d.txt", tracker.notes_seen) == [["a/c/AGENTS.md", "a/c/agents.md"]]


def test_a_link_where_a_file_was_is_a_change_even_to_the_same_content() -> None:
    file, link = stamp_of(b"x"), stamp_of(b"x", linked=True)
    assert file.has_changed(link)
    assert not link.has_changed(file)
    assert not link.has_changed(link)
    tracker = FileTracker(stamps={PATH: file})
    assert tracker.has_been_modified_since_read(PATH, link)
