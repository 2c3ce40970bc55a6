"""Which directory a workspace is: the thing behind its path, so that what was approved for it is done there only.

A path can be made to lead elsewhere: by a link, a rename, a restored backup. The inode and the time of birth stay with
the directory through restarts of machine and container; the number of its device is certain only while the worker's
mounts stay as they are.
"""

from __future__ import annotations

import shlex

from pydantic import Field

from plansurvive.plans.model import Value
from plansurvive.plans.text.safe_text import line

MOVED = "WORKSPACE_MOVED"
"""Code of a step or plan whose workspace is another directory than the one that was checked."""


class DirectoryIdentity(Value):
    """A directory as a worker found it under a path."""

    path: str = Field(description="Its real path.")
    inode: int
    born: str = Field(default="", description="Time of birth in seconds; empty: its file system keeps none.")
    device: int = Field(default=0, description="Device number; to be compared where `mounts` is the same.")
    mounts: str = Field(default="", description="The boot and the set of mounts that the worker saw it in.")

    def is_same(self, other: DirectoryIdentity) -> bool:
        """Whether both are one directory, whatever their paths."""
        if (self.inode, self.born) != (other.inode, other.born):
            return False
        return self.mounts != other.mounts or self.device == other.device


def moved_text(path: str, plan_id: str) -> str:
    """What somebody reads whose plan met another directory, with the way out."""
    place = shlex.quote(line(path))
    return (
        f"the workspace {place} is another directory than when the plan was checked: it was renamed, restored, or"
        f" replaced by a link. Put it back and continue with `plan resume {plan_id}`; to continue in the present"
        f" directory: `plan resume {plan_id} --workspace {place}`"
    )
