"""Actions that leave no audit record of their own, and those of which another one, which they call, leaves it."""

QUIET_ACTIONS = {
    "CalendarFeeds.read",  # not of staff; its disclosures are recorded by append_disclosure
    "Feeds.all",
}
RECORDED_BY: dict[str, str] = {}
