"""Practices in the database: importing and exporting practice files, listing, suspending and resuming."""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import TypeVar

import orjson

from frontdesk.domain.directory import Directory, Location, Practice, Provider, VisitType
from frontdesk.domain.ids import new_patient_id
from frontdesk.domain.names import digits
from frontdesk.domain.patients import name_key
from frontdesk.domain.spelling import closest
from frontdesk.feature import Feature
from frontdesk.practice_file import PatientRecord, PracticeFile
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database, DatabaseUnavailable, set_practice
from frontdesk.store.directories import load_directory, lock_providers, save_directory
from frontdesk.store.notifications import notify
from frontdesk.store.rows import field_names, from_row, upsert_sql
from frontdesk.store.statistics import analyze_grown_tables

_ANALYZE_FROM_PATIENTS = 500  # fewer take up no more than a table that is never worth analyzing

T = TypeVar("T", Location, Provider, VisitType)
InTransaction = Callable[[Connection, int], Awaitable[None]]
"""Work in the same transaction as a change, given the connection and the practice's id."""


class PracticeChanged(Exception):
    """The practice was changed since it was read. Nothing was imported."""


@dataclass(frozen=True, slots=True)
class PracticeSummary:
    practice_id: int
    slug: str
    name: str
    time_zone: str
    scheduling_system: str
    sandbox: bool
    suspended: bool
    locations: int
    providers: int
    patients: int
    clients: int

    @property
    def removed(self) -> bool:
        return is_removed(self.slug)


def is_removed(slug: str) -> bool:
    """Whether the practice was removed and only its audit trail is left. `remove_practice` adds to the slug a character
    that no practice file can have."""
    return "~" in slug


def why_unusable(slug: str, known: Collection[str]) -> str:
    """A sentence on a practice that was removed, or does not exist."""
    if is_removed(slug) and slug in known:
        return f"{slug} was removed; only its audit trail is left."
    return f"There is no practice {slug!r}{closest(slug, [each for each in known if not is_removed(each)])}."


async def practice_id_of(database: Database, slug: str) -> int | None:
    found: int | None = await database.fetchval("SELECT practice_id FROM practice WHERE slug = $1", slug)
    return found


async def practice_ids(database: Database) -> dict[str, int]:
    """The ids of all practices by slug."""
    rows = await database.fetch("SELECT slug, practice_id FROM practice ORDER BY slug")
    return {row["slug"]: row["practice_id"] for row in rows}


async def practices_with_substring_match(database: Database) -> list[str]:
    """The slugs of those where any four digits of a phone number identify a patient, without suspended ones."""
    sql = "SELECT slug FROM practice WHERE phone_match = 'anywhere' AND NOT suspended ORDER BY slug"
    return [row["slug"] for row in await database.fetch(sql)]


async def practices_that_use(database: Database, feature: Feature) -> list[int]:
    """Those that are not suspended and have not switched the feature off."""
    rows = await database.fetch("SELECT practice_id, features FROM practice WHERE NOT suspended")
    return [row["practice_id"] for row in rows if feature.is_enabled(orjson.loads(row["features"]))]


async def import_practice(
    database: Database,
    file: PracticeFile,
    now: datetime,
    *,
    prune: bool = False,
    version: int | None = None,
    in_transaction: InTransaction | None = None,
) -> int:
    """Creates or updates a practice in one transaction and returns its id. Raises PracticeChanged if the practice no
    longer has the given version."""
    slug = file.directory.practice.slug
    async with database.transaction() as connection:
        practice_id, saved_version = await _save_practice(connection, file.directory.practice, now)
        if version is not None and saved_version != version + 1:
            raise PracticeChanged
        await set_practice(connection, practice_id)
        await lock_providers(connection, practice_id)
        await save_directory(connection, practice_id, file.directory, prune=prune)
        await save_patients(connection, practice_id, file.patients, now)
        if in_transaction is not None:
            await in_transaction(connection, practice_id)
        await notify(connection, "practice", slug)
    if len(file.patients) >= _ANALYZE_FROM_PATIENTS:
        with contextlib.suppress(DatabaseUnavailable):  # the import is committed, and housekeeping tries again
            await analyze_grown_tables(database)
    return practice_id


async def export_practice(database: Database, slug: str, *, with_patients: bool) -> PracticeFile | None:
    practice_id = await practice_id_of(database, slug)
    if practice_id is None:
        return None
    directory = active_only((await load_directory(database, practice_id)).directory)
    patients = await stored_patients(database, practice_id) if with_patients else ()
    return PracticeFile(directory, patients)


async def stored_patients(
    database: Database, practice_id: int, numbers: Collection[int] | None = None
) -> tuple[PatientRecord, ...]:
    """The patients of a practice by number, all or those with the given numbers."""
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(
            """SELECT * FROM patient WHERE practice_id = $1 AND ($2::integer[] IS NULL OR number = ANY ($2))
               ORDER BY number""",
            practice_id,
            None if numbers is None else list(numbers),
        )
    return tuple(from_row(PatientRecord, row) for row in rows)


