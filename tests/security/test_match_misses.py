"""A miss of a match does not tell which field was wrong: not by its body, its headers or the work that it takes."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from frontdesk.access.clients.records import AccessLimits
from tests.doors.mcp_speech import send
from tests.fhir_server.conftest import server
from tests.support.world import PRACTICE, World

__all__ = ["server"]
ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
# Each right but for one field, or wrong in all.
MISSES: list[dict[str, str]] = [
    {"firstName": "Eda"}, {"lastName": "Lovelack"}, {"dob": "1985-12-11"}, {"phone": "555 010 0198"}, {"phone": "5550"},
    {"phone": "0198"}, {"firstName": "Nobody", "lastName": "Atall", "dob": "1950-01-01", "phone": "999 999 9999"},
]  # fmt: skip
OWN = ("x-svc-trace-id", "date", "ratelimit")  # of each call
Ask = Callable[[httpx.AsyncClient, dict[str, str]], Awaitable[httpx.Response]]


async def over_rest(client: httpx.AsyncClient, person: dict[str, str]) -> httpx.Response:
    return await client.post("/api/patients/match", json=person)


async def over_mcp(client: httpx.AsyncClient, person: dict[str, str]) -> httpx.Response:
    return await send(client, "tools/call", {"name": "match_patient", "arguments": person})


async def over_fhir(client: httpx.AsyncClient, person: dict[str, str]) -> httpx.Response:
    form = {"given": person["firstName"], "family": person["lastName"], "phone": person["phone"]}
    content = urlencode({**form, "birthdate": person["dob"]})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return await client.post("/fhir/R4/Patient/_search", content=content, headers=kind)


def seen(answer: httpx.Response) -> tuple[int, dict[str, str], str]:
    headers = {name: value for name, value in answer.headers.items() if name not in OWN}
    return answer.status_code, headers, answer.text.replace(answer.headers["x-svc-trace-id"], "TRACE")


@pytest.mark.parametrize("ask", [over_rest, over_mcp, over_fhir])
@pytest.mark.parametrize("grant", ["agent", "integration"])
async def test_every_miss_looks_the_same_at_every_door(server: World, ask: Ask, grant: str) -> None:
    await server.import_file(PRACTICE.replace("slug: SLUG", "slug: harbor, phoneMatch: ending"))
    client = await server.client(grant=grant, access_limits=AccessLimits(match_misses=0))
    found = await ask(client, ADA)
    assert "pat_" in found.text or '"total":1' in found.text
    await ask(client, {**ADA, "dob": "1950-02-02"})  # the first miss may read what the others find in memory
    answers: list[tuple[Any, int]] = []
    for changes in MISSES:
        before = server.database.statements
        answer = await ask(client, {**ADA, **changes})
        answers.append((seen(answer), server.database.statements - before))
        assert not any(value in answer.text for value in {**ADA, **changes}.values())
    assert [each for each in answers if each != answers[0]] == []
    assert answers[0][0] != seen(found)


@pytest.mark.parametrize("ask", [over_rest, over_mcp])
async def test_misses_are_counted_alike_whatever_was_wrong(world: World, ask: Ask) -> None:
    """Else the first refusal would come sooner or later for one field than for another."""
    refusals = []
    for changes in (
        {"phone": "555 010 0198"},
        {"phone": "5550000000"},
        {"dob": "1985-12-11"},
        {"lastName": "Lovelack"},
    ):
        client = await world.client()
        answers = [await ask(client, {**ADA, **changes}) for _ in range(5)]
        answers += [await ask(client, {**ADA, **changes, "phone": f"555 010 02{n}9"}) for n in range(5)]
        refusals.append(["rate_limited" in answer.text for answer in answers])
    assert [each for each in refusals if each != refusals[0]] == []
    assert any(refusals[0])
