"""A coding agent without a model: a program that speaks the Agent Client Protocol, and does what a script says.

    python -I -S coding_agent.py SCRIPT

SCRIPT is JSON: `{"loads": true, "prompts": [[ACTION, ...], ...]}`, the actions for each request of a session, the last
list for all further ones; with `"continues": true` it continues the first one with the action that it was at. With
`"dies": METHOD` it dies when it has first answered that. What it receives is added to `log.jsonl` in its home, where
its sessions are kept, too. It imports nothing of ours and no library, as any program could be at the other end.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import Any

HOME = Path(os.environ["HOME"])
OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Cancelled(Exception):
    """The client has cancelled the turn."""


class Agent:
    """The agent's end of the connection."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.number = 0
        self.answers: dict[int, Queue[Any]] = {}
        self.cancelled = threading.Event()
        self.writing = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        with self.writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def request(self, method: str, params: dict[str, Any], of: str = "") -> Any:
        """Ask the client, and wait for its answer. `of`: what the log says of it."""
        number, queue = self.own(), Queue[Any]()
        self.answers[number] = queue
        self.send({"id": number, "method": method, "params": params})
        answer = queue.get()
        log({"answer": answer, "to": method, "of": of})
        return answer

    def update(self, session: str, what: str, **fields: Any) -> None:
        update = {"sessionUpdate": what, **fields}
        self.send({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.answers.pop(message["id"]).put(message.get("result", {"error": message.get("error")}))
                continue
            method, params = message["method"], message.get("params") or {}
            log({"method": method, "params": params, "pid": os.getpid()})
            if method == "session/cancel":
                self.cancelled.set()
            elif method == "session/prompt":
                threading.Thread(target=self.prompted, args=(message["id"], params), daemon=True).start()
            else:
                self.answer(message["id"], method, params)

    def answer(self, number: int, method: str, params: dict[str, Any]) -> None:
        loads = self.script.get("loads", True)
        if method == "initialize":
            resumes: dict[str, Any] = {"sessionCapabilities": {"resume": {}}} if self.script.get("resumes") else {}
            result: Any = {"protocolVersion": 1, "agentCapabilities": {"loadSession": loads, **resumes}}
        elif method == "session/new":
            if self.script.get("login"):
                return self.send({"id": number, "error": {"code": -32000, "message": "Authentication required"}})
            name = f"session-{len(list(HOME.glob('session-*'))) + 1}"
            keep(HOME / f"{name}.json", "0")
            result = {"sessionId": name}
        elif method == "session/resume":
            result = {}
        elif method == "session/load":
            self.update(params["sessionId"], "agent_message_chunk", content={"type": "text", "text": "of before"})
            result = {}
        else:
            return self.send({"id": number, "error": {"code": -32601, "message": "Method not found"}})
        self.send({"id": number, "result": result})
        if self.script.get("dies") == method and not (HOME / "died").exists():
            (HOME / "died").touch()
            os._exit(3)
        return None

    def prompted(self, number: int, params: dict[str, Any]) -> None:
        session = params["sessionId"]
        kept = HOME / f"{session}.json"
        count = int(kept.read_text())
        keep(kept, str(count + 1))
        prompts = self.script["prompts"]
        result: dict[str, Any] = {"stopReason": "end_turn"}
        at = HOME / f"{session}.at"
        try:
            if self.script.get("continues"):
                while (next_one := int(at.read_text()) if at.exists() else 0) < len(prompts[0]):
                    self.act(session, prompts[0][next_one], result)
                    keep(at, str(next_one + 1))
            else:
                for action in prompts[min(count, len(prompts) - 1)]:
                    self.act(session, action, result)
        except Cancelled:
            result = {"stopReason": "cancelled"}
        self.send({"id": number, "result": result})

    def act(self, session: str, action: dict[str, Any], result: dict[str, Any]) -> None:
        if self.cancelled.is_set():
            raise Cancelled
        if "together" in action:
            threads = [threading.Thread(target=self.act, args=(session, each, result)) for each in action["together"]]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        if "say" in action:
            self.update(session, "agent_message_chunk", content={"type": "text", "text": action["say"]})
        if "plan" in action:
            entries = [{"content": text, "priority": "medium", "status": status} for text, status in action["plan"]]
            self.update(session, "plan", entries=entries)
        if "make" in action:  # by itself, in its sandbox
            Path(action["make"]).write_text(action.get("content", ""))
        if "write" in action:
            place = {"sessionId": session, "path": self.path(action["write"])}
            self.request("fs/write_text_file", {**place, "content": action["content"]}, action["write"])
        if "read" in action:
            answer = self.request("fs/read_text_file", {"sessionId": session, "path": self.path(action["read"])})
            self.update(session, "agent_message_chunk", content={"type": "text", "text": answer.get("content", "?")})
        if "ask" in action:
            self.ask(session, action, result)
        if "call" in action:  # a tool of its own
            known = {"toolCallId": f"own-{self.own()}"}
            more = {"title": action["call"], "kind": action.get("kind", "execute"), "rawInput": {"x": action["call"]}}
            self.update(session, "tool_call", **known, **more, status="in_progress")
            self.update(session, "tool_call_update", **known, status=action.get("status", "completed"))
        if "tokens" in action:
            cost = {"amount": action["tokens"] / 1000, "currency": "USD"}
            self.update(session, "usage_update", used=action["tokens"], size=200_000, cost=cost)
        if "shell" in action:  # by itself, in its sandbox
            done = subprocess.run(["sh", "-c", action["shell"]], capture_output=True, text=True, check=False)
            self.say(session, f"{done.returncode}: {done.stdout}{done.stderr}\n")
        if "run" in action:
            self.run_command(session, action)
        if "reach" in action:  # by the proxy
            text = reached(action["reach"])
            self.update(session, "agent_message_chunk", content={"type": "text", "text": text})
        if "until" in action:
            while not Path(action["until"]).exists() and not self.cancelled.wait(0.02):
                pass
            if self.cancelled.is_set():
                raise Cancelled
        if "usage" in action:
            result["usage"] = action["usage"]
        if "stop" in action:
            result["stopReason"] = action["stop"]
        if "exit" in action:
            sys.stderr.write("it broke\n")
            sys.stderr.flush()
            os._exit(action["exit"])

    def run_command(self, session: str, action: dict[str, Any]) -> None:
        """Run a command in a terminal of the client's, and say how it has ended and what it has written."""
        more: dict[str, Any] = {
            name: action[name] for name in ("args", "cwd", "env", "outputByteLimit") if name in action
        }
        command = action["run"].replace("{unique}", os.urandom(8).hex())
        made = self.request("terminal/create", {"sessionId": session, "command": command, **more}, command)
        if self.cancelled.is_set():
            raise Cancelled
        if "terminalId" not in made:
            return self.say(session, f"not run: {made['error']['message']}")
        place = {"sessionId": session, "terminalId": made["terminalId"]}
        while action.get("shows", "") not in (shown := self.request("terminal/output", place))["output"]:
            self.cancelled.wait(0.1)
        if action.get("leave"):
            return self.say(session, f"it runs: {shown['output']}")
        if action.get("kill"):
            self.request("terminal/kill", place)
        end = self.request("terminal/wait_for_exit", place, made["terminalId"])
        shown = self.request("terminal/output", place)
        self.request("terminal/release", place)
        how = f"{end.get('exitCode')} {end.get('signal')}{' cut' * shown['truncated']}"
        return self.say(session, f"{how}: {shown['output']}")

    def own(self) -> int:
        with self.writing:
            self.number += 1
            return self.number

    def say(self, session: str, text: str) -> None:
        self.update(session, "agent_message_chunk", content={"type": "text", "text": text})

    def ask(self, session: str, action: dict[str, Any], result: dict[str, Any]) -> None:
        call = {"toolCallId": f"call-{self.own()}", "title": action["ask"], "kind": action.get("kind", "execute")}
        given = action.get("input", {"command": action["ask"]})
        self.update(session, "tool_call", **call, status="pending", rawInput=given)
        known, options = {"toolCallId": call["toolCallId"]}, action.get("options", OPTIONS)
        params = {"sessionId": session, "toolCall": known, "options": options}
        outcome = self.request("session/request_permission", params, action["ask"])["outcome"]
        if self.cancelled.is_set():
            raise Cancelled
        for each in action.get("yes" if outcome.get("optionId") == "yes" else "no", []):
            self.act(session, each, result)

    @staticmethod
    def path(name: str) -> str:
        return str(Path.cwd() / name)


def reached(host: str) -> str:
    """The first line that the proxy says about a host."""
    with socket.create_connection(("127.0.0.1", int(os.environ["HTTPS_PROXY"].rpartition(":")[2])), 10) as way:
        way.sendall(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
        return way.recv(4_096).decode().partition("\r\n")[0]


def keep(path: Path, text: str) -> None:
    """Write it whole or not at all, whenever this process is killed."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def log(entry: dict[str, Any]) -> None:
    with (HOME / "log.jsonl").open("ab", buffering=0) as file:
        file.write((json.dumps(entry) + "\n").encode())


if __name__ == "__main__":
    Agent(json.loads(Path(sys.argv[1]).read_text())).run()
