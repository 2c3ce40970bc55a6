"""A coding agent without a model, for make_shop.sh: it knows the answer to each issue, and what to say of each answer.

    python3 scripted_agent.py write|review

It speaks the Agent Client Protocol on standard input and output, one JSON-RPC message a line, and needs no library. One
answer is worse than it could be, and one change is tested first, which asks a person.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

ANSWERS = {
    7: (
        "prices.py",
        "    result = prices[0]\n    for price in prices[1:]:\n        result += price\n    return result\n",
        "    return sum(prices)\n",
    ),
    8: ("prices.py", "price * percent // 100\n\n\ndef disc", "(price * percent + 50) // 100\n\n\ndef disc"),
    9: ("customers.py", "name.lower() == other.lower()", "name.strip().lower() == other.strip().lower()"),
    12: ("prices.py", "return price - price * percent // 100", "return max(price - price * percent // 100, 0)"),
}
ASKS_FIRST = 8
REVIEWS = {
    7: {"approve": True, "remark": "sum() does it."},
    8: {"approve": True, "remark": "Rounds half up."},
    9: {"approve": True, "remark": "Blanks at both ends no longer count."},
    12: {"approve": False, "remark": "A discount of 120 percent gives 0 instead of an error."},
}


class Agent:
    """The agent's end of the connection, one message after the other."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.asked = 0
        self.cancelled = False

    def run(self) -> None:
        for line in sys.stdin:
            self.take(json.loads(line))

    def take(self, message: dict[str, Any]) -> None:
        """Do what the client asks for, and answer."""
        method, params = message.get("method"), message.get("params") or {}
        result: dict[str, Any] = {}
        if method == "session/cancel":
            self.cancelled = True
            return
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
        elif method == "session/new":
            result = {"sessionId": str(uuid.uuid4())}
        elif method == "session/prompt":
            self.cancelled = False
            self.work(params["sessionId"], params["prompt"][0]["text"])
            used = {"inputTokens": 1200, "outputTokens": 80, "totalTokens": 1280}
            result = {"stopReason": "cancelled"} if self.cancelled else {"stopReason": "end_turn", "usage": used}
        self.send(id=message["id"], result=result)

    def work(self, session: str, prompt: str) -> None:
        """Answer a request. It is kept, so that another process of this program can continue the session."""
        kept = Path.home() / f"{session}.txt"
        if prompt.startswith("Continue "):
            prompt = kept.read_text()
        kept.write_text(prompt)
        found = re.search(r"#(\d+)", prompt)
        number = int(found[1]) if found else 0
        if self.role == "review":
            self.say(session, json.dumps({"issue": number, **REVIEWS[number]}))
            return
        name, old, new = ANSWERS[number]
        path = {"sessionId": session, "path": str(Path.cwd() / name)}
        text = self.ask("fs/read_text_file", path).get("content", "")
        if number == ASKS_FIRST and not self.may(session, "python3 -m unittest"):
            return
        self.ask("fs/write_text_file", {**path, "content": text.replace(old, new)})
        self.update(session, "usage_update", used=1280, size=200_000, cost={"amount": 0.02, "currency": "USD"})
        self.say(session, f"Changed {name} for #{number}.")

    def may(self, session: str, command: str) -> bool:
        """Ask whether a command may run. It is not run here: the plan runs the tests."""
        call = {"toolCallId": "test", "title": command, "kind": "execute", "rawInput": {"command": command}}
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
        given = self.ask("session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
        return given.get("outcome", {}).get("optionId") == "allow_once" and not self.cancelled

    def say(self, session: str, text: str) -> None:
        self.update(session, "agent_message_chunk", content={"type": "text", "text": text})

    def update(self, session: str, what: str, **fields: Any) -> None:
        self.send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": what, **fields}})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the client, and wait for its answer; what it asks meanwhile is done first."""
        self.asked += 1
        self.send(id=self.asked, method=method, params=params)
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                return dict(message.get("result") or {})
            self.take(message)
        sys.exit()

    def send(self, **message: Any) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    Agent(sys.argv[1]).run()
