"""What the console can do: the operations on behalf of a staff member, and the actions beyond them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from frontdesk.access.assistants.applications import Applications
from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.access.keys.ring import KeyRing
from frontdesk.desk.appointments import Appointments
from frontdesk.desk.arrivals import Arrivals
from frontdesk.desk.assistants import Assistants
from frontdesk.desk.audit import AuditRecords
from frontdesk.desk.blocks import Blocks
from frontdesk.desk.calendar import Calendar
from frontdesk.desk.calendar_preferences import Preferences
from frontdesk.desk.checklist import Checklist
from frontdesk.desk.clients import Clients
from frontdesk.desk.confirmations import Confirmations
from frontdesk.desk.context import ActionContext
from frontdesk.desk.health import SystemHealth
from frontdesk.desk.live_updates import LiveCalendars
from frontdesk.desk.month import Months
from frontdesk.desk.overrides import Overrides
from frontdesk.desk.patient_reads import PatientReads
from frontdesk.desk.patients import Patients
from frontdesk.desk.practice_files import PracticeFiles
from frontdesk.desk.reports import Reports
from frontdesk.desk.staff import Staff
from frontdesk.desk.usage import Usage
from frontdesk.desk.webhooks import Webhooks
from frontdesk.domain.errors import Problem
from frontdesk.engine.execute import Engine
from frontdesk.operations import BY_NAME
from frontdesk.outbound.webhooks.sender import Sender
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.systems.port import SystemUnavailable
from frontdesk.texts import N_

_MAY_BE_SAVED = N_("The connection to the database was lost. Check whether the change was saved before you try again.")


@dataclass(frozen=True, slots=True)
class Desk:
    engine: Engine
    calendar: Calendar
    months: Months
    preferences: Preferences
    appointments: Appointments
    arrivals: Arrivals
    overrides: Overrides
    patients: Patients
    patient_reads: PatientReads
    blocks: Blocks
    live: LiveCalendars
    assistants: Assistants
    clients: Clients
    usage: Usage
    reports: Reports
    confirmations: Confirmations
    audit: AuditRecords
    practice_file: PracticeFiles
    checklist: Checklist
    health: SystemHealth
    webhooks: Webhooks
    staff: Staff

    async def run(
        self, context: ActionContext, name: str, arguments: Mapping[str, object], *, idempotency_key: str | None = None
    ) -> Mapping[str, object]:
        """Runs an operation and returns the body of its answer. Writes with the same key execute once."""
        call = context.call(BY_NAME[name], arguments, idempotency_key)
        return (await self.engine.execute(call)).body


def build_desk(
    *,
    engine: Engine,
    database: Database,
    cipher: KeyCipher,
    ring: KeyRing,
    applications: Applications,
    public_url: str,
    webhook_sender: Sender,
    health: SystemHealth,
    on_calendar_change: Callable[[int], None],
) -> Desk:
    appointments = Appointments(database, engine)
    return Desk(
        engine=engine,
        calendar=Calendar(database, engine.systems),
        months=Months(database, engine.systems),
        preferences=Preferences(database),
        appointments=appointments,
        arrivals=Arrivals(database, engine.systems, appointments),
        overrides=Overrides(engine, appointments),
        patients=Patients(database, engine.systems),
        patient_reads=PatientReads(database),
        blocks=Blocks(database, engine.systems, on_calendar_change),
        live=LiveCalendars(),
        assistants=Assistants(database, applications),
        clients=Clients(database, ring),
        usage=Usage(database),
        reports=Reports(database, engine.systems),
        confirmations=Confirmations(database),
        audit=AuditRecords(database, ring, engine.systems, engine.clock),
        practice_file=PracticeFiles(database, engine.systems),
        checklist=Checklist(database),
        health=health,
        webhooks=Webhooks(database, cipher, webhook_sender),
        staff=Staff(database, public_url),
    )


@contextmanager
def outages_as_problems() -> Iterator[None]:
    """Turns an outage of the database or the scheduling system into the Problem that a page shows."""
    try:
        yield
    except SystemUnavailable as error:
        raise Problem("upstream_unavailable", error.detail, retry_after=error.retry_after) from error
    except DatabaseUnavailable as error:
        raise Problem("upstream_unavailable", retry_after=2) from error
    except OutcomeUnknown as error:
        raise Problem("upstream_unavailable", _MAY_BE_SAVED) from error
