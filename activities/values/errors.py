"""Maps exceptions to ToolError: a stable code and whether the call can be retried.

A tool's own `ToolError` keeps its code. Errors of the operating system get codes of plans/error_codes.py; anything else
is TOOL_FAILED and retryable. Messages are for people: of limited length, valid Unicode, without a stack trace.
"""

from __future__ import annotations

import errno

from plansurvive.activities.values.redaction import Secrets
from plansurvive.activities.workspace.paths import shown
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.runtime.errors import KeyMissing

MAX_MESSAGE_BYTES = 8_000

_SYSTEM = {
    errno.ENOENT: ("NOT_FOUND", False),
    errno.EEXIST: ("EXISTS", False),
    errno.EACCES: ("NO_PERMISSION", False),
    errno.EPERM: ("NO_PERMISSION", False),
    errno.EROFS: ("NO_PERMISSION", False),
    errno.ENOSPC: ("NO_SPACE", True),
    errno.EDQUOT: ("NO_SPACE", True),
    errno.EFBIG: ("NO_SPACE", True),
    errno.ENAMETOOLONG: ("PATH_INVALID", False),
    errno.ELOOP: ("PATH_OUTSIDE", False),
    errno.EISDIR: ("NOT_REGULAR", False),
    errno.ENOTDIR: ("NOT_REGULAR", False),
    errno.ENXIO: ("NOT_REGULAR", False),
}
"""Code by errno, and whether a retry may succeed."""


def tool_error(error: BaseException) -> ToolError:
    """The error as a ToolError with a bounded message."""
    if isinstance(error, ToolError):
        return ToolError(error.code, bounded(error.message), retryable=error.retryable, retry_after=error.retry_after)
    if isinstance(error, PlanError):
        return ToolError(error.code, bounded(error.message))
    if isinstance(error, OSError) and error.errno in _SYSTEM:
        code, retryable = _SYSTEM[error.errno]
        place = f": {shown(str(error.filename))}" if error.filename is not None else ""
        text = f"{error.strerror or type(error).__name__}{place}{_remedy(error) if code == 'NO_SPACE' else ''}"
        return ToolError(code, bounded(text), retryable=retryable)
    text = str(error)
    return ToolError(
        "TOOL_FAILED", bounded(f"{type(error).__name__}: {text}" if text else type(error).__name__), retryable=True
    )


def _remedy(error: OSError) -> str:
    """Where to free space: a path that is not absolute is in the workspace."""
    if error.filename is not None and not str(error.filename).startswith("/"):
        return "; free some space on the disk of the workspace"
    return "; free some space where it writes, in the workspace or PLANS_STATE_DIR"


def masked_error(error: Exception, secrets: Secrets) -> Exception:
    """The error, or one without secrets if its text has any: before it is cut, which could leave a part of one."""
    text = error.message if isinstance(error, PlanError) else str(error)
    if isinstance(error, KeyMissing) or not secrets.are_in(text):
        return error
    if isinstance(error, ToolError):
        found = tool_error(error)
        return ToolError(found.code, secrets.out_of(text), retryable=found.retryable, retry_after=found.retry_after)
    if isinstance(error, PlanError):
        return ToolError(error.code, secrets.out_of(text))
    return ToolError("TOOL_FAILED", f"{type(error).__name__}: {secrets.out_of(text)}", retryable=True)


def one_line(text: str) -> str:
    """The text on one line, unprintable characters replaced by spaces."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def bounded(text: str, limit: int = MAX_MESSAGE_BYTES) -> str:
    """The text as valid Unicode of at most `limit` bytes; the middle is cut out of longer text."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    mark = b" ...[cut]... "
    half = (limit - len(mark)) // 2
    return (data[:half] + mark + data[-half:]).decode("utf-8", "ignore")
