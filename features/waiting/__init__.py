"""What steps wait for besides a person's approval: the answer to a question (`ask`), and an event (`wait_for`).

answers: which answers count, and which are refused. events: what is kept of events, and which step an event is for.
steps: asks, waits, and settles. above, below: events between a plan and its child plans. What a question is, is of the
core (`plans.definition.questions`): it is shown as approvals are.
"""

REACHES_OUT = False
COMMANDS = {
    "answer": ("commands:answer", "Answer the question of a step, now or before it asks."),
    "event": ("commands:event", "Send an event to a plan, for the steps that wait for it."),
}
LISTED = {"answer": ("Decide", "withdraw"), "event": ("Decide", "answer")}
