"""What the limiter admits: never more in any period than a rate allows, first come first served."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest

from plansurvive.features.limits.limiter import MAX_BUCKETS, PATIENCE, Limiter, shared
from plansurvive.features.limits.model import LEASE, Answer, Ask, Claim, Ended, Exchange, Reply

MINUTE = 60_000
PER_MINUTE = Claim(bucket="tools.work", rates=[(60, 60)])
TWO = Claim(bucket="tools.work", concurrency=2)


def ask(limiter: Limiter, now: int, call: str, *claims: Claim, margin: float = 0.0) -> Answer:
    """One attempt of a call that wants to begin."""
    said = Exchange(asks=[Ask(id=f"{call}@{now}", call=call, claims=list(claims), margin=margin)])
    return limiter.exchange(said, now).answers[0]


def end(limiter: Limiter, now: int, **ended: object) -> Reply:
    """Say that an attempt has ended."""
    return limiter.exchange(Exchange(ended=[Ended.model_validate(ended)]), now)


def most_in(times: Sequence[int], window: int) -> int:
    """The largest number of times in any period of so many milliseconds."""
    ordered, most, first = sorted(times), 0, 0
    for at, time in enumerate(ordered):
        while time - ordered[first] >= window:
            first += 1
        most = max(most, at - first + 1)
    return most


@pytest.mark.parametrize("seed", range(5))
def test_no_minute_ever_holds_more_than_sixty_however_late_the_calls_begin(seed: int) -> None:
    chance, limiter, began, now = random.Random(seed), Limiter(), list[int](), 0
    due = {f"call-{number}": 0 for number in range(400)}
    while due:
        call, now = min(((name, time) for name, time in due.items()), key=lambda pair: pair[1])
        margin = chance.choice([0.1, 0.5, 2.0])
        answer = ask(limiter, now, call, PER_MINUTE, margin=margin)
        if answer.admitted:
            del due[call]
            began.append(now + chance.randrange(int(margin * 1_000)))
        else:
            due[call] = now + int(answer.wait * 1_000) + chance.randrange(100)
    assert most_in(began, MINUTE) <= 60
    assert len([time for time in began if time < 3 * MINUTE]) >= 3 * 57


def test_a_limiter_without_margin_would_admit_too_many() -> None:
    """The control of the test above: the same calls, judged as if they began at once."""
    limiter, began = Limiter(), list[int]()
    for number in range(60):
        assert ask(limiter, 0, f"a{number}", PER_MINUTE, margin=0.0).admitted
        began.append(2_000)
    now = int(ask(limiter, 0, "b", PER_MINUTE, margin=0.0).wait * 1_000)
    began += [now for number in range(60) if ask(limiter, now, f"b{number}", PER_MINUTE).admitted]
    assert most_in(began, MINUTE) > 60


def test_who_waits_longest_comes_first_and_who_comes_later_waits_longer() -> None:
    limiter = Limiter()
    one = Claim(bucket="tools.work", rates=[(1, 60)])
    assert ask(limiter, 0, "first", one).admitted
    waits = [ask(limiter, at, f"later-{at}", one).wait for at in range(1, 6)]
    assert all(after > before + 50 for before, after in pairwise(waits))
    now = int(waits[0] * 1_000) + 1
    assert not ask(limiter, now, "newcomer", one).admitted
    assert ask(limiter, now, "later-1", one).admitted


def test_a_place_of_a_call_that_does_not_come_back_is_given_to_others() -> None:
    limiter = Limiter()
    one = Claim(bucket="tools.work", rates=[(1, 60)])
    ask(limiter, 0, "first", one)
    due = int(ask(limiter, 1, "gone", one).wait * 1_000) + 1
    assert not ask(limiter, due, "other", one).admitted
    assert ask(limiter, due + PATIENCE, "other", one).admitted


def test_what_was_given_back_is_used_at_once_and_who_waits_still_comes_at_its_time() -> None:
    limiter = Limiter()
    two = Claim(bucket="tools.work", rates=[(2, 60)])
    answers = [ask(limiter, 0, name, two) for name in "ab"]
    due = int(ask(limiter, 10, "waits", two).wait * 1_000) + 11
    assert not ask(limiter, 11, "more", two).admitted
    end(limiter, 20, id="a@0", at=answers[0].at, margin=0.0, spent={"tools.work": (1, 0)})
    assert ask(limiter, 21, "newcomer", two).admitted
    assert not ask(limiter, 22, "another", two).admitted
    assert ask(limiter, due, "waits", two).admitted


def test_only_so_many_calls_run_at_the_same_time() -> None:
    limiter = Limiter()
    assert [ask(limiter, 0, name, TWO).admitted for name in "abc"] == [True, True, False]
    end(limiter, 10, id="a@0")
    assert ask(limiter, 11, "c", TWO).admitted


def test_the_place_of_a_dead_worker_is_free_when_its_lease_ends() -> None:
    limiter = Limiter()
    assert [ask(limiter, 0, name, TWO).admitted for name in "ab"] == [True, True]
    limiter.exchange(Exchange(alive=["b@0"]), int(LEASE * 500))
    now = int(LEASE * 1_000) + 1
    assert [ask(limiter, now, name, TWO).admitted for name in "cd"] == [True, False]


def test_the_next_attempt_of_a_call_takes_the_place_of_the_one_before() -> None:
    limiter = Limiter()
    assert [ask(limiter, 0, name, TWO).admitted for name in "ab"] == [True, True]
    assert ask(limiter, 5_000, "a", TWO).admitted
    end(limiter, 5_001, id="a@0")  # of the first attempt, from a worker that was taken for dead
    assert not ask(limiter, 5_002, "c", TWO).admitted


def test_a_call_that_was_admitted_and_did_not_begin_costs_nothing() -> None:
    limiter = Limiter()
    one = Claim(bucket="tools.work", rates=[(1, 60)])
    answer = ask(limiter, 0, "late", one, margin=0.5)
    end(limiter, 10, id="late@0", at=answer.at, margin=0.5, spent={"tools.work": (1, 0)})
    assert ask(limiter, 11, "other", one).admitted


def test_nothing_is_taken_where_one_of_several_limits_is_used_up() -> None:
    limiter = Limiter()
    tool, host = Claim(bucket="tools.work", rates=[(2, 60)]), Claim(bucket="tools.work[a]", rates=[(1, 60)])
    assert ask(limiter, 0, "a", tool, host).admitted
    assert ask(limiter, 0, "b", tool, host).bucket == "tools.work[a]"
    assert ask(limiter, 0, "c", tool).admitted


def test_tokens_count_as_expected_first_and_as_they_were_afterwards() -> None:
    limiter, tokens = Limiter(), Claim(bucket="llm.tokens", rates=[(1_000, 60)], cost=800)
    answer = ask(limiter, 0, "a", tokens)
    assert not ask(limiter, 1, "b", tokens).admitted
    end(limiter, 2, id="a@0", at=answer.at, margin=0.0, spent={"llm.tokens": (800, 100)})
    assert ask(limiter, 3, "b", tokens).admitted
    assert limiter.rows(4)[0].used == [900]


def test_a_request_larger_than_the_limit_takes_all_of_it_instead_of_waiting_for_ever() -> None:
    limiter, tokens = Limiter(), Claim(bucket="llm.tokens", rates=[(1_000, 60)], cost=5_000)
    assert ask(limiter, 0, "a", tokens).admitted
    assert not ask(limiter, 1, "b", tokens).admitted


def test_a_server_that_asked_to_be_left_alone_is_left_alone_by_all() -> None:
    limiter = Limiter()
    ask(limiter, 0, "a", PER_MINUTE)
    end(limiter, 10, id="a@0", pause=30, of=["tools.work"])
    answer = ask(limiter, 20, "b", PER_MINUTE)
    assert not answer.admitted
    assert 29 < answer.wait <= 30
    assert ask(limiter, 30_011, "b", PER_MINUTE).admitted


def test_a_clock_that_is_set_back_admits_nobody_early() -> None:
    limiter = Limiter()
    one = Claim(bucket="tools.work", rates=[(1, 60)])
    ask(limiter, 100_000, "a", one)
    assert not ask(limiter, 1_000, "b", one).admitted
    assert not ask(limiter, 120_000, "b", one).admitted


@pytest.mark.slow
def test_the_state_is_bounded_and_survives_as_json() -> None:
    limiter = Limiter()
    for number in range(MAX_BUCKETS + 50):
        ask(limiter, number, f"call-{number}", Claim(bucket=f"tools.work[{number}]", rates=[(1, 3_600)]))
    assert len(limiter.buckets) <= MAX_BUCKETS + 1
    assert not ask(limiter, 2_000, "another", Claim(bucket="tools.work[new]", rates=[(1, 3_600)])).admitted
    again = Limiter.model_validate(limiter.model_dump(mode="json", exclude_defaults=True))
    assert again == limiter
    assert shared("tools.work[new]") in again.buckets
    again.tidy(5 * 3_600_000)
    assert again.is_idle


def test_a_busy_limit_keeps_a_short_log() -> None:
    limiter = Limiter()
    rate = Claim(bucket="tools.work", rates=[(1_000_000, 60)])
    for now in range(0, 2 * MINUTE, 20):
        ask(limiter, now, f"call-{now}", rate)
    assert len(limiter.buckets["tools.work"].usage[0].times) < 700


def test_a_list_says_what_is_used_and_who_waits() -> None:
    limiter = Limiter()
    limit = Claim(bucket="tools.work", rates=[(1, 60)], concurrency=1)
    for name in "ab":
        asked = Ask(id=name, call=name, what=f"plan-{name} step", claims=[limit])
        limiter.exchange(Exchange(asks=[asked]), 0)
    row = limiter.rows(1_000)[0]
    assert (row.rates, row.used, row.running, row.waiting) == (["1/minute"], [1], 1, 1)
    assert row.first == ["plan-b step"]
    assert row.next_in is not None
    assert 58 < row.next_in < 62
