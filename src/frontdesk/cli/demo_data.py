"""Imports the demo practice once, with a calendar around today, two clients and a staff member.

Changes made to it stay. The calendar is filled again when it has run out; closures and time off move along unless the
directory was edited.
"""

import contextlib
import os
import tempfile
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

import orjson

from frontdesk.access.clients.records import add_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.clients.secrets import authenticate
from frontdesk.access.keys.ring import KeyRing
from frontdesk.access.staff.members import StaffError, add_staff, show_staff
from frontdesk.audit.trail import append_audit
from frontdesk.cli.connection import CommandContext, Progress, prepare_data_dir
from frontdesk.demo import TIME_ZONE, demo_practice
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import zone
from frontdesk.store.connection import Connection
from frontdesk.store.practices import export_practice, import_practice, practice_id_of
from frontdesk.systems.native.demo_calendar import count_ahead, fill_calendar

SLUG = "demo"
CREDENTIALS_FILE = "demo-credentials.json"

_MIN_UPCOMING = 20
_LOCK = 0x64656D6F  # an arbitrary lock id: "demo"


@dataclass(frozen=True, slots=True)
class DemoCredentials:
    client_id: str
    client_secret: str


@dataclass(frozen=True, slots=True)
class Demo:
    agent: DemoCredentials
    integration: DemoCredentials
    staff_id: str
    """Who signs in to the demo's console."""
    placed_on: date
    """The day around which its closures and absences lie."""

    def document(self) -> dict[str, object]:
        return {
            kind: {"clientId": client.client_id, "clientSecret": client.client_secret}
            for kind, client in (("agent", self.agent), ("integration", self.integration))
        }


async def prepare_demo(context: CommandContext, ring: KeyRing, now: datetime, progress: Progress) -> Demo:
    """Bring the demo practice up to date, under a lock."""
    prepare_data_dir(context.settings.data_dir)  # with an external database nothing else may have needed it
    path = context.settings.data_dir / CREDENTIALS_FILE
    async with context.database.transaction() as connection:
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        known = _read(path)
        demo = Demo(
            placed_on=await _prepare_practice(context, known, now, progress),
            agent=await _client(context, ring, "agent", known.agent if known else None),
            integration=await _client(context, ring, "integration", known.integration if known else None),
            staff_id=await _staff_member(context, known.staff_id if known else None),
        )
        if demo != known:
            _write(path, demo)
    return demo


async def _prepare_practice(context: CommandContext, known: Demo | None, now: datetime, progress: Progress) -> date:
    """Import the directory; returns the day that it was generated for."""

    async def record(connection: Connection, practice_id: int) -> None:
        await append_audit(connection, context.audit.entry(practice_id, "console.import_practice_file"))

    database, today = context.database, now.astimezone(zone(TIME_ZONE)).date()
    practice_id = await practice_id_of(database, SLUG)
    if practice_id is None:
        progress("Importing the demo practice")
        file = demo_practice(today)
        practice_id = await import_practice(database, file, now, in_transaction=record)
        await fill_calendar(database, practice_id, file, now, past=True)
        return today
    if known is None or await count_ahead(database, practice_id, now) >= _MIN_UPCOMING:
        return today if known is None else known.placed_on
    progress("Filling the demo practice's calendar")
    placed_on = known.placed_on
    stored = await export_practice(database, SLUG, with_patients=True)
    assert stored is not None
    if stored.directory == demo_practice(placed_on).directory:
        await import_practice(database, replace(demo_practice(today), patients=()), now, in_transaction=record)
        stored, placed_on = replace(stored, directory=demo_practice(today).directory), today
    await fill_calendar(database, practice_id, stored, now)
    return placed_on


async def _client(context: CommandContext, ring: KeyRing, grant: str, known: DemoCredentials | None) -> DemoCredentials:
    """The stored credentials if they still work, else those of a new client."""
    if known is not None:
        try:
            await authenticate(context.database, ring, known.client_id, known.client_secret)
            return known
        except Problem as problem:
            if problem.code == "forbidden_tenant":
                return known  # suspended: the credentials are still right
    client, secret = await add_client(
        context.database,
        ring,
        practice=SLUG,
        name=f"Demo {grant}",
        grant=grant,
        scopes=SCOPES,
        recorder=context.audit.recorder("console.add_client"),
    )
    return DemoCredentials(client.client_id, secret)


async def _staff_member(context: CommandContext, known: str | None) -> str:
    """The earlier staff member if they may still sign in, or a new one."""
    if known is not None:
        with contextlib.suppress(StaffError):
            if not (await show_staff(context.database, known)).disabled:
                return known
    added = await add_staff(context.database, practice=SLUG, name="Demo admin", role="admin", audit=context.audit)
    return added.staff_id


def _read(path: Path) -> Demo | None:
    try:
        stored = orjson.loads(path.read_bytes())
        agent, integration = (
            DemoCredentials(stored[grant]["clientId"], stored[grant]["clientSecret"])
            for grant in ("agent", "integration")
        )
        return Demo(agent, integration, stored["staffId"], date.fromisoformat(stored["placedOn"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, demo: Demo) -> None:
    """Write the file atomically with mode 0600."""
    descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            document = {**demo.document(), "staffId": demo.staff_id, "placedOn": demo.placed_on}
            file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        Path(made).replace(path)
    finally:
        Path(made).unlink(missing_ok=True)
