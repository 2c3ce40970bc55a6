"""Measures every attack and writes the table of docs/security.md: `python -m scripts.attack_table`, as root.

    --only TEXT     measure only cells whose name has TEXT, print them, write nothing
    --expected      write the table from what the data expects, without measuring
    --web           write the table of the attacks on the web page, which the tests try
    --agents        write the table of what an obedient agent tries over MCP, in the tests

An attack that does not come to what the data says is printed, and nothing is written: mend the defence or the data.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack

from tests.attacks import web_page
from tests.attacks.attack import USERS, Case
from tests.attacks.catalogue import CASES
from tests.attacks.mcp import agent_table
from tests.attacks.run import measure
from tests.attacks.table import DOCUMENT, summary, written
from tests.attacks.workers import worker_side


def differing(cases: list[Case]) -> int:
    """Measure each attack, and print those that do not come to what is expected: how many. Needs root."""
    if os.geteuid() != 0:
        sys.exit("run this as root: an ordinary user cannot try what a root worker does")
    wrong = 0
    with ExitStack() as stack:
        workers = {user: stack.enter_context(worker_side(user)) for user in USERS}
        for case in cases:
            result = measure(case, workers[case.user])
            if result.escaped != case.escapes:
                wrong += 1
                came = "escaped" if result.escaped else "held"
                print(f"{case.id}: expected {case.outcome}, {came}\n    {result.said[:600]}", flush=True)
    return wrong


def main(arguments: list[str]) -> int:
    """Measure, compare, write; the exit code is 1 if a cell differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="")
    parser.add_argument("--expected", action="store_true")
    parser.add_argument("--web", action="store_true")
    parser.add_argument("--agents", action="store_true")
    options = parser.parse_args(arguments)
    if options.web or options.agents:
        write = web_page.written if options.web else agent_table.written
        DOCUMENT.write_text(write(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    cases = [case for case in CASES if options.only in case.id]
    wrong = 0 if options.expected else differing(cases)
    if not options.expected:
        print(f"{len(cases)} cells, {wrong} differ; expected: {summary(cases)}")
    if wrong or options.only:
        return min(wrong, 1)
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
