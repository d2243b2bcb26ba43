"""The FHIR door: who may enter, formats, problems and the CapabilityStatement."""

from tests.fhir_server.fhir_calls import BASE, issue
from tests.support.world import PRACTICE, World


async def test_the_door_is_closed_unless_a_setting_opens_it(world: World) -> None:
    client = await world.client()
    answer = await client.get(f"{BASE}/metadata")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


async def test_practitioners_are_read_and_searched(server: World) -> None:
    client = await server.client(grant="integration")
    read = await client.get(f"{BASE}/Practitioner/10")
    assert read.status_code == 200
    assert read.headers["content-type"] == "application/fhir+json;charset=utf-8"
    practitioner = read.json()
    assert practitioner["name"][0]["text"] == "Dr. Robert Chen"
    assert read.headers["etag"] == f'W/"{practitioner["meta"]["versionId"]}"'
    known = await client.get(f"{BASE}/Practitioner/10", headers={"If-None-Match": read.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")

    everyone = (await client.get(f"{BASE}/Practitioner")).json()
    assert (everyone["type"], everyone["total"]) == ("searchset", 3)
    assert [entry["resource"]["id"] for entry in everyone["entry"]] == ["10", "11", "12"]
    assert everyone["entry"][0]["fullUrl"] == "http://test/fhir/R4/Practitioner/10"
    by_alias = (await client.get(f"{BASE}/Practitioner?name=bob")).json()
    assert [entry["resource"]["id"] for entry in by_alias["entry"]] == ["10"]
    posted = (await client.post(f"{BASE}/Practitioner/_search", data={"name": "nunez"})).json()
    assert [entry["resource"]["id"] for entry in posted["entry"]] == ["11"]
    assert "entry" not in (await client.get(f"{BASE}/Practitioner?active=false")).json()
    assert (await client.get(f"{BASE}/Practitioner?_summary=count&name=dr")).json()["total"] == 3

    first = (await client.get(f"{BASE}/Practitioner?_count=2&active=true")).json()
    [forward] = [link["url"] for link in first["link"] if link["relation"] == "next"]
    second = (await client.get(forward)).json()
    assert [entry["resource"]["id"] for entry in (*first["entry"], *second["entry"])] == ["10", "11", "12"]
    assert second["link"] == [{"relation": "self", "url": forward}]
    foreign = await (await server.client("other")).get(forward)
    assert issue(foreign, 422, "validation", "invalid")["expression"] == ["_cursor"]
    issue(await client.get(forward.replace("active=true", "active=false")), 422, "validation", "invalid")


async def test_every_problem_is_an_operation_outcome(server: World) -> None:
    client = await server.client(grant="integration")
    anonymous = server.anonymous()
    refused = await anonymous.get(f"{BASE}/Practitioner/10?name:exact=x")
    issue(refused, 401, "unauthorized", "login")
    assert "oauth-protected-resource/fhir/R4" in refused.headers["www-authenticate"]
    metadata = await anonymous.get("/.well-known/oauth-protected-resource/fhir/R4")
    assert metadata.json()["resource"] == "http://test/fhir/R4"
    unscoped = await server.client(scopes=["slots:read"])
    issue(await unscoped.get(f"{BASE}/Practitioner?name:exact=x"), 403, "forbidden_scope", "forbidden")
    for path in (
        "Practitioner/13",
        "Practitioner/0",
        "Practitioner/x_y",
        "Practitioner/99999999999",
        "Observation",
        "",
    ):
        issue(await client.get(f"{BASE}/{path}"), 404, "not_found", "not-found")
    issue(await client.get(BASE), 404, "not_found", "not-found")
    wrong = await client.delete(f"{BASE}/Practitioner/10")
    issue(wrong, 405, "method_not_allowed", "not-supported")
    assert wrong.headers["allow"] == "GET"
    issue(await client.get(f"{BASE}/Practitioner?_format=xml"), 406, "not_acceptable", "not-supported")
    issue(
        await client.get(f"{BASE}/Practitioner", headers={"Accept": "application/fhir+xml"}),
        406, "not_acceptable", "not-supported",
    )  # fmt: skip
    issue(await client.post(f"{BASE}/Practitioner/_search", json={}), 415, "unsupported_media_type", "not-supported")
    for query in ("name:exact=x", "name.given=x", "_count=many", "active:missing=true"):
        found = issue(await client.get(f"{BASE}/Practitioner?{query}"), 400, "validation", "value")
        assert found["expression"] == [query.partition("=")[0]]
    issue(await client.get(f"{BASE}/Practitioner?name=%ff"), 400, "validation", "value")
    issue(await client.get(f"{BASE}/Practitioner?name={'x' * 9000}"), 414, "payload_too_large", "too-long")
    capped = await server.client(per_minute=1)
    assert (await capped.get(f"{BASE}/Practitioner")).status_code == 200
    throttled = await capped.get(f"{BASE}/Practitioner")
    issue(throttled, 429, "rate_limited", "throttled")
    assert int(throttled.headers["retry-after"]) > 0


async def test_a_sandbox_practice_simulates_errors(server: World) -> None:
    await server.import_file(PRACTICE.replace("SLUG,", "box, sandbox: true,"))
    client = await server.client("box")
    for code, status, kind in (
        ("upstream_unavailable", 502, "transient"),
        ("not_found", 404, "not-found"),
        ("internal", 500, "exception"),
    ):
        simulated = await client.get(f"{BASE}/Practitioner/10", headers={"Frontdesk-Simulate": code})
        issue(simulated, status, code, kind)
    limited = await client.get(f"{BASE}/Practitioner/10", headers={"Frontdesk-Simulate": "rate_limited"})
    issue(limited, 429, "rate_limited", "throttled")
    assert "x-svc-trace-id" not in limited.headers


async def test_unsupported_parameters_are_ignored_with_a_warning_or_refused(server: World) -> None:
    client = await server.client(grant="integration")
    query = f"{BASE}/Practitioner?name=chen&birthdate=2000-01-01&_revinclude=Schedule:actor&_sort=name&_include=x:y"
    lenient = (await client.get(query)).json()
    assert [entry["search"]["mode"] for entry in lenient["entry"]] == ["match", "outcome"]
    warned = [each["expression"] for each in lenient["entry"][1]["resource"]["issue"]]
    assert warned == [["birthdate"], ["_revinclude"], ["_include"], ["_sort"]]
    assert lenient["link"][0]["url"] == "http://test/fhir/R4/Practitioner?name=chen"
    strict = await client.get(query, headers={"Prefer": "handling=strict"})
    assert issue(strict, 422, "validation", "not-supported")["expression"] == ["birthdate"]


async def test_the_statement_says_what_is_served(server: World) -> None:
    statement = (await server.anonymous().get(f"{BASE}/metadata")).json()
    assert (statement["resourceType"], statement["fhirVersion"]) == ("CapabilityStatement", "4.0.1")
    client = await server.client(grant="integration")
    for resource in statement["rest"][0]["resource"]:
        for parameter in resource["searchParam"]:
            value = {"date": "2026-11-16"}.get(parameter["type"], "x")
            answer = await client.get(
                f"{BASE}/{resource['type']}?{parameter['name']}={value}", headers={"Prefer": "handling=strict"}
            )
            assert answer.status_code in (200, 422), answer.text


async def test_nothing_but_the_statement_is_served_without_a_token_and_its_scope(server: World) -> None:
    anonymous, unscoped = server.anonymous(), await server.client(scopes=["appointments:confirm"])
    statement = (await anonymous.get(f"{BASE}/metadata")).json()
    for resource in statement["rest"][0]["resource"]:
        kind = f"{BASE}/{resource['type']}"
        offered = {each["code"] for each in resource["interaction"]}
        requests = [
            (method, path)
            for interaction, method, path in (
                ("search-type", "GET", kind),
                ("search-type", "POST", f"{kind}/_search"),
                ("read", "GET", f"{kind}/10"),
                ("create", "POST", kind),
                ("update", "PUT", f"{kind}/10"),
                ("patch", "PATCH", f"{kind}/10"),
            )
            if interaction in offered
        ]
        operations = [operation["name"] for operation in resource.get("operation", ())]
        requests += [("POST", f"{kind}/10/$cancel" if each == "cancel" else f"{kind}/${each}") for each in operations]
        for method, path in requests:
            issue(await anonymous.request(method, path), 401, "unauthorized", "login")
            issue(await unscoped.request(method, path), 403, "forbidden_scope", "forbidden")
