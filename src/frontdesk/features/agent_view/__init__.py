"""The agent's view: a booking played step by step over REST and MCP, side by side."""

from frontdesk.feature import Feature

FEATURE = Feature(name="agent_view")
