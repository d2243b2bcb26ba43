"""Checks whether the scheduling systems of practices work."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.store.database import Database
from frontdesk.store.directories import load_directory
from frontdesk.systems.findings import Finding
from frontdesk.systems.port import Capability


@dataclass(frozen=True, slots=True)
class SystemCheck:
    kind: str
    findings: Sequence[Finding]
    finished: bool  # False: time ran out, and there is more to look at


async def check_system(
    database: Database,
    practice_id: int,
    operations: Mapping[str, Capability],
    environment: Mapping[str, str],
    now: datetime,
    seconds: float | None = None,
    *,
    write: bool = False,
) -> SystemCheck:
    """Checks every part of a scheduling system, or as many as fit into `seconds`.

    `operations`: what each operation needs of the system; `write`: an appointment may be made and taken back.
    """
    stored = await load_directory(database, practice_id)
    config = stored.directory.practice.scheduling_system
    if config["kind"] != "fhir":
        return SystemCheck(config["kind"], [Finding("calendar", "works", "kept in this database")], True)
    from frontdesk.systems.fhir.check import check  # most installations have no FHIR server, and start faster without
    from frontdesk.systems.fhir.upstream import Upstream

    upstream = Upstream(database, practice_id, config, environment)
    findings: list[Finding] = []
    try:
        async with asyncio.timeout(seconds):
            practice = await upstream.map(stored.version, stored.directory)
            async for finding in check(upstream, practice, operations, now, write=write):
                findings.append(finding)  # noqa: PERF401 - what was found before time ran out is kept
    except TimeoutError:
        return SystemCheck("fhir", findings, False)
    finally:
        await upstream.close()
    return SystemCheck("fhir", findings, True)


async def check_own_servers(
    database: Database, practice_ids: Sequence[int], environment: Mapping[str, str]
) -> dict[str, str | None]:
    """The practices with a server of their own, by slug, and what is wrong with it: None if it answers searches."""
    answers = {}
    for practice_id in practice_ids:
        practice = (await load_directory(database, practice_id)).directory.practice
        if practice.scheduling_system["kind"] != "fhir":
            continue
        from frontdesk.systems.fhir.check import first_error
        from frontdesk.systems.fhir.upstream import Upstream

        upstream = Upstream(database, practice_id, practice.scheduling_system, environment)
        try:
            answers[practice.slug] = await first_error(upstream)
        finally:
            await upstream.close()
    return answers
