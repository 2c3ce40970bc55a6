"""What needs no asking, what a person decides, and what never happens: policy.toml, docs/policy.md."""

REACHES_OUT = True
ACTIVITIES = ("judge_call",)
COMMANDS = {
    "policy": ("commands:app", "Check policy.toml, try calls, report what came of them."),
    "withdraw": ("withdraw_command:withdraw", "Take back your decision on a step that has not started."),
}
LISTED = {"withdraw": ("Decide", "deny")}
