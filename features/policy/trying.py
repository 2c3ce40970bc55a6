"""What a policy makes of a call that nobody makes: for `plan policy test`, and for the form on the page `/policy`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plansurvive.features.policy.judging import Asker, Judged, Verdict, judge
from plansurvive.features.policy.model import Term
from plansurvive.features.policy.policy_file import terms_of
from plansurvive.features.policy.resolving import command_of, path_arguments, real_path
from plansurvive.features.policy.rule import Policy
from plansurvive.plans.definition.foreign_names import no_tool
from plansurvive.plans.definition.plain_words import json_problem
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import ToolSpec


@dataclass(frozen=True)
class Tried:
    """What would come of the call, and whom the rules want that ask."""

    verdict: Verdict
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Trial:
    """A call as a person writes it."""

    tool: str
    args: str
    """A JSON object."""
    starter: str = ""
    """Who has started the plan, proven; empty: that is not said."""

    def under(self, policy: Policy | None, tools: Mapping[str, ToolSpec], root: str) -> Tried:
        """What the policy says of it in the directory `root`. Raises PlanError BAD_USAGE."""
        spec = tools.get(self.tool)
        if spec is None:
            raise PlanError(no_tool(self.tool, tools), "BAD_USAGE")
        asker = Asker(starter=self.starter, is_proven=bool(self.starter), origin="person")
        args = _object(self.args)
        if policy is None:
            return Tried(Verdict("", (), "there is no policy"))
        paths = {name: real_path(root, args[name]) for name in path_arguments(spec, args)}
        found = judge(policy, Judged(spec.name, args, command_of(spec), paths, asker=asker))
        terms = terms_of(policy, found.rules) if found.decide == "ask" else None
        return Tried(found, tuple(each for each in terms.rules if each.demands) if terms else ())


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PlanError(f"--args: {json_problem(error)}", "BAD_USAGE") from None
    if not isinstance(found, dict):
        raise PlanError('--args: write an object, such as {"path": "docs/a.md"}', "BAD_USAGE")
    return found
