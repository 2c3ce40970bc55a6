"""Fixture resources and prompts of the suite, and the requests about them that our server has no use for itself."""

from __future__ import annotations

import base64
import json
from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    PromptReference,
    ResourceTemplateReference,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)

IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
Asked = ServerRequestContext[Any, Any]


def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


def static_binary() -> bytes:
    """A picture."""
    return base64.b64decode(IMAGE)


def watched() -> str:
    """Something to subscribe to."""
    return "Watched resource content"


def of_template(id: str) -> str:
    """A resource per id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _text(text: str) -> UserMessage:
    return UserMessage(role="user", content=TextContent(text=text))


def simple_prompt() -> list[UserMessage]:
    """A prompt."""
    return [_text("This is a simple prompt for testing.")]


def prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    """A prompt with arguments."""
    return [_text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]


def prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803
    """A prompt with a resource."""
    found = TextResourceContents(uri=resourceUri, mime_type="text/plain", text="Embedded resource content for testing.")
    return [UserMessage(role="user", content=EmbeddedResource(resource=found)), _text("Process it.")]


def prompt_with_image() -> list[UserMessage]:
    """A prompt with a picture."""
    return [UserMessage(role="user", content=ImageContent(data=IMAGE, mime_type="image/png")), _text("Look at it.")]


async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion:
    """No proposals."""
    del ref, argument, context
    return Completion(values=[], total=0, has_more=False)


async def _set_level(ctx: Asked, params: SetLevelRequestParams) -> EmptyResult:
    del ctx, params
    return EmptyResult()


async def _subscribe(ctx: Asked, params: SubscribeRequestParams) -> EmptyResult:
    del ctx, params
    return EmptyResult()


async def _unsubscribe(ctx: Asked, params: UnsubscribeRequestParams) -> EmptyResult:
    del ctx, params
    return EmptyResult()


def register(server: MCPServer[Any]) -> None:
    """Add the fixtures."""
    server.resource("test://static-text")(static_text)
    server.resource("test://static-binary")(static_binary)
    server.resource("test://watched-resource")(watched)
    server.resource("test://template/{id}/data")(of_template)
    for each in (simple_prompt, prompt_with_arguments, prompt_with_embedded_resource, prompt_with_image):
        server.prompt(name=f"test_{each.__name__}")(each)
    server.completion()(complete)  # type: ignore[no-untyped-call]


def register_requests(server: MCPServer[Any]) -> None:
    """Add the requests of earlier versions, once the server has its transport."""
    app = server.session_manager.app
    app.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)
    app.add_request_handler("resources/subscribe", SubscribeRequestParams, _subscribe)
    app.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, _unsubscribe)
