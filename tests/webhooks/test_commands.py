"""`frontdesk webhook`, `events` and `feed`, as operators type them, beside a service that runs."""

import asyncio
import json
import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from icalendar import Calendar
from standardwebhooks import Webhook

from tests.cli.command_line import COMMAND, CommandLine, on_database
from tests.webhooks.receiver import Receiver

PRIVATE = {"FRONTDESK_WEBHOOK_ALLOW_PRIVATE": "true"}


def book_and_cancel(client: httpx.Client) -> str:
    person = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}
    patient = client.post("/api/patients/match", json=person).json()["items"][0]["id"]
    later = datetime.now(UTC).date() + timedelta(days=1)  # what is offered today may come too close before it is booked
    query: dict[str, int | str] = {"visitTypeId": 21, "procedureId": 102, "from": later.isoformat()}
    found = client.get("/api/slots/first-available", params=query)
    body = {"patientId": patient, "slotId": found.json()["items"][0]["id"]}
    answer = client.post("/api/appointments", json=body)
    assert answer.status_code == 201, answer.text
    appointment: str = answer.json()["appointmentId"]
    assert client.post(f"/api/appointments/{appointment}/cancel", json={}).status_code == 200
    return appointment


async def test_a_booking_reaches_an_endpoint_within_seconds_and_shows_in_every_command(
    line: CommandLine, receiver: Receiver
) -> None:
    def are_recorded(endpoint: str) -> bool:
        deliveries = line.json("webhook", "deliveries", endpoint)
        return [delivery["state"] for delivery in deliveries] == ["delivered", "delivered"]

    def operate() -> tuple[Any, str, str]:
        with line.serving("--demo", **PRIVATE) as served, served.client("integration") as client:
            added = line.json("webhook", "add", "--practice", "demo", "--url", receiver.url(), **PRIVATE)
            tested = line.json("webhook", "test", added["endpointId"], **PRIVATE)
            assert (tested["delivered"], tested["status"]) == (True, 200)
            appointment = book_and_cancel(client)
            until = time.monotonic() + 60
            while len(receiver.received) < 3 and time.monotonic() < until:
                time.sleep(0.05)
            while not are_recorded(added["endpointId"]) and time.monotonic() < until:
                time.sleep(0.05)
            feed = line.json("feed", "add", "--practice", "demo", "--provider", "10", FRONTDESK_BASE_URL=served.url)
            calendar = httpx.get(feed["url"], timeout=30).text
            line.json("feed", "revoke", feed["feedId"])
            assert httpx.get(feed["url"], timeout=30).status_code == 404
            return added, appointment, calendar

    added, appointment, calendar = await asyncio.to_thread(operate)
    documents = [Webhook(added["secret"]).verify(m.body, m.headers) for m in receiver.received]
    assert [d["type"] for d in documents] == ["webhook.test", "appointment.booked", "appointment.cancelled"]
    assert all(d["data"]["appointmentId"] == appointment for d in documents[1:])
    for message in receiver.received:
        assert set(message.document["data"]) <= {"appointmentId", "patientId"}
        assert b"Lovelace" not in message.body
    assert Calendar.from_ical(calendar)["version"] == "2.0"

    deliveries = await asyncio.to_thread(line.json, "webhook", "deliveries", added["endpointId"])
    assert [(d["type"], d["state"], d["lastAttempt"]["status"]) for d in deliveries] == [
        ("appointment.cancelled", "delivered", 200),
        ("appointment.booked", "delivered", 200),
    ]
    tail = await asyncio.to_thread(line.run, "events", "tail", "--practice", "demo", "--json")
    lines = [json.loads(text) for text in tail.out.splitlines()]
    assert [entry["id"] for entry in lines[-2:]] == [message.id for message in receiver.received[1:]]
    assert {"type", "timestamp", "data", "id"} == set(lines[-1])
    since = await asyncio.to_thread(
        line.run, "events", "tail", "--practice", "demo", "--since", receiver.received[1].id
    )
    [text] = since.out.splitlines()
    assert "appointment.cancelled" in text
    assert appointment in text


@pytest.fixture(scope="module")
def endpoint(line: CommandLine, harbor: str) -> str:
    added = line.json("webhook", "add", "--practice", harbor, "--url", "https://8.8.8.8/hook")
    assert added["secret"].startswith("whsec_")
    found: str = added["endpointId"]
    return found


def test_an_endpoint_is_listed_shown_paused_and_resumed_without_its_secret(line: CommandLine, endpoint: str) -> None:
    shown = line.json("webhook", "show", endpoint)
    assert "secret" not in shown
    assert shown["url"] == "https://8.8.8.8/hook"
    assert shown["practice"] == "harbor"
    assert endpoint in [entry["endpointId"] for entry in line.json("webhook", "list", "--practice", "harbor")]
    assert line.json("webhook", "pause", endpoint)["pauseReason"] == "operator"
    assert "paused (operator)" in line.run("webhook", "list").out
    assert line.json("webhook", "resume", endpoint)["pausedAt"] is None
    assert line.json("webhook", "deliveries", endpoint, "--event", "evt_1") == []
    assert line.json("webhook", "replay", endpoint) == {"replayed": []}


