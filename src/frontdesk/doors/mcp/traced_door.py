"""An MCP door that continues the trace named in the `_meta` of a tool call."""

from frontdesk.doors.mcp.door import McpDoor, McpRequest, Reply
from frontdesk.doors.mcp.messages import Message
from frontdesk.operations import Operation
from frontdesk.tracing import Tracing
from frontdesk.web.http_request import Receive, Send

_KEYS = ("traceparent", "tracestate")


def traced_mcp_door(tracing: Tracing) -> type[McpDoor]:
    class TracedMcpDoor(McpDoor):
        async def _call_tool(
            self, request: McpRequest, operation: Operation, message: Message, receive: Receive, send: Send
        ) -> Reply:
            meta = message.params.get("_meta") or {}
            given = {key: meta[key] for key in _KEYS if isinstance(meta.get(key), str)}
            with tracing.continuing(f"tools/call {operation.name}", given, {"mcp.method.name": "tools/call"}):
                return await super()._call_tool(request, operation, message, receive, send)

    return TracedMcpDoor
