"""A one-time link decides about one call, once, in one name, until it expires or its key is replaced."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from plansurvive.runtime.links import Link, LinkRefused, Links
from plansurvive.runtime.settings import SettingError, Settings

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DIGEST = "ab" * 32


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.read({"HOME": str(tmp_path)})


@pytest.fixture
def links(settings: Settings, clock: Clock) -> Links:
    return Links(settings, clock)


def issued(links: Links, step: str = "each[a/b #1].deploy", person: str = "ann@example.org") -> str:
    """A link that is good for an hour."""
    return links.issue("p1", "run-1", step, 3, DIGEST, person, NOW + timedelta(hours=1))


def code_of(act: Callable[[], object]) -> str:
    with pytest.raises(LinkRefused) as caught:
        act()
    return caught.value.code


def test_a_link_names_exactly_the_call_and_the_person_it_was_issued_for(links: Links) -> None:
    link = links.verify(issued(links))
    named = (link.plan_id, link.step_id, link.version, link.digest, link.person)
    assert named == ("p1", "each[a/b #1].deploy", 3, DIGEST, "ann@example.org")
    assert link.until == NOW + timedelta(hours=1)


def test_a_token_needs_no_escaping_in_a_url(links: Links) -> None:
    assert set(issued(links, step="ü[ ]/?#%" * 20)) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
    )


def test_a_changed_token_is_refused_wherever_it_was_changed(links: Links) -> None:
    token = issued(links)
    for place in range(len(token)):
        other = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        assert code_of(lambda token=other: links.verify(token)) == "LINK_INVALID"  # type: ignore[misc]


@pytest.mark.parametrize(
    "token", ["", ".", "a", "a.b", "é.é", "\udc80.\udc80", "=.=", "AA==.AA==", "A" * 100_000 + ".A"]
)
def test_what_is_not_a_token_is_refused(links: Links, token: str) -> None:
    assert code_of(lambda: links.verify(token)) == "LINK_INVALID"


def test_a_link_for_another_step_cannot_be_made_from_one_that_is_known(links: Links) -> None:
    first, _, mac = issued(links).partition(".")
    content = json.loads(base64.urlsafe_b64decode(first + "=="))
    content["stepId"] = "other"
    forged = base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
    assert code_of(lambda: links.verify(f"{forged}.{mac}")) == "LINK_INVALID"


def test_a_link_expires(links: Links, clock: Clock) -> None:
    token = issued(links)
    clock.now = NOW + timedelta(minutes=59, seconds=59)
    links.verify(token)
    clock.now += timedelta(seconds=1)
    assert code_of(lambda: links.verify(token)) == "LINK_EXPIRED"


def test_a_link_that_was_refused_as_expired_stays_so_when_the_clock_is_set_back(
    links: Links, clock: Clock, settings: Settings
) -> None:
    token, unseen = issued(links), issued(links)
    clock.now = NOW + timedelta(hours=2)
    assert code_of(lambda: links.verify(token)) == "LINK_EXPIRED"
    clock.now = NOW
    assert code_of(lambda: Links(settings, clock).verify(token)) == "LINK_EXPIRED"
    assert links.verify(unseen)  # control: the clock is back


def test_a_link_that_was_used_in_time_says_so_after_it_has_expired(links: Links, clock: Clock) -> None:
    token = issued(links)
    with links.use(links.verify(token)) as used:
        used("approved")
    clock.now = NOW + timedelta(hours=2)
    assert code_of(lambda: links.verify(token)) == "LINK_USED"


def test_a_used_link_says_what_was_decided_even_to_another_process(links: Links, settings: Settings) -> None:
    token = issued(links)
    with links.use(links.verify(token)) as used:
        used("step 'deploy' approved by ann@example.org")
    later = Links(settings, lambda: NOW)
    with pytest.raises(LinkRefused, match="step 'deploy' approved by ann") as caught:
        later.verify(token)
    assert caught.value.code == "LINK_USED"


def test_of_two_clicks_in_the_same_moment_the_second_is_refused(links: Links, settings: Settings) -> None:
    link = links.verify(issued(links))
    start, outcomes = threading.Barrier(8), []

    def click(number: int) -> None:
        start.wait()
        try:
            with Links(settings, lambda: NOW).use(link) as used:
                used(f"decided by {number}")
                outcomes.append("decided")
        except LinkRefused as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=click, args=[number]) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert outcomes.count("decided") == 1
    assert set(outcomes) <= {"decided", "LINK_USED", "LINK_BUSY"}


def test_a_link_is_busy_while_its_decision_is_sent(links: Links) -> None:
    link = links.verify(issued(links))
    with links.use(link):
        assert code_of(lambda: links.use(link).__enter__()) == "LINK_BUSY"


def test_a_link_whose_decision_did_not_arrive_can_be_used_again(links: Links) -> None:
    token = issued(links)
    with pytest.raises(OSError, match="no server"), links.use(links.verify(token)):
        raise OSError("no server")
    with links.use(links.verify(token)) as used:
        used("approved")
    assert code_of(lambda: links.verify(token)) == "LINK_USED"


def test_a_new_key_voids_every_link_that_is_out(links: Links) -> None:
    token = issued(links)
    links.rotate()
    assert code_of(lambda: links.verify(token)) == "LINK_INVALID"
    links.verify(issued(links))


def test_a_key_that_others_can_read_signs_nothing(links: Links, settings: Settings) -> None:
    token = issued(links)
    (settings.state_dir / "links.key").chmod(0o644)
    for act in (lambda: links.verify(token), lambda: issued(links)):
        with pytest.raises(SettingError, match="others may read or change"):
            act()


def test_what_no_decision_could_name_is_not_issued(links: Links) -> None:
    for given in ({"step": ""}, {"step": "a" * 1_001}, {"person": ""}, {"person": "a" * 201}):
        with pytest.raises(ValidationError):
            issued(links, **given)


def test_records_of_links_are_forgotten_a_month_after_these_expired(
    links: Links, settings: Settings, clock: Clock
) -> None:
    def records() -> list[str]:
        return [path.name.partition("-")[2] for path in (settings.state_dir / "links").iterdir()]

    first = links.verify(issued(links))
    with links.use(first) as used:
        used("approved")
    assert records() == [first.id]
    clock.now = NOW + timedelta(days=32)
    second = Link(**first.model_dump(by_alias=False) | {"id": "0" * 32, "expires": int(clock.now.timestamp()) + 9})
    with links.use(second) as used:
        used("denied")
    assert records() == [second.id]


def test_a_used_link_stays_used_when_the_clock_is_set_back(links: Links, clock: Clock, settings: Settings) -> None:
    token = issued(links)
    with links.use(links.verify(token)) as used:
        used("approved")
    for hours in (-1, -24, -24 * 400):
        clock.now = NOW + timedelta(hours=hours)
        assert code_of(lambda: Links(settings, clock).verify(token)) == "LINK_USED"
        assert links.verify(issued(links, "other")).step_id == "other"  # control: an unused one counts
