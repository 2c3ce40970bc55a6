"""Prompts with which an answer that could not be used is asked for again."""

from __future__ import annotations

from collections.abc import Sequence

from plansurvive.plans.llm.prompt_parts import Prompt, data, joined, one_line, section
from plansurvive.plans.text.lists import number_of

ANSWER_CHARACTERS = 20_000


def correction_prompt(first: Prompt, answer: str, problems: Sequence[str], attempts_left: int) -> Prompt:
    """Repeat the request with the last answer and all its problems."""
    rows = [f"- {one_line(problem)}" for problem in problems]
    parts = [
        first.user,
        section("YOUR LAST ANSWER", data("It was not accepted:", answer, ANSWER_CHARACTERS)),
        section("PROBLEMS", "\n".join(rows)),
        correction_section(attempts_left),
    ]
    return Prompt(system=first.system, user=joined(parts))


def correction_section(attempts_left: int) -> str:
    """The end of a request for a correction."""
    left = f"{number_of(attempts_left, 'attempt')} left"
    return section("CORRECTION", f"Return the complete answer again, with every problem above fixed ({left}).")
