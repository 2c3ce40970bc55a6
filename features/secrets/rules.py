"""What goes along with a call that names secrets: where it does."""

from __future__ import annotations

from plansurvive.features.secrets.model import NamedSecrets
from plansurvive.features.secrets.naming import SECRET
from plansurvive.features.secrets.permissions import places, places_of_agent
from plansurvive.plans.activity_io import Call
from plansurvive.plans.model import Step
from plansurvive.plans.model.opaque import scanned
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules
from plansurvive.plans.run.step_call import StepValues


def _extend(run: Run, step: Step, call: Call) -> NamedSecrets | None:  # noqa: ARG001
    """Looked for in the arguments as they are written: a value that is filled in names none."""
    spec, args = run.facts.tools[step.tool], run.args_of(step)
    if SECRET not in spec.withheld:
        return None
    if run.literal:
        named = places_of_agent(spec, args)
    else:
        named = [] if StepValues(run, (), step.id).means(SECRET) else places(scanned(step.tool, args))
    return NamedSecrets(places=named, literal=run.literal) if named else None


RULES = Rules("secrets", extend=_extend)
