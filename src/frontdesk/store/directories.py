"""Loads, caches and saves the directories of practices."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from weakref import WeakValueDictionary

import orjson

from frontdesk.cache import BoundedCache
from frontdesk.domain.directory import (
    Closure,
    Directory,
    Location,
    OpeningHours,
    Practice,
    Procedure,
    Provider,
    TimeOff,
    VisitType,
)
from frontdesk.store.database import Database

MOST_PROVIDERS = 10_000  # over all practices; with their share of everything else about two kilobytes each


@dataclass(frozen=True, slots=True)
class StoredDirectory:
    version: int
    directory: Directory


class DirectoryCache:
    """Caches directories by practice. Concurrent callers share one load."""

    def __init__(self, database: Database, most_providers: int = MOST_PROVIDERS) -> None:
        self._database = database
        self._cached: BoundedCache[int, StoredDirectory] = BoundedCache(most_providers)
        self._loading: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def at(self, practice_id: int, version: int | None) -> StoredDirectory:
        """The directory at this version or a newer one; None accepts any cached version."""
        cached = self._cached.get(practice_id)
        if cached is not None and (version is None or cached.version >= version):
            return cached
        async with self._loading.setdefault(practice_id, asyncio.Lock()):
            cached = self._cached.get(practice_id)
            if cached is None or (version is not None and cached.version < version):
                cached = await self.newest(practice_id)
        return cached

    def version(self, practice_id: int) -> int:
        """The cached directory's version, or -1."""
        cached = self._cached.get(practice_id)
        return -1 if cached is None else cached.version

    async def newest(self, practice_id: int) -> StoredDirectory:
        loaded = await load_directory(self._database, practice_id)
        self._cached.put(practice_id, loaded, weight=1 + len(loaded.directory.providers))
        return loaded


async def load_directory(database: Database, practice_id: int) -> StoredDirectory:
    text = await database.fetchval("SELECT load_directory($1)", practice_id)
    if text is None:
        raise LookupError("no such practice")
    document = orjson.loads(text)
    return StoredDirectory(document["practice"]["version"], _directory(document))


async def save_directory(connection: Any, practice_id: int, directory: Directory, *, prune: bool) -> None:
    """Upserts every record of the directory. With prune, what it does not list becomes inactive, never deleted."""
    for location in directory.locations.values():
        await connection.execute(
            """INSERT INTO location (practice_id, location_id, name, aliases, time_zone, phone, address, closures)
               VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8::jsonb)
               ON CONFLICT (practice_id, location_id) DO UPDATE SET name = excluded.name, aliases = excluded.aliases,
                   time_zone = excluded.time_zone, phone = excluded.phone, address = excluded.address,
                   closures = with_blocks(location.closures, excluded.closures), active = true""",
            practice_id,
            location.id,
            location.name,
            list(location.aliases),
            location.time_zone,
            location.phone,
            None if location.address is None else _json(dict(location.address)),
            _json([_block({"first": c.first, "last": c.last, "reason": c.reason}, c.by) for c in location.closures]),
        )
    for provider in directory.providers.values():
        await connection.execute(
            """INSERT INTO provider (practice_id, provider_id, name, aliases, specialty, accepts_new_patients, capacity,
                   procedure_ids, hours, time_off)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10::jsonb)
               ON CONFLICT (practice_id, provider_id) DO UPDATE SET name = excluded.name, aliases = excluded.aliases,
                   specialty = excluded.specialty, accepts_new_patients = excluded.accepts_new_patients,
                   capacity = excluded.capacity, procedure_ids = excluded.procedure_ids, hours = excluded.hours,
                   time_off = with_blocks(provider.time_off, excluded.time_off), active = true""",
            practice_id,
            provider.id,
            provider.name,
            list(provider.aliases),
            provider.specialty,
            provider.accepts_new_patients,
            provider.capacity,
            None if provider.procedure_ids is None else sorted(provider.procedure_ids),
            _json([_hours_document(h) for h in provider.hours]),
            _json([_block({"starts": t.starts, "ends": t.ends, "reason": t.reason}, t.by) for t in provider.time_off]),
        )
    for visit_type in directory.visit_types.values():
        await connection.execute(
            """INSERT INTO visit_type (practice_id, visit_type_id, name, aliases, description, patient_kind)
               VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (practice_id, visit_type_id) DO UPDATE SET name = excluded.name, aliases = excluded.aliases,
                   description = excluded.description, patient_kind = excluded.patient_kind, active = true""",
            practice_id,
            visit_type.id,
            visit_type.name,
            list(visit_type.aliases),
            visit_type.description,
            visit_type.patient_kind,
        )
        for procedure in visit_type.procedures:
            await connection.execute(
                """INSERT INTO procedure (practice_id, visit_type_id, procedure_id, name, aliases, description,
                       duration_minutes, buffer_after_minutes)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                   ON CONFLICT (practice_id, visit_type_id, procedure_id) DO UPDATE SET name = excluded.name,
                       aliases = excluded.aliases, description = excluded.description,
                       duration_minutes = excluded.duration_minutes,
                       buffer_after_minutes = excluded.buffer_after_minutes, active = true""",
                practice_id,
                visit_type.id,
                procedure.id,
                procedure.name,
                list(procedure.aliases),
                procedure.description,
                procedure.duration_minutes,
                procedure.buffer_after_minutes,
            )
    if prune:
        await _prune(connection, practice_id, directory)


