"""What a slot search accepts, and how it refuses the rest."""

import httpx

from tests.operations.slot_searches import QUERY, search
from tests.support.world import World, rules


async def test_a_search_needs_four_ids_and_a_window(world: World) -> None:
    answer = await (await world.client()).get("/api/slots")
    assert answer.status_code == 422
    assert rules(answer) == dict.fromkeys(QUERY, "required")


async def test_every_offending_field_is_listed_at_once(world: World) -> None:
    agent = await world.client()
    broken = await search(agent, providerId=0, locationId=-5, to="2026-11-15", limit=0, colour="red")
    assert broken.status_code == 422
    assert rules(broken) == {
        "providerId": "greaterThanZero",
        "locationId": "greaterThanZero",
        "to": "order",
        "limit": "range",
        "colour": "unknown",
    }
    mixed = await agent.get(
        "/api/slots", params={"providerId": "ten", "locationId": 0, "from": "soon", "to": "2026-11-16", "x": ""}
    )
    assert mixed.status_code == 400, "one value that cannot be read makes it a 400"
    assert rules(mixed) == {
        "providerId": "Binding",
        "locationId": "greaterThanZero",
        "visitTypeId": "required",
        "procedureId": "required",
        "from": "Binding",
        "x": "unknown",
    }


async def test_a_window_is_at_most_fourteen_days_and_in_order(world: World) -> None:
    agent = await world.client()
    assert (await search(agent, to="2026-11-30")).status_code == 200
    assert rules(await search(agent, to="2026-12-01")) == {"to": "maxWindow"}
    assert rules(await search(agent, **{"from": "0001-01-01", "to": "9999-12-31"})) == {"to": "maxWindow"}
    backwards = await search(agent, **{"from": "2026-11-17"})
    assert (backwards.status_code, rules(backwards)) == (422, {"to": "order"})


async def test_a_date_is_a_date_and_nothing_else(world: World) -> None:
    agent = await world.client()
    for text in (
        "2026-11-16T00:00:00", "2026-11-16T00:00:00Z", "2026-11-16 ", "2026-11-31", "2026-W47-1", "20261116",
        "16.11.2026", "2026-1-6", "", "today", "0000-01-01", "10000-01-01", "-2026-11-16", "２０２６-11-16",
    ):  # fmt: skip
        for field in ("from", "to"):
            answer = await search(agent, **{field: text})
            assert (answer.status_code, rules(answer)) == (400, {field: "Binding"}), text


async def test_an_id_is_a_positive_32_bit_integer(world: World) -> None:
    agent = await world.client()
    for field in ("providerId", "locationId", "visitTypeId", "procedureId"):
        await assert_positive_int32(agent, field)


async def assert_positive_int32(agent: httpx.AsyncClient, field: str) -> None:
    for text in (
        "2147483648",
        "-2147483649",
        "9" * 30,
        "1.0",
        "1e3",
        "0x1",
        "+1",
        " 1",
        "１",
        "true",
        "null",
        "",
        "1,2",
    ):
        answer = await search(agent, **{field: text})
        assert (answer.status_code, rules(answer)) == (400, {field: "Binding"}), text
    for text in ("0", "-1", "-2147483648", "-0"):
        answer = await search(agent, **{field: text})
        assert (answer.status_code, rules(answer)) == (422, {field: "greaterThanZero"}), text
    for text in ("2147483647", "0000000000000000010"):
        assert (await search(agent, **{field: text})).status_code == 200, text


async def test_a_repeated_parameter_cannot_be_read(world: World) -> None:
    agent = await world.client()
    for repeated in ("providerId=10", "PROVIDERID=11", "providerid=10&providerId=10&ProviderId=12"):
        answer = await agent.get("/api/slots", params=[*QUERY.items(), *httpx.QueryParams(repeated).multi_items()])
        assert (answer.status_code, rules(answer)) == (400, {"providerId": "Binding"})


async def test_names_of_parameters_are_read_without_regard_to_case(world: World) -> None:
    agent = await world.client()
    expected = (await search(agent)).json()
    for spell in (str.upper, str.lower, str.title):
        answer = await agent.get("/api/slots", params={spell(name): value for name, value in QUERY.items()})
        assert answer.json() == expected


async def test_a_parameter_that_a_search_does_not_have_is_named(world: World) -> None:
    agent = await world.client()
    assert rules(await search(agent, provider_id=10)) == {"provider_id": "unknown"}
    answer = await search(agent, **{"<script>alert(1)</script>": 1, "x" * 500: 1, "": 1, "Zoë\x00": 1})
    assert answer.status_code == 422
    assert set(rules(answer)) == {"?script?alert?1???script?", "x" * 64, "?", "Zoë?"}


async def test_a_flood_of_parameters_is_refused_and_no_error(world: World) -> None:
    agent = await world.client()
    answer = await agent.get("/api/slots", params=[(f"p{number}", "1") for number in range(101)])
    assert (answer.status_code, rules(answer)) == (400, {"$": "Binding"})
