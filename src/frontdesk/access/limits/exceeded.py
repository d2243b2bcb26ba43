"""The refusal of a call that would exceed a limit on patients."""

from typing import Literal, get_args

from frontdesk.domain.errors import Problem

PatientLimit = Literal["patients_per_hour", "patients_per_day", "matches_of_person", "matches"]
PATIENT_LIMITS: tuple[str, ...] = get_args(PatientLimit)


class LimitExceeded(Problem):
    """`limit` names it for metrics."""

    def __init__(self, limit: PatientLimit, detail: str, retry_after: int) -> None:
        super().__init__("rate_limited", detail, retry_after=retry_after)
        self.limit = limit
