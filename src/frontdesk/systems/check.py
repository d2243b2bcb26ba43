"""Whether a practice's scheduling system works, part by part: looked at, never written to."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from frontdesk.store.database import Database
from frontdesk.store.directories import load_directory

if TYPE_CHECKING:
    from frontdesk.systems.fhir.check import Finding


@dataclass(frozen=True, slots=True)
class SystemCheck:
    kind: str
    findings: "Sequence[Finding]"
    finished: bool  # False: time ran out, and there is more to look at


async def check_system(
    database: Database,
    practice_id: int,
    environment: Mapping[str, str],
    now: datetime,
    seconds: float | None = None,
) -> SystemCheck:
    """Everything that can be looked at, or as much of it as fits into so many seconds."""
    from frontdesk.systems.fhir.check import Finding, check  # the adapter is imported where it is used
    from frontdesk.systems.fhir.upstream import Upstream

    stored = await load_directory(database, practice_id)
    config = stored.directory.practice.scheduling_system
    if config["kind"] != "fhir":
        return SystemCheck(config["kind"], [Finding("calendar", "works", "kept in this database")], True)
    upstream = Upstream(database, practice_id, config, environment)
    findings: list[Finding] = []
    try:
        async with asyncio.timeout(seconds):
            practice = await upstream.map(stored.version, stored.directory)
            async for finding in check(upstream, practice, now):
                findings.append(finding)  # noqa: PERF401 - what was found before time ran out is kept
    except TimeoutError:
        return SystemCheck("fhir", findings, False)
    finally:
        await upstream.close()
    return SystemCheck("fhir", findings, True)
