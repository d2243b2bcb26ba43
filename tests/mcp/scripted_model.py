"""A model's endpoint in this process: it calls the tool of a test once, is given the result, and says goodbye.

It speaks the Messages API of Anthropic and the chat completions of OpenAI, both as event streams.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

_CLOSING = "That was all."


@dataclass
class ScriptedModel:
    """`tool` is called where it is offered under a name that ends so; what the host answers is kept in `results`."""

    url: str
    tool: str
    arguments: Mapping[str, Any]
    offered: set[str] = field(default_factory=set)
    results: list[str] = field(default_factory=list)

    def offer(self, names: Sequence[str]) -> str | None:
        self.offered.update(names)
        return next((name for name in names if name.endswith(self.tool)), None)


@contextlib.asynccontextmanager
async def scripted_model(tool: str, **arguments: Any) -> AsyncIterator[ScriptedModel]:
    listener = socket.create_server(("127.0.0.1", 0))
    model = ScriptedModel(f"http://127.0.0.1:{listener.getsockname()[1]}", tool, arguments)

    async def messages(request: Request) -> Response:
        return _messages(model, await request.json())

    async def completions(request: Request) -> Response:
        return _completions(model, await request.json())

    async def nothing(_request: Request) -> Response:
        return JSONResponse({"type": "error", "error": {"type": "not_found_error", "message": "nothing here"}}, 404)

    app = Starlette(
        routes=[
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/v1/chat/completions", completions, methods=["POST"]),
            Route("/{rest:path}", nothing, methods=["GET", "POST", "HEAD"]),
        ]
    )
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", log_config=None))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield model
    finally:
        server.should_exit = True
        await serving


def _messages(model: ScriptedModel, asked: Mapping[str, Any]) -> Response:
    last = asked["messages"][-1]["content"]
    parts = last if isinstance(last, list) else []
    results = [part for part in parts if part.get("type") == "tool_result"]
    model.results.extend(json.dumps(part["content"]) for part in results)
    name = None if results else model.offer([each["name"] for each in asked.get("tools", ())])
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": _CLOSING}
    if name is not None:
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(model.arguments)}
    reason = "end_turn" if name is None else "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    if not asked.get("stream"):
        content = [{"type": "text", "text": _CLOSING}]
        return JSONResponse({**message, "content": content, "stop_reason": "end_turn"})
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    return Response(text, media_type="text/event-stream")


def _completions(model: ScriptedModel, asked: Mapping[str, Any]) -> Response:
    last = asked["messages"][-1]
    name = None
    if last["role"] == "tool":
        model.results.append(json.dumps(last["content"]))
    else:
        name = model.offer([each["function"]["name"] for each in asked.get("tools", ())])
    delta: dict[str, Any] = {"role": "assistant", "content": _CLOSING}
    if name is not None:
        function = {"name": name, "arguments": json.dumps(model.arguments)}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call]}
    shared = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": asked["model"]}
    reason = "stop" if name is None else "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    chunks = [
        {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
    ]
    text = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks)
    return Response(f"{text}data: [DONE]\n\n", media_type="text/event-stream")
