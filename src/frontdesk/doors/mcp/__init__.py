"""The MCP door: the operations as tools of the Model Context Protocol, over stateless streamable HTTP."""

from frontdesk.doors.mcp.door import PATH, McpDoor

__all__ = ["PATH", "McpDoor"]
