"""Loads, caches and saves the directories of practices."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import orjson
from pydantic import TypeAdapter

from frontdesk.cache import BoundedCache
from frontdesk.domain.directory import Closure, Directory, OpeningHours, TimeOff
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.rows import camel, field_names, upsert_sql

MAX_PROVIDERS = 10_000  # over all practices; with their share of everything else about two kilobytes each


@dataclass(frozen=True, slots=True)
class StoredDirectory:
    version: int
    directory: Directory


class DirectoryCache:
    """Caches directories by practice. Concurrent callers share one load."""

    def __init__(self, database: Database, max_providers: int = MAX_PROVIDERS) -> None:
        self._database = database
        self._cached: BoundedCache[int, StoredDirectory] = BoundedCache(max_providers)
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

    def clear(self) -> None:
        self._cached.clear()

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


async def lock_providers(connection: Connection, practice_id: int) -> None:
    """Waits for bookings in progress. Later ones wait for this transaction, and are judged by what it saves."""
    sql = "SELECT FROM provider WHERE practice_id = $1 ORDER BY provider_id FOR NO KEY UPDATE"
    await connection.execute(sql, practice_id)


async def save_directory(connection: Connection, practice_id: int, directory: Directory, *, prune: bool) -> None:
    """Upserts every record of the directory. With prune, what it does not list becomes inactive, never deleted."""
    for location in directory.locations.values():
        values = _columns(location)
        values["address"] = None if location.address is None else _json(dict(location.address))
        values["closures"] = _blocks(location.closures)
        merged = "with_blocks(location.closures, excluded.closures)"
        await _save(connection, "location", {"location_id": location.id}, practice_id, values, closures=merged)
    for provider in directory.providers.values():
        values = _columns(provider)
        values["procedure_ids"] = None if provider.procedure_ids is None else sorted(provider.procedure_ids)
        values["hours"] = _json([_hours_document(hours) for hours in provider.hours])
        values["time_off"] = _blocks(provider.time_off)
        merged = "with_blocks(provider.time_off, excluded.time_off)"
        await _save(connection, "provider", {"provider_id": provider.id}, practice_id, values, time_off=merged)
    for visit_type in directory.visit_types.values():
        values = _columns(visit_type)
        del values["procedures"]
        key = {"visit_type_id": visit_type.id}
        await _save(connection, "visit_type", key, practice_id, values)
        for procedure in visit_type.procedures:
            await _save(connection, "procedure", key | {"procedure_id": procedure.id}, practice_id, _columns(procedure))
    if prune:
        await _prune(connection, practice_id, directory)


def _columns(record: Any) -> dict[str, object]:  # any dataclass
    return {name: getattr(record, name) for name in field_names(record.__class__) if name != "id"} | {"active": True}


async def _save(
    connection: Connection,
    table: str,
    key: Mapping[str, int],
    practice_id: int,
    values: Mapping[str, object],
    **updates: str,
) -> None:
    sql = upsert_sql(table, ("practice_id", *key), [*values], **updates)
    await connection.execute(sql, practice_id, *key.values(), *values.values())


async def _prune(connection: Connection, practice_id: int, directory: Directory) -> None:
    listed = {"location": directory.locations, "provider": directory.providers, "visit_type": directory.visit_types}
    for table, records in listed.items():
        sql = f"UPDATE {table} SET active = false WHERE practice_id = $1 AND {table}_id <> ALL ($2::integer[])"  # noqa: S608
        await connection.execute(sql, practice_id, [*records])
    procedures = [(visit_type.id, p.id) for visit_type in directory.visit_types.values() for p in visit_type.procedures]
    await connection.execute(
        """UPDATE procedure SET active = false WHERE practice_id = $1 AND (visit_type_id, procedure_id) NOT IN
           (SELECT * FROM unnest($2::integer[], $3::integer[]))""",
        practice_id,
        [visit_type_id for visit_type_id, _ in procedures],
        [procedure_id for _, procedure_id in procedures],
    )


def _blocks(blocks: Iterable[Closure | TimeOff]) -> str:
    """As JSON; only time that was blocked in the console says by whom."""
    return _json([{key: value for key, value in asdict(b).items() if key != "by" or value is not None} for b in blocks])


def _hours_document(hours: OpeningHours) -> dict[str, object]:
    return {camel(key): value for key, value in asdict(hours).items()} | {"days": sorted(hours.days)}


def _directory(document: Mapping[str, Any]) -> Directory:
    records = {kind: document[f"{kind}s"] or [] for kind in ("location", "provider", "visit_type", "procedure")}
    for kind, rows in records.items():
        for row in rows:
            row["id"] = row[f"{kind}_id"]
    hour_fields = field_names(OpeningHours)
    for row in records["provider"]:
        row["hours"] = [{key: hours[camel(key)] for key in hour_fields} for hours in row["hours"]]
    for row in records["visit_type"]:
        row["procedures"] = [each for each in records["procedure"] if each["visit_type_id"] == row["id"]]
    by_id = {f"{kind}s": {row["id"]: row for row in rows} for kind, rows in records.items()}
    practice = document["practice"]
    return _reader().validate_python({"practice": practice, "imported_at": practice["imported_at"], **by_id})


@cache
def _reader() -> TypeAdapter[Directory]:
    return TypeAdapter(Directory)


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