async def _prune(connection: Any, practice_id: int, directory: Directory) -> None:
    await connection.execute(
        "UPDATE location SET active = false WHERE practice_id = $1 AND location_id <> ALL ($2::integer[])",
        practice_id,
        list(directory.locations),
    )
    await connection.execute(
        "UPDATE provider SET active = false WHERE practice_id = $1 AND provider_id <> ALL ($2::integer[])",
        practice_id,
        list(directory.providers),
    )
    await connection.execute(
        "UPDATE visit_type SET active = false WHERE practice_id = $1 AND visit_type_id <> ALL ($2::integer[])",
        practice_id,
        list(directory.visit_types),
    )
    listed = [(t.id, p.id) for t in directory.visit_types.values() for p in t.procedures]
    await connection.execute(
        """UPDATE procedure SET active = false WHERE practice_id = $1 AND (visit_type_id, procedure_id) NOT IN
           (SELECT * FROM unnest($2::integer[], $3::integer[]))""",
        practice_id,
        [visit_type_id for visit_type_id, _ in listed],
        [procedure_id for _, procedure_id in listed],
    )


def _block(block: dict[str, Any], by: str | None) -> dict[str, Any]:
    return block if by is None else {**block, "by": by}


def _hours_document(hours: OpeningHours) -> dict[str, Any]:
    return {
        "locationId": hours.location_id,
        "days": sorted(hours.days),
        "opens": hours.opens,
        "closes": hours.closes,
        "effectiveFrom": hours.effective_from,
        "effectiveTo": hours.effective_to,
    }


def _directory(document: Mapping[str, Any]) -> Directory:
    p = document["practice"]
    procedures: dict[int, list[Procedure]] = {}
    for r in document["procedures"] or ():
        procedures.setdefault(r["visit_type_id"], []).append(
            Procedure(
                id=r["procedure_id"],
                name=r["name"],
                aliases=tuple(r["aliases"]),
                description=r["description"],
                duration_minutes=r["duration_minutes"],
                buffer_after_minutes=r["buffer_after_minutes"],
                active=r["active"],
            )
        )
    return Directory(
        practice=Practice(
            slug=p["slug"],
            name=p["name"],
            time_zone=p["time_zone"],
            phone=p["phone"],
            minimum_notice_minutes=p["minimum_notice_minutes"],
            booking_horizon_days=p["booking_horizon_days"],
            slot_interval_minutes=p["slot_interval_minutes"],
            scheduling_system=p["scheduling_system"],
            sandbox=p["sandbox"],
        ),
        locations={
            row["location_id"]: Location(
                id=row["location_id"],
                name=row["name"],
                time_zone=row["time_zone"],
                aliases=tuple(row["aliases"]),
                phone=row["phone"],
                address=row["address"],
                closures=_closures(row["closures"]),
                active=row["active"],
            )
            for row in document["locations"] or ()
        },
        providers={
            row["provider_id"]: Provider(
                id=row["provider_id"],
                name=row["name"],
                aliases=tuple(row["aliases"]),
                specialty=row["specialty"],
                accepts_new_patients=row["accepts_new_patients"],
                capacity=row["capacity"],
                procedure_ids=None if row["procedure_ids"] is None else frozenset(row["procedure_ids"]),
                hours=_hours(row["hours"]),
                time_off=_time_off(row["time_off"]),
                active=row["active"],
            )
            for row in document["providers"] or ()
        },
        visit_types={
            row["visit_type_id"]: VisitType(
                id=row["visit_type_id"],
                name=row["name"],
                patient_kind=row["patient_kind"],
                aliases=tuple(row["aliases"]),
                description=row["description"],
                procedures=tuple(procedures.get(row["visit_type_id"], ())),
                active=row["active"],
            )
            for row in document["visit_types"] or ()
        },
    )


def _closures(rows: Iterable[Mapping[str, Any]]) -> tuple[Closure, ...]:
    return tuple(
        Closure(date.fromisoformat(c["first"]), date.fromisoformat(c["last"]), c["reason"], c.get("by")) for c in rows
    )


def _hours(rows: Iterable[Mapping[str, Any]]) -> tuple[OpeningHours, ...]:
    return tuple(
        OpeningHours(
            location_id=h["locationId"],
            days=frozenset(h["days"]),
            opens=h["opens"],
            closes=h["closes"],
            effective_from=_date(h["effectiveFrom"]),
            effective_to=_date(h["effectiveTo"]),
        )
        for h in rows
    )


def _time_off(rows: Iterable[Mapping[str, Any]]) -> tuple[TimeOff, ...]:
    return tuple(
        TimeOff(datetime.fromisoformat(t["starts"]), datetime.fromisoformat(t["ends"]), t["reason"], t.get("by"))
        for t in rows
    )


def _date(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
