"""Prompts near the context limit: what is shortened, by which rule, and that nothing disappears without a word."""

from __future__ import annotations

import json
import re

import pytest

from plansurvive.features.agents.model.compaction import AFTER, FULL, bytes_of, counted, refused
from plansurvive.features.agents.model.conversation import TOKENS_PER_BYTE, Conversation
from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.plans.llm.prompt_parts import ToolOutcome, compacted_text
from tests.features.agents.talking import Talk, begins_like, calls, read


def long_run(requests: int = 200, window: int = 64_000, size: int = 4_000, tasks: int = 50) -> Talk:
    """An agent that reads a file per request, and completes its tasks in between."""
    talk = Talk(tasks=TaskList.of([f"task {number}" for number in range(1, tasks + 1)]).begin(), window=window)
    talk.ask()
    for number in range(1, requests + 1):
        talk.answer(reasoning=f"reason {number}", tool_calls=calls(f"{number}.txt"))
        assert talk.tasks
        if number * tasks // requests > (number - 1) * tasks // requests:
            talk.tasks = talk.tasks.called(1).complete(f"summary {number}")
        talk.ask(read(number, f"{number}.txt", f"result {number}\n" * (size // 10)))
    return talk


def shown(talk: Talk) -> str:
    """The last prompt."""
    return "\n".join(each["content"] for each in talk.sent[-1])


def test_two_hundred_calls_and_fifty_tasks_stay_within_the_window_in_few_big_steps() -> None:
    talk = long_run()
    assert all(fit.tokens <= 64_000 * FULL for fit in talk.fits)
    steps = [number for number, fit in enumerate(talk.fits) if fit.compacted]
    assert 2 <= len(steps) <= 12, steps
    assert all(talk.fits[number].tokens <= 64_000 * AFTER + 2_000 for number in steps)
    pairs = zip(talk.sent, talk.sent[1:], strict=False)
    assert [number for number, (one, two) in enumerate(pairs, 1) if not begins_like(two, one)] == steps
    assert sum(fit.compacted for fit in talk.fits) == len(re.findall(r"(?m)^call \d+: ", shown(talk)))


@pytest.mark.parametrize("window", [4_000, 12_000, 64_000])
def test_no_result_disappears_without_a_word(window: int) -> None:
    talk = long_run(60, window, tasks=5)
    text = shown(talk)
    whole = {int(number) for number in re.findall(r'(?m)^read_file \{"path": "(\d+)\.txt"\} \[SUCCESS\]:', text)}
    lines = {int(number) for number in re.findall(r"(?m)^call (\d+): ", text)}
    gone = re.search(r"\[(\d+) lines? left out, calls 1 to (\d+)\]", text)
    left_out = set(range(1, int(gone[2]) + 1)) if gone else set()
    assert whole | lines | left_out == set(range(1, 61))
    assert not whole & lines
    assert not lines & left_out
    assert 60 in whole
    assert bool(left_out) == (window == 4_000)


def test_a_compacted_result_names_call_arguments_end_and_length_and_how_to_read_it_again() -> None:
    talk = long_run(40, 16_000, tasks=4)
    text = shown(talk)
    assert 'read_result with {"call": number} shows the whole result of a call again' in text
    assert re.search(r'(?m)^call \d+: read_file \{"path": "\d+\.txt"\} \[SUCCESS\]: [45],\d{3} characters$', text)


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        ({"text": "x=1"}, 'call 3: t {"a": 1} [SUCCESS]: x=1'),
        ({"text": "x" * 121}, 'call 3: t {"a": 1} [SUCCESS]: 121 characters'),
        ({"text": "x\ny"}, 'call 3: t {"a": 1} [SUCCESS]: 3 characters'),
        ({"text": "x" * 80, "length": 9_000}, 'call 3: t {"a": 1} [SUCCESS]: 9,000 characters'),
        ({"text": "User denied approval", "ok": False, "state": "denied", "by": "ann"},
         'call 3: t {"a": 1} (denied by "ann") [ERROR]: User denied approval'),
        ({"text": "e" * 4_000, "ok": False}, 'call 3: t {"a": 1} [ERROR]: 4,000 characters'),
        ({"text": ""}, 'call 3: t {"a": 1} [SUCCESS]:'),
    ],
)  # fmt: skip
def test_a_line_says_how_the_call_ended_whatever_the_end(outcome: dict[str, object], line: str) -> None:
    assert compacted_text(ToolOutcome.model_validate({"tool": "t", "call": 3, "args": '{"a": 1}', **outcome})) == line


def test_of_completed_tasks_the_summary_remains_and_of_the_current_one_the_reasoning_as_well() -> None:
    talk = long_run(40, 16_000, tasks=2)
    text = shown(talk)
    assert 'Task 1: "summary 20"' in text
    assert '"reason 5"\n' not in text
    assert re.search(r'(?m)^your reasoning: "reason 2[1-9]"$', text)


def test_the_results_of_the_last_answer_stay_although_they_are_many() -> None:
    talk = Talk(asked="simple", window=8_000)
    talk.ask()
    talk.answer(tool_calls=calls(*(f"{number}" for number in range(100))))
    fit = talk.ask(*(read(number, f"{number}", "x" * 4_000) for number in range(100)))
    text = shown(talk)
    assert text.count("[SUCCESS]:") == 100
    assert text.count("for the rest call read_result") == 100
    assert fit.tokens < 8_000


def test_what_cannot_be_compacted_is_told_by_its_size() -> None:
    talk = Talk(asked="simple", window=1_000, said=Conversation(request="x" * 20_000))
    assert talk.ask().tokens > 1_000


def test_a_refused_prompt_shrinks_and_the_limit_is_remembered() -> None:
    talk = long_run(30, 64_000, tasks=3)
    before = talk.fits[-1]
    assert not before.compacted
    talk.said = refused(before)
    again = talk.ask()
    assert again.tokens < before.tokens * 0.5
    for number in range(31, 90):
        talk.answer(tool_calls=calls(f"{number}.txt"))
        talk.ask(read(number, f"{number}.txt", "x" * 4_000))
    assert max(fit.tokens for fit in talk.fits[31:]) <= before.tokens * 0.9 * FULL


@pytest.mark.parametrize(("tokens", "ratio"), [(0, TOKENS_PER_BYTE), (1, 0.125), (300, 0.3), (10**9, 1.0), (-5, 0.125)])
def test_what_an_endpoint_counts_is_believed_within_reason(tokens: int, ratio: float) -> None:
    assert counted(Conversation(), 1_000, tokens).ratio == ratio
    assert counted(Conversation(), 0, tokens).ratio == TOKENS_PER_BYTE


def test_texts_of_other_scripts_count_by_their_bytes() -> None:
    assert bytes_of([{"role": "user", "content": "漢字"}]) == 16 + 6
    assert bytes_of([{"role": "user", "content": "\ud800"}]) == 16 + 1


def test_compaction_is_the_same_every_time() -> None:
    one, two = long_run(50, 12_000), long_run(50, 12_000)
    assert one.sent == two.sent
    assert json.loads(one.said.model_dump_json()) == json.loads(two.said.model_dump_json())


def test_corrections_and_notices_of_compacted_turns_go_with_them() -> None:
    talk = Talk(asked="simple", window=16_000)
    talk.ask()
    for number in range(1, 30):
        talk.ask(last="{" * 5_000, problems=["The answer ends in the middle"], left=3)
        talk.answer(tool_calls=calls(f"{number}.txt"))
        talk.ask(read(number, f"{number}.txt", "x" * 2_000), notice=f"notice {number}")
    text = shown(talk)
    assert talk.fits[-1].tokens <= 16_000 * FULL
    assert "notice 29" in text
    assert "notice 3\n" not in text
    assert len({each["role"] for each in talk.sent[-1][1::2]}) == 1
