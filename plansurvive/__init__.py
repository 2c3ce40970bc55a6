"""The one name under which everything of ours is imported: `plansurvive.plans`, `plansurvive.client`, ...

In a checkout this folder holds links to the folders beside it, and modules are loaded from where the links lead: for
debuggers, tracebacks and coverage. A wheel has the folders themselves in here.
"""

import os

_HERE = os.path.dirname(os.path.realpath(__file__))
_LINK = os.path.join(_HERE, "plans")
if os.path.islink(_LINK) and os.readlink(_LINK) == "../plans":
    __path__.insert(0, os.path.dirname(_HERE))
