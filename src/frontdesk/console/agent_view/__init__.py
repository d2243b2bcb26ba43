"""The agent's view: a booking played step by step over REST and MCP, side by side."""
