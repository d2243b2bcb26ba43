"""Base classes of errors; `problems` contains a class per error code. Messages contain no patient data."""

from collections.abc import Sequence

from frontdesk_client.records import FieldError


class FrontdeskError(Exception):
    """A failed call. Branch on the class or on `code`, never on the texts.

    A code that this version of the client does not know is raised as this class.
    """

    code = "unknown"

    def __init__(
        self,
        detail: str = "",
        *,
        code: str | None = None,
        status: int | None = None,
        errors: Sequence[FieldError] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        if code is not None:
            self.code = code
        self.status = status
        self.detail = detail
        self.errors = tuple(errors)
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        parts = [self.code if self.status is None else f"{self.code} ({self.status})", f": {self.detail}"]
        parts += [f" [{error.field}: {error.rule}]" for error in self.errors]
        if self.request_id is not None:
            parts.append(f" (request {self.request_id})")
        return "".join(parts)


class AnswerLost(FrontdeskError):
    """There was no readable response within the deadline.

    A write may have been executed. Call `proposal.confirm()` again: it executes once. Resend a write of the
    integration grant with the same `idempotency_key`.
    """

    code = "answer_lost"


class ExecutedAtOnce(RuntimeError):
    """There is no read-back: a write of the integration grant is executed immediately."""

    def __init__(self) -> None:
        super().__init__(
            "This write was executed at once, because the credentials are of the integration grant. "
            "Use credentials of the agent grant to ask before anything changes."
        )
