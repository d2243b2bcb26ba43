"""Whether a FHIR server takes several requests in one, from what it said of itself and how it answers them."""

import logging
from collections import Counter
from typing import Literal

from frontdesk.systems.fhir.resources.elements import listed
from frontdesk.systems.fhir.transport.answers import Answer, batch_answers

Kind = Literal["reads", "updates"]
MAX_STRAY_REFUSALS = 3  # in a row; a proxy or an overloaded server answers one batch with an error, and takes the next
_NOT_ALLOWED = (405, 501)
_log = logging.getLogger(__name__)


class Batches:
    def __init__(self) -> None:
        self.are_offered = False
        self.refusals: Counter[Kind] = Counter()

    def offer(self, offered: bool) -> None:
        """What the server says of itself; what it refused before is asked again."""
        self.are_offered = offered
        self.refusals.clear()

    def takes(self, kind: Kind) -> bool:
        return self.are_offered and self.refusals[kind] < MAX_STRAY_REFUSALS

    def answers(self, kind: Kind, answer: Answer, number: int) -> list[Answer] | None:
        """The answers to the requests of a batch, or None if the server refused the batch as such."""
        found = batch_answers(answer.found, number)
        if found is not None:
            del self.refusals[kind]
            return found
        self.refusals[kind] += MAX_STRAY_REFUSALS if is_unknown(answer) else 1
        if not self.takes(kind):
            _log.warning("the scheduling system refuses batches", extra={"upstreamStatus": answer.status})
        return None


def is_unknown(answer: Answer) -> bool:
    """Whether the server says that it does not know batches, and so has executed nothing of this one."""
    if answer.is_foreign or not 400 <= answer.status < 600:
        return False
    issues = listed((answer.resource or {}).get("issue"))
    return answer.status in _NOT_ALLOWED or any(issue.get("code") == "not-supported" for issue in issues)
