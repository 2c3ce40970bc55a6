"""References to secrets in `mcp.toml`, and what is refused because it looks like a secret itself.

`env:NAME` is a variable of the worker, `file:PATH` a file, relative to mcp.toml. Errors name the reference, never what
it leads to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.reference import what_it_leads_to

_SHAPES = re.compile(
    r"\b(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|npm_[A-Za-z0-9]{30,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.|Bearer\s+[A-Za-z0-9._~+/-]{12,})|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""Tokens that services mark as theirs."""
_OPTION = re.compile(r"^--?[a-z-]*(token|secret|password|passwd|api-?key|access-?key)[a-z-]*=.+", re.IGNORECASE)
_USERINFO = re.compile(r"^[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@", re.IGNORECASE)
_NAME = re.compile(r"(^|[_-])(token|secret|password|passwd|api_?key|access_?key|key|sig|signature)$", re.IGNORECASE)
_REMEDY = "looks like a secret; put it into a variable or a file, and name that by reference (env, token)"


def looks_secret(text: str) -> str:
    """Why an argument is refused: it looks like a secret. Empty if it does not."""
    return _REMEDY if _SHAPES.search(text) or _OPTION.match(text) or _USERINFO.match(text) else ""


def in_url(url: SplitResult) -> str:
    """Why a URL is refused: it carries a secret, which logs and errors would show. Empty if it does not."""
    if url.username is not None or url.password is not None:
        return "url: it contains a user name or password; use `token` or `oauth`"
    named = [name for name, value in parse_qsl(url.query, keep_blank_values=True) if _NAME.search(name) and value]
    if named or _SHAPES.search(url.geturl()):
        return f"url: {f'its parameter {named[0]!r}' if named else 'it'} looks like a secret; use `token` or `oauth`"
    return ""


def secret_of(reference: str, directory: Path, environ: Mapping[str, str] = os.environ) -> str:
    """What a reference leads to. Raises PlanError SECRET_MISSING."""
    try:
        return what_it_leads_to(reference, directory, environ)
    except ValueError as error:
        raise PlanError(f"mcp.toml: {error}", "SECRET_MISSING") from None