async def stored_patient_ids(database: Database, practice_id: int, numbers: Collection[int] | None = None) -> list[str]:
    """The ids of the patients of a practice, all or those with the given numbers."""
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(
            """SELECT patient_id FROM patient WHERE practice_id = $1 AND ($2::integer[] IS NULL OR number = ANY ($2))
               ORDER BY number""",
            practice_id,
            None if numbers is None else list(numbers),
        )
    return [row["patient_id"] for row in rows]


async def list_practices(database: Database, slug: str | None = None) -> list[PracticeSummary]:
    rows = await database.fetch(
        """SELECT p.*, (SELECT count(*) FROM client c WHERE c.practice_id = p.practice_id) AS clients
           FROM practice p WHERE $1::text IS NULL OR p.slug = $1 ORDER BY p.slug""",
        slug,
    )
    found = []
    for row in rows:
        async with database.transaction(row["practice_id"]) as connection:
            counts = await connection.fetchrow(
                """SELECT (SELECT count(*) FROM location WHERE practice_id = $1 AND active) AS locations,
                          (SELECT count(*) FROM provider WHERE practice_id = $1 AND active) AS providers,
                          (SELECT count(*) FROM patient WHERE practice_id = $1) AS patients""",
                row["practice_id"],
            )
        assert counts is not None
        kind = orjson.loads(row["scheduling_system"])["kind"]
        found.append(from_row(PracticeSummary, row, scheduling_system=kind, **dict(counts)))
    return found


async def set_suspended(
    database: Database, slug: str, *, suspended: bool, in_transaction: InTransaction | None = None
) -> bool:
    """Suspends or resumes a practice on all nodes; False if there is no such practice."""
    async with database.transaction() as connection:
        found = await connection.fetchval(
            "UPDATE practice SET suspended = $2 WHERE slug = $1 RETURNING practice_id", slug, suspended
        )
        if in_transaction is not None and found is not None:
            await in_transaction(connection, found)
        await notify(connection, "practice", slug)
    return found is not None


async def remove_practice(connection: Connection, practice_id: int, in_transaction: InTransaction) -> str:
    """Deletes everything but the audit trail, with a login that owns the tables. Returns the slug under which that is
    kept."""
    async with connection.transaction():
        before = await connection.fetchval("SELECT slug FROM practice WHERE practice_id = $1", practice_id)
        kept_as: str = await connection.fetchval("SELECT remove_practice($1)", practice_id)
        await in_transaction(connection, practice_id)
        await notify(connection, "practice", before)
    return kept_as


async def _save_practice(connection: Connection, practice: Practice, now: datetime) -> tuple[int, int]:
    """The id and the new version."""
    values = {name: getattr(practice, name) for name in field_names(Practice) if name != "slug"}
    values["scheduling_system"] = orjson.dumps(dict(practice.scheduling_system)).decode()
    values["consent"] = orjson.dumps(dict(practice.consent)).decode()
    values["features"] = orjson.dumps(dict(practice.features)).decode()
    values["created_at"] = values["imported_at"] = now
    sql = upsert_sql("practice", ["slug"], [*values], created_at="practice.created_at", version="practice.version + 1")
    sql += " RETURNING practice_id, version"
    saved = await connection.fetchrow(sql, practice.slug, *values.values())
    assert saved is not None
    return saved["practice_id"], saved["version"]


async def save_patients(
    connection: Connection, practice_id: int, patients: Sequence[PatientRecord], now: datetime
) -> None:
    number, *others = field_names(PatientRecord)
    sql = upsert_sql(
        "patient",
        ("practice_id", number),
        (*others, "name_key", "phone_digits", "updated_at", "patient_id", "created_at"),
        patient_id="patient.patient_id",
        created_at="patient.created_at",
    )
    rows = [
        (
            practice_id,
            *astuple(each),
            name_key(each.first_name, each.last_name),
            digits(each.phone),
            now,
            new_patient_id(),
            now,
        )
        for each in patients
    ]
    # Writes of clients lock the counter before patients, too.
    await connection.execute(
        """INSERT INTO patient_counter (practice_id, last_number) VALUES ($1, $2)
           ON CONFLICT (practice_id) DO UPDATE SET last_number = greatest(patient_counter.last_number, $2)""",
        practice_id,
        max((patient.number for patient in patients), default=0),
    )
    await connection.executemany(sql, rows)


def active_only(directory: Directory) -> Directory:
    """The directory without inactive records."""

    def kept(records: Mapping[int, T]) -> dict[int, T]:
        return {key: record for key, record in records.items() if record.active}

    visit_types = {
        key: replace(visit_type, procedures=tuple(p for p in visit_type.procedures if p.active))
        for key, visit_type in kept(directory.visit_types).items()
    }
    return Directory(directory.practice, kept(directory.locations), kept(directory.providers), visit_types)