def test_rotation_prints_the_new_secret_and_until_when_the_old_one_signs(line: CommandLine, endpoint: str) -> None:
    rotated = line.json("webhook", "rotate-secret", endpoint)
    assert rotated["secret"].startswith("whsec_")
    assert rotated["oldSecretUntil"] is not None
    assert "signed with the previous secret until" in line.run("webhook", "rotate-secret", endpoint).out


def test_an_endpoint_can_be_removed(line: CommandLine, harbor: str) -> None:
    added = line.json("webhook", "add", "--practice", harbor, "--url", "https://8.8.4.4/", "--event", "patient.created")
    assert added["events"] == ["patient.created"]
    assert line.json("webhook", "remove", added["endpointId"]) == {"removed": added["endpointId"]}
    assert line.run("webhook", "show", added["endpointId"]).status == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["webhook", "add", "--practice", "harbor", "--url", "https://127.0.0.1/"], "public address"),
        (["webhook", "add", "--practice", "harbor", "--url", "https://localhost/"], "public address"),
        (["webhook", "add", "--practice", "harbor", "--url", "http://8.8.8.8/"], "https://"),
        (["webhook", "add", "--practice", "harbr", "--url", "https://8.8.8.8/"], "'harbor'"),
        (["webhook", "add", "--practice", "harbor", "--url", "https://8.8.8.8/", "--event", "x"], "no event"),
        (["webhook", "show", "whk_1_nothing"], "no webhook endpoint"),
        (["webhook", "pause", "whk_1_0123456789abcdef"], "no webhook endpoint"),
        (["webhook", "deliveries", "whk_1_0123456789abcdef", "--state", "lost"], "state"),
        (["webhook", "replay", "whk_1_0123456789abcdef", "--event", "today"], "evt_42"),
        (["events", "tail", "--practice", "harbor", "--since", "yesterday"], "evt_42"),
        (["feed", "add", "--practice", "harbor", "--provider", "99"], "no provider 99"),
        (["feed", "revoke", "feed_1_0123456789abcdef"], "no calendar feed"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(line: CommandLine, harbor: str, words: list[str], message: str) -> None:
    done = line.run(*words)
    assert done.status == 2, done
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "names_the_setting"),
    [("http://127.0.0.1:9/", True), ("https://127.0.0.1/", True), ("ftp://8.8.8.8/", False), ("127.0.0.1:9", False)],
)
def test_the_setting_is_named_that_would_allow_an_address(
    line: CommandLine, harbor: str, url: str, names_the_setting: bool
) -> None:
    done = line.run("webhook", "add", "--practice", harbor, "--url", url)
    assert done.status == 2
    assert ("FRONTDESK_WEBHOOK_ALLOW_PRIVATE=true" in done.err) is names_the_setting, done.err


def test_a_test_message_that_is_not_received_is_a_failure(line: CommandLine, harbor: str) -> None:
    added = line.json("webhook", "add", "--practice", harbor, "--url", "http://127.0.0.1:9/", **PRIVATE)
    done = line.run("webhook", "test", added["endpointId"], **PRIVATE)
    assert (done.status, done.err) == (1, "")
    assert "Not received: no connection" in done.out
    refused = line.run("webhook", "test", added["endpointId"])
    assert "Not received: forbidden address" in refused.out, "what was added when it was allowed is not sent to now"

    on_database(line, lambda connection: connection.execute("UPDATE webhook_endpoint SET public_only = true"))
    of_console = line.run("webhook", "test", added["endpointId"], **PRIVATE)
    assert "Not received: forbidden address" in of_console.out, "nor what an admin has added, where it is allowed"


def test_the_feed_of_events_is_followed_as_they_happen(line: CommandLine) -> None:
    with line.serving("--demo") as served, served.client("integration") as client:
        following = subprocess.Popen(
            [COMMAND, "events", "tail", "--practice", "demo", "--follow", "--json"],
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=line.environment(),
        )
        stop = threading.Timer(60, following.kill)  # then there is no further line
        stop.start()
        with following:
            assert following.stdout is not None
            book_and_cancel(client)  # whatever happened so far is shown, or is now about to be
            appointment = book_and_cancel(client)
            found: list[Any] = []
            for text in following.stdout:
                document = json.loads(text)
                if document["data"].get("appointmentId") == appointment:
                    found.append(document["type"])
                if len(found) == 2:
                    break
            following.kill()
        stop.cancel()
    assert found == ["appointment.booked", "appointment.cancelled"]


def test_following_shows_an_event_that_commits_late_under_a_lower_id(line: CommandLine, harbor: str) -> None:
    insert = """INSERT INTO outbox (practice_id, type, subject, occurred_at)
                SELECT practice_id, $1, '{}', now() FROM practice WHERE slug = 'harbor'"""

    async def happen_out_of_order(connection: Any) -> list[str]:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(insert, "test.late")
        await asyncio.to_thread(on_database, line, lambda other: other.execute(insert, "test.soon"))
        following = subprocess.Popen(
            [COMMAND, "events", "tail", "--practice", harbor, "--follow", "--json"],
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=line.environment(),
        )
        output = following.stdout
        assert output is not None
        stop = threading.Timer(40, following.kill)  # then there is no further line
        stop.start()
        with following:
            first = await asyncio.to_thread(output.readline)
            await transaction.commit()
            second = await asyncio.to_thread(output.readline)
            following.kill()
        stop.cancel()
        return [json.loads(text)["type"] for text in (first, second)]

    assert on_database(line, happen_out_of_order) == ["test.soon", "test.late"]
