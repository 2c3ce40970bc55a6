"""The keys of the review screen, as its hints and its help name them."""

from __future__ import annotations

REVIEW_KEYS = "b begin  c cancel  enter edit  E in $EDITOR  shift+up/down move  s skip  a add\nx remove  r regenerate  l log  ? help  q leave (the plan stays in review)"  # fmt: skip # noqa: E501
DECIDE_KEYS = "y approve  e with edits  n deny  w next  "
"""In front of those of a running plan while it awaits a decision."""
RUNNING_KEYS = "p pause  c cancel  enter edit  s skip\nshift+up/down move  a add  x remove  r regenerate  l log  ? help  q leave"  # fmt: skip # noqa: E501
ENDED_KEYS = "l log  ? help  q leave"
HELP = """\
up, down, or k, j, page keys   choose a step
enter      edit it in a form
E          edit all its fields in $VISUAL or $EDITOR, as JSON
shift+up, shift+down, or K, J   move it; it stays behind its dependencies
s          skip it, or undo the skip
a          add a step after it
x          remove it
r          have the LLM revise the steps that have not started, with your feedback
b          begin: end the review; the plan starts or continues
y, n       approve or deny a step awaiting approval, once all of it was shown; y answers a question
N          deny it, and say why
e          change the arguments of its call; y approves it so, once all of it was shown
A          approve it and all calls like it, as `always` says; a resumed run asks again
W          take back your own decision about it, until it starts
O          override: approve alone in place of all who must, with a reason, where a rule lets you
w          go to the next step awaiting approval or an answer
p, c       pause or unpause the plan; cancel it
l          change log
d, u       scroll the step's details down, up
q          leave; a plan in review stays there, a running plan continues

Marks: ☐ not started  ▸ running  ✓ completed  ✗ failed  – skipped  ? awaiting approval  ⚠ needs approval
"""
