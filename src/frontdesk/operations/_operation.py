"""The definition of an operation, and the context it runs in."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple

from typing_extensions import TypeVar

from frontdesk.access.clients.caller import Caller
from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.cursors import Cursors
from frontdesk.domain.errors import Problem
from frontdesk.domain.slot_ids import SlotIds
from frontdesk.feature import Services
from frontdesk.operations._fields import Input
from frontdesk.operations._records import Record
from frontdesk.operations._slot_json import SlotJson
from frontdesk.systems.changes import Change
from frontdesk.systems.port import BookingSeen, Capability, SchedulingSystem


@dataclass(frozen=True, slots=True)
class Context:
    """What an operation may use. `subjects` collects the ids for the audit record."""

    caller: Caller
    system: SchedulingSystem
    now: datetime
    slot_ids: SlotIds
    slot_json: SlotJson
    cursors: Cursors
    supports: frozenset[str]  # names of the operations that the practice's system can perform
    services: Services  # of the features
    subjects: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A write: what to read aloud, and the change that the engine commits."""

    read_back: Mapping[str, object]
    change: Change
    patient_id: str | None = None  # the patient whose name a challenge adds to the read-back
    refusal: Callable[[BookingSeen], Problem | None] | None = None
    """Why a booking was refused by a statement that saw this; None: `run` has to look again."""
    conflicts: Mapping[str, str] = field(default_factory=dict)  # what its own reasons for a conflict mean


class Group(NamedTuple):
    """A group under which documents list operations."""

    name: str
    description: str


CAPABILITIES = Group("Capabilities", "What this token may do.")
PRACTICE = Group("Practice", "The practice that the token belongs to.")
LOCATIONS = Group("Locations", "Where the practice sees patients.")
PROVIDERS = Group("Providers", "Who sees them.")
VISIT_TYPES = Group("Visit types", "The kinds of visit, and the procedures under each.")
SLOTS = Group("Slots", "Open times: computed on request, never stored.")
PATIENTS = Group("Patients", "Finding people, and putting them on file.")
APPOINTMENTS = Group("Appointments", "Booking, moving, confirming and cancelling.")
EXTENSIONS = Group("extensions", "Beyond version 1 of the API, for tokens that hold the scopes of these operations.")


# Covariant, so that operations of any input fit in one list: `run` receives what was read as `input`.
Given = TypeVar("Given", bound=Input, default=Input, covariant=True)
Result = TypeVar("Result", bound=Mapping[str, object] | Proposal, default=Any, covariant=True)  # as `kind` says


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation(Generic[Given, Result]):
    """`run` answers a read with its body and a write with its proposal; its docstring is the public description."""

    name: str
    title: str
    audit: AuditSentence | None = None  # None: a read of nothing that is protected, which nothing records
    group: Group | None = None  # None: not published
    method: Literal["GET", "POST", "PATCH"] = "GET"
    path: str
    scope: str | None
    kind: Literal["read", "write"] = "read"
    creates: bool = False  # not idempotent: a second call creates a second record
    overwrites: bool = False  # the old value is lost
    input: type[Given]
    output: type[Record]
    run: Callable[[Context, Given], Awaitable[Result]]
    checked_at_commit: bool = False  # `run` need not read the calendar: the statement that commits it does
    needs: Capability | None = None  # None: every scheduling system can do it
    errors: tuple[str, ...] = ()  # codes in addition to those of every operation of its kind
    reads_phi: bool = False
    depends_on: Literal["directory", "calendar"] | None = None
    """The only data that the answer depends on besides arguments and time, which makes it cacheable: the practice's
    directory, or its directory and appointments. None: never cached."""
    example: Mapping[str, object] = field(default_factory=dict)  # a request that shows how it is used
    example_answer: Mapping[str, object] = field(default_factory=dict)
    example_read_back: Mapping[str, object] = field(default_factory=dict)  # of a write's challenge

    @property
    def success(self) -> int:
        """Creating answers 201, everything else 200."""
        return 201 if self.creates else 200

    @property
    def operation_id(self) -> str:
        head, *rest = self.name.split("_")
        return head + "".join(word.title() for word in rest)

    @property
    def description(self) -> str:
        return " ".join((self.run.__doc__ or "").split())


def unpublished(
    operation: Operation[Any, Any],  # of any input
    *,
    input: type[Given],  # noqa: A002
    run: Callable[[Context, Given], Awaitable[Result]],
    **changes: Any,  # fields, as for `replace`
) -> Operation[Given, Result]:
    """A variant that the FHIR door calls, with these fields changed."""
    return replace(operation, group=None, input=input, run=run, **changes)
