"""The policy of this moment: read again when the file has changed, and told from one that cannot be read."""

from __future__ import annotations

import logging
import os

from plansurvive.features.policy.model import kept_as
from plansurvive.features.policy.policy_file import file_of, policy_of
from plansurvive.features.policy.rule import Policy
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.settings import SettingError, Settings

LOG = logging.getLogger(__name__)
UNREADABLE = "POLICY_UNREADABLE"


class Current:
    """What counts now. Looks at the file at each call; two calls may find different ones."""

    def __init__(self, settings: Settings) -> None:
        """Raises SettingError for a file that is broken, or that others may write."""
        self._settings, self._path = settings, str(file_of(settings))
        self._seen = self._look()
        self._policy, self._problem = policy_of(settings), ""
        self._keep()

    def now(self) -> tuple[Policy | None, str]:
        """The policy, or None; and why it cannot be read, if it cannot: then every call asks.

        The policy is then the last one that could be read: its people still decide, and what it denies stays denied.
        """
        seen = self._look()
        if seen != self._seen:
            self._read(seen)
        return self._policy, self._problem

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - at every call, and a Path costs more than the call
        except OSError:
            return None
        # The time of the last change of its status: also of its mode and owner.
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _read(self, seen: tuple[int, ...] | None) -> None:
        try:
            found, problem = policy_of(self._settings), ""
        except SettingError as error:
            found, problem = None, str(error)
        had_one = self._policy is not None or bool(self._problem)
        if found is None and not problem and had_one:  # whoever wants none any more starts the worker again
            problem = f"{self._path} is gone"
        if not problem:
            self._policy = found
        self._seen, self._problem = seen, problem
        self._keep()

    def _keep(self) -> None:
        """Keep the text: audit records name its hash, and prove by it what its rules were."""
        if self._policy is None:
            return
        path = self._settings.state_dir / kept_as(self._policy.hash)
        try:
            if not path.exists():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_whole(path, self._policy.text.encode(), ".policy-")
        except OSError as error:
            LOG.warning("the text of the policy could not be kept for audit records in %s: %s", path, error)
