"""The agent's view: a booking played step by step over REST and MCP, side by side."""

from frontdesk.feature import Feature
from frontdesk.texts import N_

FEATURE = Feature(
    name="agent_view",
    title=N_("Agent's view"),
    about=N_("A page on which admins send the calls of an agent and see the answers."),
)
