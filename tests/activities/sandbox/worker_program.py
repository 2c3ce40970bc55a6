"""A program that runs one command as a worker would: reads the order as JSON from its argument, prints how it ended."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from plansurvive.activities.sandbox.process import tried
from plansurvive.activities.sandbox.sandbox import Limits, Sandbox
from plansurvive.plans.errors import ToolError

SECONDS = 100.0


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Run the command of an order; a refusal is exit code 0 and its text."""
    limits = Limits(processes=order["processes"])
    sandbox = Sandbox(order["level"], limits=limits, state=Path(order["state"]), readable=tuple(order["readable"]))
    command, workspace = ["/bin/sh", "-c", order["command"]], order["workspace"]
    os.set_inheritable(os.open("/", os.O_RDONLY), True)  # what a careless library might leave open
    try:
        confined = sandbox.confine(command, workspace, workspace, order["protected"], order["env"])
        trace = Path(order["state"]).absolute().with_name("trace")
        ended = tried(replace(confined, trace=str(trace)), SECONDS)
    except ToolError as error:
        return {"code": 0, "stdout": "", "stderr": f"{error.code}: {error}"}
    texts = {name: getattr(ended, name).decode("utf-8", "replace") for name in ("stdout", "stderr")}
    return {"code": ended.returncode, **texts}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
