"""The chat completions protocol: converts a scripted reply to a response body or a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from examples.scripted_llm.script import ReplyScript, text_of

CREATED = 1_700_000_000
PIECE = 40
"""Characters per event of a stream."""


def completion(reply: ReplyScript, request: dict[str, Any]) -> dict[str, Any]:
    """The body of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": _content(reply, request)}
    if reply.refusal is not None:
        message |= {"content": None, "refusal": reply.refusal}
    if reply.tool_calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    return _envelope(request, "chat.completion") | {"choices": [choice], "usage": _usage(reply, request)}


def events(reply: ReplyScript, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks of a streamed chat completion, without the final `[DONE]`."""
    head = _envelope(request, "chat.completion.chunk")
    text = _content(reply, request) or ""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + PIECE]} for at in range(0, len(text), PIECE)]
    if reply.refusal is not None:
        deltas.append({"refusal": reply.refusal})
    if reply.tool_calls:
        deltas.append({"tool_calls": [{"index": n} | call for n, call in enumerate(_calls(reply))]})
    for delta in deltas:
        yield head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield head | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]}
    if (request.get("stream_options") or {}).get("include_usage"):
        yield head | {"choices": [], "usage": _usage(reply, request)}


def error(reply: ReplyScript) -> dict[str, Any]:
    """The body of an error response."""
    kind = "invalid_request_error" if reply.status < 500 else "server_error"
    return {
        "error": {"message": reply.error or "scripted error", "type": kind, "param": None, "code": reply.code or None}
    }


def models(name: str) -> dict[str, Any]:
    """The body of the model list."""
    return {"object": "list", "data": [{"id": name, "object": "model", "created": CREATED, "owned_by": "script"}]}


def _envelope(request: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-script", "object": kind, "created": CREATED, "model": request.get("model", "")}


def _content(reply: ReplyScript, request: dict[str, Any]) -> str | None:
    """The text of the reply; `{{last_user}}` in it is replaced by the user's last message."""
    text = reply.content
    if not text and reply.tool_calls:
        return None
    users = [text_of(message) for message in request.get("messages", []) if message.get("role") == "user"]
    last = users[-1] if users else ""
    quoted = json.dumps(last, ensure_ascii=False)[1:-1] if reply.json_value is not None else last
    return text.replace("{{last_user}}", quoted)


def _calls(reply: ReplyScript) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {
                "name": call.tool,
                "arguments": call.args if isinstance(call.args, str) else json.dumps(call.args),
            },
        }
        for number, call in enumerate(reply.tool_calls, 1)
    ]


def _finish(reply: ReplyScript) -> str:
    return reply.finish or ("tool_calls" if reply.tool_calls else "stop")


def _usage(reply: ReplyScript, request: dict[str, Any]) -> dict[str, int]:
    received = sum(len(text_of(message)) for message in request.get("messages", []))
    prompt = reply.usage.prompt if reply.usage else received // 4
    sent = reply.usage.completion if reply.usage else len(reply.content) // 4
    return {"prompt_tokens": prompt, "completion_tokens": sent, "total_tokens": prompt + sent}
