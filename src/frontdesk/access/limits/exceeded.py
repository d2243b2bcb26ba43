"""The refusal of a call that would exceed a limit of its client."""

from typing import Literal, get_args

from frontdesk.domain.errors import Problem

ClientLimit = Literal[
    "patients_per_hour",
    "patients_per_day",
    "matches_of_person",
    "matches",
    "writes_per_hour",
    "upcoming_per_patient",
    "pending_approvals",
]
CLIENT_LIMITS: tuple[str, ...] = get_args(ClientLimit)


class LimitExceeded(Problem):
    """`limit` names it for metrics."""

    def __init__(self, limit: ClientLimit, detail: str, retry_after: int) -> None:
        super().__init__("rate_limited", detail, retry_after=retry_after)
        self.limit = limit
