"""`plan withdraw`: take back a decision of one's own. Apart, as the rest of `plan policy` loads the policy."""

from __future__ import annotations

from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson, By, Comment, Id, Step
from plansurvive.client.cli.terminal.session import author
from plansurvive.client.ids import plan_id
from plansurvive.features.policy import verbs


def withdraw(plan: Id, step: Step, by: By = None, comment: Comment = "", as_json: AsJson = False) -> None:
    """Take back your decision on a step that has not started."""
    sentence = session.run(lambda here: verbs.withdraw(here.client, plan, step, by=author(by), comment=comment))
    if as_json:
        output.show_json({"planId": plan_id(plan), "stepId": step, "message": sentence})
    else:
        output.show(f"{plan_id(plan)}: {sentence}")
