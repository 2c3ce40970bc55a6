"""Mutated plans through `plan check`: every one gets an answer, and enough of them are valid for that to mean much."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.plan_file import check
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.plans.definition.parsing import Unreadable, parse_json
from tests.fuzz import mutate
from tests.kit import LEDGER_TOOLS
from tests.nightly import only_nightly

VALID = 0.3
"""Least part of the mutated plans that must be valid."""
SECONDS_PER_MEGABYTE = 10.0
"""Ten times what is promised: the machine of a test may be busy."""


def checked(data: Any, tools: Any) -> bool:
    """Whether the plan is valid, as text and as data. Raises what nobody caught."""
    try:
        parse_json(json.dumps(data))
    except Unreadable:
        return False
    return not errors(check(data, tools)[1])


@pytest.mark.parametrize("count", [300, only_nightly(30_000)])
def test_every_mutated_plan_gets_an_answer(count: int, fuzz_seed: int) -> None:
    rng, tools = random.Random(fuzz_seed), {name: tool.spec for name, tool in load_tools([LEDGER_TOOLS]).items()}
    valid, slowest = 0, 0.0
    for _ in range(count):
        data = mutate.mutated_plan(rng)
        began = time.thread_time()
        valid += checked(data, tools)
        slowest = max(slowest, (time.thread_time() - began) / max(1.0, len(json.dumps(data)) / 1_000_000))
    print(f"{count} mutated plans, seed {fuzz_seed}: {valid / count:.0%} valid, slowest {slowest:.3f} s per MB")
    assert valid >= VALID * count
    assert count < 1_000 or slowest < SECONDS_PER_MEGABYTE
