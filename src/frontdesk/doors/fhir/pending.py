"""Appointments that features serve while they are not booked yet, such as held times. Their status is pending."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from frontdesk.doors.fhir.addresses import Resource
from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.resource_types import ListedOperation, ReadResource
from frontdesk.feature import features
from frontdesk.operations import Operation


class TypeOperation(NamedTuple):
    """A FHIR operation on the type Appointment."""

    listed: ListedOperation
    needs: Operation  # whose scope the caller needs
    run: Callable[[FhirRequest, object], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAppointments:
    """Those of a feature."""

    prefix: str  # of their ids; no booked appointment's begins with it
    operations: tuple[Operation, ...]  # that only this door calls
    type_operations: Mapping[str, TypeOperation] = field(default_factory=dict)  # by name, without the dollar sign
    read: ReadResource
    book: Callable[[FhirRequest, Resource], Awaitable[Reply]]
    cancel: Callable[[FhirRequest, str, Resource], Awaitable[Reply]]
    """Given the id and what the resource shall be. Any other change than to cancelled is refused."""
    cancel_by: Operation


@cache
def all_pending() -> tuple[PendingAppointments, ...]:
    return tuple(each for each in (feature.parts.pending_appointments for feature in features()) if each is not None)


@cache
def type_operations() -> Mapping[str, TypeOperation]:
    return {name: each for pending in all_pending() for name, each in pending.type_operations.items()}


def pending_with(resource_id: object) -> PendingAppointments | None:
    """Whose appointment has the id; None: it is no pending one."""
    if not isinstance(resource_id, str):
        return None
    return next((each for each in all_pending() if resource_id.startswith(each.prefix)), None)
