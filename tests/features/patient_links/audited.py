"""Actions that leave no audit record of their own, and those of which another one, which they call, leaves it."""

QUIET_ACTIONS = {"PatientLinks.of"}
RECORDED_BY: dict[str, str] = {}
