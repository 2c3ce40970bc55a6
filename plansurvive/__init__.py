"""The one name under which everything of ours is imported, and the names that scripts, tools and tests of users need.

`from plansurvive import tool, PlansPlugin` loads what is named, and no more. All other modules (`plansurvive.plans`,
`plansurvive.client`, ...) may change with any release.

In a checkout this folder holds links to the folders beside it, and modules are loaded from where the links lead: for
debuggers, tracebacks and coverage. A wheel has the folders themselves in here.
"""

import os
from importlib import import_module

TYPE_CHECKING = False  # of `typing`, which takes longer to import than this
if TYPE_CHECKING:
    from plansurvive.activities.tools.tool import ToolContext, tool
    from plansurvive.client import runs
    from plansurvive.client.embedding.children import run_plan
    from plansurvive.client.embedding.plugin import PlansPlugin
    from plansurvive.client.requests.connected import connect
    from plansurvive.client.testing import PlanTester, fake, tool_context
    from plansurvive.plans.errors import PlanError, ToolError
    from plansurvive.plans.run import Options
    from plansurvive.runtime.settings import Settings

__all__ = [
    "Options", "PlanError", "PlanTester", "PlansPlugin", "Settings", "ToolContext", "ToolError", "connect", "fake",
    "run_plan", "runs", "tool", "tool_context",
]  # fmt: skip
_PLACES = {
    "activities.tools.tool": ("ToolContext", "tool"),
    "client.embedding.children": ("run_plan",),
    "client.embedding.plugin": ("PlansPlugin",),
    "client.requests.connected": ("connect",),
    "client.testing": ("PlanTester", "fake", "tool_context"),
    "plans.errors": ("PlanError", "ToolError"),
    "plans.run": ("Options",),
    "runtime.settings": ("Settings",),
}
_PLACE_OF = {name: f"{__name__}.{place}" for place, names in _PLACES.items() for name in names}

_HERE = os.path.dirname(os.path.realpath(__file__))
_LINK = os.path.join(_HERE, "plans")
if os.path.islink(_LINK) and os.readlink(_LINK) == "../plans":
    __path__.insert(0, os.path.dirname(_HERE))

if not TYPE_CHECKING:  # a type checker would take it to have any name

    def __getattr__(name: str) -> object:
        """A public name, once it is asked for."""
        if name == "runs":
            found: object = import_module(f"{__name__}.client.runs")
        elif name in _PLACE_OF:
            found = getattr(import_module(_PLACE_OF[name]), name)
        else:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """All names, those as well that have not been asked for."""
    return sorted({*globals(), *__all__})
