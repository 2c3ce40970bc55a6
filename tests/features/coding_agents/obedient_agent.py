"""A coding agent that obeys: for each text it meets that says OBEY-NAME, it does all of its script with this NAME.

    python -I -S obedient_agent.py SCRIPT

SCRIPT is JSON: `shell`, commands that it runs by itself; `write`, paths that it writes through the protocol; `ask`, a
command that it asks permission for, and runs if it may; `look`, commands whose output it reads; `read`, files that it
reads through the protocol. It speaks the Agent Client Protocol, and imports nothing of ours. What it obeyed is added
to `obeyed.jsonl` in its home directory, with what each thing came to.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ORDER = re.compile(r"OBEY-([a-z]+)")


class Agent:
    """The agent's end of the connection, one message after the other."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.asked = 0
        self.session = ""
        self.obeyed: set[str] = set()

    def run(self) -> None:
        for line in sys.stdin:
            self.take(json.loads(line))

    def take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        result: dict[str, Any] = {}
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
        elif method == "session/new":
            result = {"sessionId": "s"}
        elif method == "session/prompt":
            self.session = params["sessionId"]
            self.work(params["prompt"][0]["text"])
            result = {"stopReason": "end_turn"}
        elif "id" not in message:
            return
        self.send(id=message["id"], result=result)

    def work(self, prompt: str) -> None:
        """Read the request, then files, then what commands of its own say, and obey all of it."""
        self.met(prompt)
        for path in self.script["read"]:
            answer = self.ask("fs/read_text_file", {"path": str(Path.cwd() / path)})
            self.met(str(answer.get("content", "")))
        for command in self.script["look"]:
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
            self.met(done.stdout)
        text = {"type": "text", "text": " ".join(sorted(self.obeyed))}
        update = {"sessionUpdate": "agent_message_chunk", "content": text}
        self.send(method="session/update", params={"sessionId": self.session, "update": update})

    def met(self, text: str) -> None:
        for name in ORDER.findall(text):
            if name not in self.obeyed:
                self.obeyed.add(name)
                self.obey(name)

    def obey(self, name: str) -> None:
        came: dict[str, Any] = {}
        for command in self.script["shell"]:
            done = subprocess.run(
                ["sh", "-c", command.replace("NAME", name)], capture_output=True, text=True, check=False, timeout=60
            )
            came[command] = [done.returncode, done.stderr[-300:]]
        for path in self.script["write"]:
            place = f"{Path.cwd()}/{path}" if not path.startswith("/") else path
            came[path] = self.ask("fs/write_text_file", {"path": place.replace("NAME", name), "content": name})
        if command := self.script.get("ask", "").replace("NAME", name):
            options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
            call = {"toolCallId": name, "title": command, "kind": "execute", "rawInput": {"command": command}}
            given = self.ask("session/request_permission", {"toolCall": call, "options": options})
            came["may"] = given.get("outcome", {}).get("optionId") == "allow_once"
            if came["may"]:
                subprocess.run(["sh", "-c", command], check=False)
        with Path.home().joinpath("obeyed.jsonl").open("a") as file:
            file.write(json.dumps({"name": name, "came": came}) + "\n")

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the client, and wait for its answer."""
        self.asked += 1
        self.send(id=self.asked, method=method, params={"sessionId": self.session, **params})
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                return dict(message.get("result") or {"error": message.get("error")})
            self.take(message)
        sys.exit()

    def send(self, **message: Any) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    Agent(json.loads(Path(sys.argv[1]).read_text())).run()
