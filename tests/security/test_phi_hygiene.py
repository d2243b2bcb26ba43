"""Protected data stays where it belongs: a marked patient goes through everything, and the marks are looked for.

The server runs at debug level with metrics and traces on. Marks may be in the answers that are meant to carry them and
in the practice's own rows of patients, appointments and what was read back, and nowhere else: not in logs, traces,
metrics, audit, outbox, consumed intents or error texts. Neither may secrets and tokens.
"""

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from frontdesk.cli import main
from frontdesk.store.database import session_settings
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.security.real_server import RealServer, real_server
from tests.security.two_practices import BY_NAME, call, call_tool
from tests.support.otlp_receiver import Collector, collecting
from tests.support.shared_database import as_owner, new_database, opened

PERSON = {
    "firstName": "Xqzwvkjhpyfirst",
    "lastName": "Xqzwvkjhpylast",
    "dob": "1911-11-11",
    "phone": "+1 555 667 7889 3344",
    "email": "xqzwvkjhpymail@xqzwvkjhpy.example",
}
MATCH = {name: value for name, value in PERSON.items() if name != "email"}
# Long enough that no random id spells one by chance, in upper or in lower case.
MARKS = ("xqzwvkjhpy", "1911-11-11", "66778893344", "667 7889")
METRICS_TOKEN = "the token of the hygiene test"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="module")
async def server(
    cluster: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> AsyncIterator[RealServer]:
    async with new_database(cluster, template) as dsn, opened(dsn) as database:
        folder = tmp_path_factory.mktemp("server")
        async with real_server(
            database,
            dsn,
            as_owner(dsn),
            folder,
            log_level="debug",
            metrics_token=METRICS_TOKEN,
            otlp_endpoint=collector.url,
        ) as running:
            yield running


@pytest.fixture(scope="module")
async def owner(server: RealServer) -> AsyncIterator[Any]:
    dsn = as_owner(server.service.database.dsn)
    connection = await asyncpg.connect(dsn, server_settings=session_settings(None))
    yield connection
    await connection.close()


class Journey:
    """Everything a caller can do with a marked patient, well and badly."""

    def __init__(self, server: RealServer, owner: Any) -> None:
        self.server = server
        self.owner = owner
        self.errors: list[httpx.Response] = []
        self.secrets: set[str] = set()

    async def go(self) -> None:
        for grant, door in (("agent", call), ("agent", call_tool), ("integration", call)):
            token = await self.server.token(grant=grant)
            self.secrets.add(token)
            async with self.server.http(token) as client:
                await self.use(client, door, grant)
                await self.misuse(client)
        await self.break_inside()

    async def use(self, client: httpx.AsyncClient, door: Any, grant: str) -> None:
        person = {**PERSON, "firstName": f"Xqzwvkjhpyfirst{grant}{door.__name__}"}
        patient = (await self.write(client, door, "create_patient", person))["patientId"]
        await self.write(client, door, "update_patient", {"patientId": patient, "lastName": "Xqzwvkjhpylastchanged"})
        known = {**MATCH, "firstName": person["firstName"], "lastName": "Xqzwvkjhpylastchanged"}
        await self.read(client, door, "match_patient", known)
        await self.read(client, door, "get_patient", {"patientId": patient})
        window = {
            "from": (datetime.now(UTC) + timedelta(days=1)).date().isoformat(),
            "to": (datetime.now(UTC) + timedelta(days=12)).date().isoformat(),
        }
        ids = {"providerId": 10, "locationId": 1, "visitTypeId": 20, "procedureId": 100}
        slots = (await call(client, BY_NAME["search_slots"], {**ids, **window})).json()["items"]
        booked = await self.write(client, door, "book_appointment", {"patientId": patient, "slotId": slots[0]["id"]})
        appointment = {"appointmentId": booked["appointmentId"]}
        await self.read(client, door, "list_appointments", {"patientId": patient})
        await self.read(client, door, "get_appointment", appointment)
        await self.write(client, door, "confirm_attendance", appointment)
        await self.write(client, door, "reschedule_appointment", {**appointment, "slotId": slots[5]["id"]})
        await self.write(
            client, door, "cancel_appointment", {**appointment, "reason": "Xqzwvkjhpyreason of the person"}
        )
        again = await door(client, BY_NAME["cancel_appointment"], appointment)
        if door is call:
            assert again.status_code == 409
            self.errors.append(again)
            twin = await call(client, BY_NAME["create_patient"], {**person, "lastName": "Xqzwvkjhpylastchanged"})
            assert twin.status_code == 409
            self.errors.append(twin)

    async def read(self, client: httpx.AsyncClient, door: Any, name: str, given: dict[str, Any]) -> None:
        answer = await door(client, BY_NAME[name], given)
        assert answer.status_code == 200, answer.text
        assert '"isError":true' not in answer.text

    async def write(self, client: httpx.AsyncClient, door: Any, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Both phases; the second one over REST, so that its result is easy to read."""
        answer = await door(client, BY_NAME[name], given)
        if answer.status_code == 428 or door is call_tool:
            token = answer.text.split('confirmationToken":"')[1][:32]
            self.secrets.add(token)
            answer = await call(client, BY_NAME[name], {**given, "confirmationToken": token})
        assert answer.status_code in (200, 201), answer.text
        result: dict[str, Any] = answer.json()
        return result

    async def misuse(self, client: httpx.AsyncClient) -> None:
        """Marks where they do not belong."""
        for answer in (
            await client.post("/api/patients/match", json={**MATCH, "dob": "1911-11-11T00:00:00"}),
            await client.post("/api/patients/match", json={name: [value] for name, value in PERSON.items()}),
            await client.post("/api/patients/match", json={**MATCH, "phone": "xqzwvkjhpy"}),
            await client.post("/api/patients/match", json={**MATCH, "lastName": "Xqzwvkjhpynobody"}),
            await client.post("/api/patients", json={**PERSON, "firstName": "Xqzwvkjhpy" * 50, "email": "xqzwvkjhpy"}),
            await client.post("/api/patients", json={**PERSON, "firstName": "Xqzwvkjhpy\u0000\u0007"}),
            await client.post("/api/patients", content=b'{"firstName": "Xqzwvkjhpyfirst", "dob": 1911-11-11'),
            await client.post(
                "/api/patients", content="Xqzwvkjhpyfirst Xqzwvkjhpylast", headers={"Content-Type": "text/plain"}
            ),
            await client.get("/api/appointments", params={"PatientId": "Xqzwvkjhpyfirst"}),
            await client.get("/api/appointments", params={"cursor": "Xqzwvkjhpycursor", "From": "Xqzwvkjhpy"}),
            await client.get("/api/patients/Xqzwvkjhpyfirst"),
            await client.get("/api/slots/slt_Xqzwvkjhpyfirst"),
            await client.get("/api/Xqzwvkjhpyfirst/Xqzwvkjhpylast?name=Xqzwvkjhpy"),
            await client.patch("/api/patients/pat_Xqzwvkjhpyfirst", json={"phone": "Xqzwvkjhpy"}),
            await client.post("/api/appointments", json={"patientId": "Xqzwvkjhpyfirst", "slotId": "Xqzwvkjhpylast"}),
            await client.post("/api/appointments", json={"patientId": 55566778893344, "slotId": None}),
            await client.post("/mcp", content=b'{"jsonrpc":"2.0","id":"1","method":"Xqzwvkjhpyfirst"'),
            await client.post("/oauth/token", data={"client_id": "Xqzwvkjhpyfirst", "client_secret": "Xqzwvkjhpylast"}),
        ):
            assert 400 <= answer.status_code < 500, answer.text
            self.errors.append(answer)

    async def break_inside(self) -> None:
        """Errors that nobody expects, one of them with the patient's data in the database's own message."""
        token = await self.server.token(grant="integration")
        async with self.server.http(token) as client:
            await self.owner.execute("ALTER TABLE patient ADD CONSTRAINT boom CHECK (first_name <> 'Xqzwvkjhpyboom')")
            broken = await client.post("/api/patients", json={**PERSON, "firstName": "Xqzwvkjhpyboom"})
            await self.owner.execute("ALTER TABLE patient DROP CONSTRAINT boom")
            await self.owner.execute("ALTER FUNCTION match_patients RENAME TO elsewhere")
            missing = await client.post("/api/patients/match", json=MATCH)
            await self.owner.execute("ALTER FUNCTION elsewhere RENAME TO match_patients")
        for answer in (broken, missing):
            assert (answer.status_code, answer.json()["code"]) == (500, "internal"), answer.text
            self.errors.append(answer)


@pytest.fixture(scope="module")
async def journey(server: RealServer, owner: Any) -> Journey:
    travelled = Journey(server, owner)
    await travelled.go()
    return travelled


def check_unmarked(text: str, where: str, secrets: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    lines = [line for line in text.splitlines() for mark in (*MARKS, *secrets) if mark in line or mark in line.lower()]
    assert lines == [], where


async def test_no_log_line_carries_a_mark_or_a_secret(journey: Journey, cluster: EmbeddedPostgres) -> None:
    log = journey.server.log.read_text()
    assert log.count('"operation":"book_appointment"') >= 5
    assert '"error":"CheckViolationError"' in log  # the trace is there, without the message
    assert '"error":"UndefinedFunctionError"' in log
    check_unmarked(log, "the server's log", journey.secrets)
    assert "client_secret" not in log
    check_unmarked(cluster.log_path.read_text(), "PostgreSQL's log", journey.secrets)


async def test_every_unexpected_error_is_found_by_its_request_id(journey: Journey) -> None:
    log = journey.server.log.read_text()
    for answer in journey.errors:
        if answer.status_code == 500:
            found = [line for line in log.splitlines() if answer.json()["requestId"] in line and '"trace":[' in line]
            assert len(found) == 1


async def test_metrics_carry_no_mark_and_no_name(journey: Journey) -> None:
    async with journey.server.http(METRICS_TOKEN) as client:
        text = (await client.get("/metrics")).text
    assert 'operation="create_patient"' in text
    check_unmarked(text, "metrics", journey.secrets)
    for name in ("harbor", "fd_", "pat_", "apt_", "slt_", "127.0.0.1"):
        assert name not in text


async def test_no_span_carries_a_mark_or_a_secret(journey: Journey, collector: Collector) -> None:
    async with journey.server.http() as client:
        last = (await client.get("/api/practice")).headers["x-svc-trace-id"]
    await asyncio.to_thread(collector.wait_for, "rest get_practice", last)  # everything before it was sent, too
    names = {span.name for span in collector.spans}
    for operation in ("create_patient", "match_patient", "book_appointment"):
        assert {f"rest {operation}", f"mcp {operation}", f"tools/call {operation}", f"execute {operation}"} <= names
    assert any(name.startswith("SELECT") for name in names)
    for body in collector.bodies:
        check_unmarked(body.decode("latin-1"), "traces", journey.secrets)


async def test_a_support_bundle_carries_no_mark_and_no_secret(
    journey: Journey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = journey.server.service.database.dsn
    for name, value in {
        "FRONTDESK_DATA_DIR": str(journey.server.log.parent),
        "FRONTDESK_DATABASE_URL": dsn,
        "FRONTDESK_MIGRATION_DATABASE_URL": as_owner(dsn),
        "FRONTDESK_PORT": str(journey.server.port),
        "FRONTDESK_METRICS_TOKEN": METRICS_TOKEN,
    }.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "bundle.tar.gz"
    words = ["support-bundle", "--output", str(file), "--log", str(journey.server.log)]
    assert await asyncio.to_thread(main, words) == 0
    with tarfile.open(file) as archive:
        contents = {name: (archive.extractfile(name) or io.BytesIO()).read().decode() for name in archive.getnames()}
    joined = "\n".join(contents.values())
    for expected in (
        '"name": "patient"',
        'operation="create_patient"',
        '"message":"request"',
        '"audit_unsealed_records"',
    ):
        assert expected in joined
    secret_key = (journey.server.log.parent / "secret.key").read_text().strip()
    assert len(secret_key) > 20
    for name, text in contents.items():
        check_unmarked(text, name, {*journey.secrets, METRICS_TOKEN, dsn, secret_key})


async def test_error_bodies_name_fields_and_never_values(journey: Journey) -> None:
    assert len(journey.errors) > 50
    for answer in journey.errors:
        check_unmarked(answer.text, f"{answer.request.method} {answer.request.url.path}")
        check_unmarked(repr(answer.headers), "headers", journey.secrets)


async def test_only_patients_appointments_and_read_backs_hold_marks(journey: Journey) -> None:
    """Every table, every column, as the owner sees them; audit, outbox and intents among them."""
    held = set()
    for row in await journey.owner.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'frontdesk'"):
        table = row["tablename"]
        texts = await journey.owner.fetch(f"SELECT to_jsonb(t)::text AS row FROM {table} t")
        for text in (record["row"].lower() for record in texts):
            assert not any(secret.lower() in text for secret in journey.secrets), table
            if any(mark in text for mark in MARKS):
                held.add(table)
    assert held == {"patient", "appointment", "agreed_challenge"}
    consumed = "SELECT count(*) FROM intent WHERE state = 'consumed' AND challenge IS NOT NULL"
    assert await journey.owner.fetchval(consumed) == 0, "it waits for the confirmation only"
    columns = await journey.owner.fetch("SELECT to_jsonb(a) - 'cancellation_reason' AS row FROM appointment a")
    check_unmarked(repr([record["row"] for record in columns]), "appointments beside their reason")
    for table in ("audit_record", "outbox", "intent"):
        assert await journey.owner.fetchval(f"SELECT count(*) FROM {table}") > 10


async def test_nothing_in_the_data_directory_carries_a_mark(journey: Journey) -> None:
    for path in Path(journey.server.log.parent).rglob("*"):
        if path.is_file() and path.suffix in (".log", ".json", ".key", ".new"):
            check_unmarked(path.read_text(), path.name, journey.secrets)
