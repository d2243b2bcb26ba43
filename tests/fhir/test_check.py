"""`frontdesk practice check`: what an operator sees of a FHIR server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.cli.command_line import CommandLine
from tests.fhir.door import Answer, Door, Request
from tests.fhir.fake import Fake
from tests.fhir.practice import Upstream, file_text
from tests.store.embedded_processes import copy_of
from tests.support.world import PRACTICE


@pytest.fixture(scope="module")
def line(made_server: Path) -> Iterator[CommandLine]:
    with copy_of(made_server) as home:
        postgres = EmbeddedPostgres(home)
        postgres.start()
        yield CommandLine(home.parent)
        postgres.stop()


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    opened = Door()
    await opened.open()
    opened.backend = Fake(opened.address)
    await Upstream(opened).seed()
    yield opened
    await opened.close()


async def _imported(line: CommandLine, address: str, **settings: Any) -> None:
    done = await asyncio.to_thread(line.run, "practice", "import", "-", stdin=file_text("harbor", address, **settings))
    assert done.status == 0, done


async def _checked(line: CommandLine, **variables: str) -> tuple[int, dict[str, tuple[str, str]]]:
    done = await asyncio.to_thread(line.run, "practice", "check", "harbor", **variables)
    rows = [row for row in done.out.splitlines()[1:] if row.strip()]
    findings = {}
    for row in rows:
        subject, state, detail = (part.strip() for part in row.split("  ") if part.strip())
        findings[subject] = (state, detail)
    return done.status, findings


async def test_a_server_that_works_is_shown_part_by_part(line: CommandLine, door: Door) -> None:
    await _imported(line, door.address)
    status, found = await _checked(line)
    assert status == 0, found
    assert {state for state, _ in found.values()} == {"works"}
    assert found["connection"][1] == "FHIR server, FHIR 4.0.1"
    assert found["location 1 (Downtown)"][1] == "Location/downtown"
    assert found["slots of provider 11"][1].startswith("2 schedules")
    assert found["Patient search"][1] == "found"
    assert found["further pages"][1] == "a link to the next page was followed"
    assert found["batches"][1] == "not offered: requests are sent one by one"
    assert "book_appointment" in found
    assert not [request for request in door.seen if request.method != "GET"], "nothing is written"


async def test_what_is_not_supported_and_what_is_misconfigured_is_named(line: CommandLine, door: Door) -> None:
    async def poorer(request: Request, answer: Answer) -> Answer:
        return Answer(answer.status, answer.headers, answer.body.replace(b'"conditionalCreate": true', b'"x": 1'))

    door.rewrite = poorer
    providers = {"10": "Practitioner/chen", "11": "Practitioner/nobody", "12": "Practitioner/okafor"}
    await _imported(line, door.address, providers=providers, locations={"1": "Location/typo", "2": "Location/westside"})
    status, found = await _checked(line)
    assert status == 1
    assert found["location 1 (Downtown)"] == ("misconfigured", "the server has no Location/typo")
    assert found["provider 11 (Dr. María Núñez)"] == ("misconfigured", "the server has no Practitioner/nobody")
    assert found["slots of provider 11"][0] == "misconfigured"
    assert found["book_appointment"] == (
        "not supported",
        "the server does not offer: Appointment conditional-create",
    )
    assert found["search_slots"][0] == "works"


async def test_a_right_that_is_missing_and_a_link_that_leads_elsewhere_are_found(line: CommandLine, door: Door) -> None:
    async def partly(request: Request, answer: Answer) -> Answer:
        if request.target.startswith("/fhir/Encounter"):
            return Answer(403, {}, b"")
        return Answer(answer.status, answer.headers, answer.body.replace(b"/Slot?_count=1&_offset=1", b"/../Slot?"))

    door.rewrite = partly
    assert isinstance(door.backend, Fake)
    door.backend.batches = True
    await _imported(line, door.address)
    status, found = await _checked(line)
    assert status == 1
    assert found["Encounter search"][1] == "the server answered the search of Encounter with status 403"
    assert found["further pages"][0] == "misconfigured"
    assert found["batches"][1] == "several requests are sent as one"
    assert found["book_appointment"] == ("misconfigured", "the server refuses searches of Encounter")
    assert found["search_slots"][0] == "works"


async def test_a_missing_secret_and_a_dead_server_are_told_apart(line: CommandLine, door: Door) -> None:
    await _imported(line, door.address, auth={"kind": "bearer", "tokenEnv": "HARBOR_TOKEN"})
    status, found = await _checked(line)
    assert (status, found) == (
        1,
        {"connection": ("misconfigured", "the environment variable HARBOR_TOKEN holds no usable secret")},
    )
    assert (await _checked(line, HARBOR_TOKEN="t"))[0] == 0
    await door.close()
    status, found = await _checked(line, HARBOR_TOKEN="t")
    assert (status, found["connection"][0]) == (1, "unreachable")


def test_our_own_calendar_needs_no_connection(line: CommandLine) -> None:
    line.json("practice", "import", "-", stdin=PRACTICE.replace("SLUG", "native"))
    document = line.json("practice", "check", "native")
    assert document["checks"] == [{"subject": "calendar", "state": "works", "detail": "kept in this database"}]
    done = line.run("practice", "check", "nativ")
    assert done.status == 2
    assert "the closest is 'native'" in done.err
