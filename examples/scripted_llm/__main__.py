"""`python -m examples.scripted_llm SCRIPT.yaml --port 0`: serves a script until stopped. Exit code 2: bad script."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from examples.scripted_llm.script import Script, ScriptError
from examples.scripted_llm.server import ScriptedLlm


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.scripted_llm", description=__doc__)
    parser.add_argument("script", type=Path, help="a YAML or JSON file")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0: any free port")
    flags = parser.parse_args()
    try:
        script = Script.read(flags.script)
        server = ScriptedLlm(script, flags.port)
    except (ScriptError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with server:
        print(f"OPENAI_BASE_URL={server.url}", flush=True)
        print(f"PLANS_MODEL={script.model or 'scripted'}", flush=True)
        stopped.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
