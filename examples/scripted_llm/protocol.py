"""The chat completions protocol: a reply of the script as the JSON, or the stream of events, an endpoint would send."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from examples.scripted_llm.script import ReplyScript, text_of

CREATED = 1_700_000_000
PIECE = 40
"""Characters of one event of a stream."""


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
    """The chunks of a streamed chat completion, without the last line."""
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
    """The body of an error."""
    kind = "invalid_request_error" if reply.status < 500 else "server_error"
    return {
        "error": {"message": reply.error or "scripted error", "type": kind, "param": None, "code": reply.code or None}
    }


def models(name: str) -> dict[str, Any]:
    """The body of the list of models."""
    return {"object": "list", "data": [{"id": name, "object": "model", "created": CREATED, "owned_by": "script"}]}


def _envelope(request: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-script", "object": kind, "created": CREATED, "model": request.get("model", "")}


def _content(reply: ReplyScript, request: dict[str, Any]) -> str | None:
    """The text said; `{{last_user}}` in it is the last message of the user."""
    text = reply.content
    if not text and reply.tool_calls:
        return None
    users = [text_of(message) for message in request.get("messages", []) if message.get("role") == "user"]
    said = users[-1] if users else ""
    quoted = json.dumps(said, ensure_ascii=False)[1:-1] if reply.json_value is not None else said
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
    asked = sum(len(text_of(message)) for message in request.get("messages", []))
    prompt = reply.usage.prompt if reply.usage else asked // 4
    said = reply.usage.completion if reply.usage else len(reply.content) // 4
    return {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}
