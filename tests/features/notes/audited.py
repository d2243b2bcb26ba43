"""Actions that leave no audit record of their own, and those of which another one, which they call, leaves it."""

QUIET_ACTIONS = {"Notes.authors", "Notes.for_agents", "Notes.on_patients"}
RECORDED_BY: dict[str, str] = {}
