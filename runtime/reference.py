"""What a reference in a file of the operator leads to: `env:NAME` is a variable, `file:PATH` a file.

Errors name the reference, never what it leads to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from plansurvive.runtime.home_paths import home_path

MAX_BYTES = 65_536
"""Maximum length of what a reference leads to."""


def what_it_leads_to(reference: str, directory: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The text, without white space around it. `directory`: of the file that has the reference. Raises ValueError."""
    kind, _, name = reference.partition(":")
    if kind == "env":
        if not (text := environ.get(name, "").strip()):
            raise ValueError(f"the variable {name} is not set; set it, and start the worker again")
        return text
    path = directory / home_path(name)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8").strip()
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
        raise ValueError(f"{path} cannot be read ({type(error).__name__}); make it readable for the worker") from None
    if not text or len(data) > MAX_BYTES or "\0" in text:
        raise ValueError(f"{path} holds no secret: it is empty, binary, or longer than {MAX_BYTES:,} bytes")
    return text
