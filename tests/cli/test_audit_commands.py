"""`frontdesk audit`: every way of tampering is found and named; the export can be checked without frontdesk."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frontdesk.audit import reading, verify
from frontdesk.store.database import Database
from tests.cli.command_line import CommandLine, on_database

NOW = datetime.now(UTC)
PRACTICE = """
INSERT INTO practice (slug, name, time_zone, minimum_notice_minutes, booking_horizon_days, slot_interval_minutes,
    scheduling_system, sandbox, created_at)
VALUES ($1, $1, 'UTC', 0, 90, 15, '{"kind": "native"}', false, now())
"""

# What somebody with the owner's rights does to a practice's trail of six sealed records, and what is found then:
# the kind of violation, the sequence and which of the records (counted from one).
TAMPERING: dict[str, tuple[str, list[tuple[str, int | None, int | None]]]] = {
    "untouched": ("SELECT 1", []),
    "exported": ("SELECT 1", []),
    "outcome-changed": (
        "UPDATE audit_record SET outcome = 'executed' WHERE record_id = {r3}",
        [("changed", 3, 3)],
    ),
    "time-changed": (
        "UPDATE audit_record SET at = at + interval '1 microsecond' WHERE record_id = {r1}",
        [("changed", 1, 1)],
    ),
    "time-made-absurd": (
        "UPDATE audit_record SET at = 'infinity', subject_ids = ARRAY[NULL] WHERE record_id = {r2}",
        [("changed", 2, 2)],
    ),
    "time-beyond-python": ("UPDATE audit_record SET at = '20000-01-01' WHERE record_id = {r2}", [("changed", 2, 2)]),
    "seal-changed": (
        "UPDATE audit_seal SET hash = sha256('x') WHERE record_id = {r4}",
        [("changed", 4, 4), ("changed", 5, 5)],
    ),
    "record-removed": ("DELETE FROM audit_record WHERE record_id = {r2}", [("removed", 2, 2)]),
    "seal-removed": (
        "DELETE FROM audit_seal WHERE record_id = {r3}",
        [("sealMissing", 3, None), ("sealMissing", None, 3)],
    ),
    "both-removed": (
        "DELETE FROM audit_record WHERE record_id = {r3}; DELETE FROM audit_seal WHERE record_id = {r3}",
        [("sealMissing", 3, None)],
    ),
    "end-removed": (
        "DELETE FROM audit_record WHERE record_id >= {r5} AND practice_id = {practice};"
        "DELETE FROM audit_seal WHERE record_id >= {r5} AND practice_id = {practice}",
        [("sealMissing", 5, None)],
    ),
    "end-removed-and-head-moved": (
        "DELETE FROM audit_record WHERE record_id = {r6}; DELETE FROM audit_seal WHERE record_id = {r6};"
        "UPDATE audit_head SET sequence = 5 WHERE practice_id = {practice}",
        [("headMismatch", 5, None)],
    ),
    "records-swapped": (
        "UPDATE audit_seal SET record_id = -1 WHERE record_id = {r2};"
        "UPDATE audit_seal SET record_id = {r2} WHERE record_id = {r4};"
        "UPDATE audit_seal SET record_id = {r4} WHERE record_id = -1 AND practice_id = {practice}",
        [("reordered", 2, 4), ("reordered", 4, 2)],
    ),
    "seals-swapped": (
        "UPDATE audit_seal SET sequence = -1 WHERE record_id = {r2};"
        "UPDATE audit_seal SET sequence = 2 WHERE record_id = {r3};"
        "UPDATE audit_seal SET sequence = 3 WHERE record_id = {r2}",
        [("reordered", 2, 3), ("reordered", 3, 2), ("reordered", 4, 4)],
    ),
    "gap-closed": (
        "DELETE FROM audit_record WHERE record_id = {r2}; DELETE FROM audit_seal WHERE record_id = {r2};"
        "UPDATE audit_seal SET sequence = sequence - 1 WHERE practice_id = {practice} AND sequence = 3;"
        "UPDATE audit_seal SET sequence = sequence - 1 WHERE practice_id = {practice} AND sequence = 4;"
        "UPDATE audit_seal SET sequence = sequence - 1 WHERE practice_id = {practice} AND sequence = 5;"
        "UPDATE audit_seal SET sequence = sequence - 1 WHERE practice_id = {practice} AND sequence = 6;"
        "UPDATE audit_head SET sequence = 5 WHERE practice_id = {practice}",
        [("changed", 2, 3)],
    ),
    "head-changed": (
        "UPDATE audit_head SET hash = sha256('x') WHERE practice_id = {practice}",
        [("headMismatch", 6, None)],
    ),
    "head-removed": ("DELETE FROM audit_head WHERE practice_id = {practice}", [("headMismatch", 0, None)]),
    "record-slipped-in": (
        "INSERT INTO audit_record (practice_id, at, actor, operation, outcome, subject_ids, request_id)"
        " VALUES ({practice}, now(), 'somebody', 'get_patient', 'ok', '{{}}', 'x')",
        [("sealMissing", None, 7)],
    ),
    "removed-before-sealing": (
        "INSERT INTO audit_unsealed (practice_id, record_id) VALUES ({practice}, {r6} + 1000000)",
        [("removed", None, None)],
    ),
    "stuck-unsealed": (
        "SELECT append_audit({practice}, now() - interval '2 minutes', 'a', 'get_patient', 'ok', '{{}}', 'r');"
        "UPDATE audit_head SET sequence = 3 WHERE practice_id = {practice}",
        [("headMismatch", 3, None), ("unsealed", None, 7)],
    ),
}


def _append(line: CommandLine, slugs: list[str], count: int) -> None:
    async def work(connection: Any) -> None:
        for slug in slugs:
            for number in range(1, count + 1):
                await connection.execute(
                    """SELECT append_audit((SELECT practice_id FROM practice WHERE slug = $1), $2, $3, $4, 'ok', $5, $6)
                    """,
                    slug,
                    NOW + timedelta(seconds=number, microseconds=number),
                    f"fd_client{number % 2}",
                    ("get_patient", "book_appointment")[number % 2],
                    [f"pat_{slug}{number}", "apt_é"],
                    f"request{number}",
                )

    on_database(line, work)


@pytest.fixture(scope="module")
def trails(line: CommandLine) -> dict[str, list[int]]:
    """A practice per way of tampering, each with six sealed records; their ids by practice."""
    line.json("db", "migrate")
    on_database(line, lambda connection: connection.executemany(PRACTICE, [(slug,) for slug in TAMPERING]))
    _append(line, list(TAMPERING), 6)
    assert line.json("audit", "verify")["whole"] is True

    async def ids(connection: Any) -> dict[str, list[int]]:
        rows = await connection.fetch(
            """SELECT p.slug, array_agg(r.record_id ORDER BY r.record_id) AS ids
               FROM practice p JOIN audit_record r USING (practice_id) GROUP BY p.slug"""
        )
        return {row["slug"]: list(row["ids"]) for row in rows}

    found: dict[str, list[int]] = on_database(line, ids)
    return found


def test_records_are_found_by_who_what_and_whom(line: CommandLine, trails: dict[str, list[int]]) -> None:
    newest = line.json("audit", "list", "--practice", "untouched")
    assert [record["recordId"] for record in newest] == trails["untouched"][::-1]
    assert [record["sequence"] for record in newest] == [6, 5, 4, 3, 2, 1]
    words = ("--client", "fd_client1", "--operation", "book_appointment", "--limit", "2")
    found = line.json("audit", "list", "--practice", "untouched", *words)
    assert [record["sequence"] for record in found] == [5, 3]
    (found,) = line.json("audit", "list", "--subject", "pat_seal-removed4")
    assert (found["practice"], found["actor"], found["subjectIds"]) == (
        "seal-removed", "fd_client0", ["pat_seal-removed4", "apt_é"],
    )  # fmt: skip
    across = line.json("audit", "list", "--limit", "5")
    assert [record["at"] for record in across] == sorted((record["at"] for record in across), reverse=True)
    table = line.run("audit", "list", "--practice", "untouched", "--limit", "1").out.splitlines()
    assert len(table) == 2
    assert "book_appointment" not in table[1]
    assert line.run("audit", "list", "--practice", "nowhere").status == 2
    assert line.run("audit", "list", "--subject", "\udcff").err == "An argument is not UTF-8 text.\n"


def test_an_export_can_be_checked_with_nothing_but_sha256(line: CommandLine, trails: dict[str, list[int]]) -> None:
    records = [json.loads(text) for text in line.run("audit", "export", "--practice", "exported").out.splitlines()]
    assert [record["recordId"] for record in records[:6]] == trails["exported"]
    assert [record["sequence"] for record in records] == [1, 2, 3, 4, 5, 6, 7]
    assert (records[6]["actor"], records[6]["operation"]) == ("command-line", "console.export_audit")
    previous = b""
    for record in records:
        at = datetime.fromisoformat(record["at"])
        values = [
            str(record["practiceId"]),
            str(record["recordId"]),
            str((at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)),
            record["actor"],
            record["operation"],
            record["outcome"],
            ",".join(record["subjectIds"]),
            record["requestId"],
        ]
        text = "".join(f"{len(value.encode())}:{value}" for value in values)
        previous = hashlib.sha256(previous + hashlib.sha256(text.encode()).digest()).digest()
        assert record["hash"] == previous.hex()
    *again, of_this_export = line.json("audit", "export", "--practice", "exported")
    assert (again, of_this_export["sequence"]) == (records, 8)


def test_an_export_of_no_practice_is_an_error_and_nothing_else(line: CommandLine) -> None:
    done = line.run("audit", "export", "--practice", "nowhere", "--json")
    assert (done.status, json.loads(done.out)) == (2, {"error": done.err.rstrip("\n")})


def test_tampering_is_found_and_named(line: CommandLine, trails: dict[str, list[int]]) -> None:
    async def tamper(connection: Any) -> None:
        await connection.execute("ALTER TABLE audit_head DISABLE TRIGGER audit_head_forward")
        for slug, (statements, _) in TAMPERING.items():
            practice = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = $1", slug)
            numbered = {f"r{place}": record for place, record in enumerate(trails[slug], 1)}
            await connection.execute(statements.format(practice=practice, **numbered))

    on_database(line, tamper)
    done = line.run("audit", "verify", "--json")
    report = json.loads(done.out)
    assert (done.status, report["whole"]) == (1, False)
    found = {practice["practice"]: practice["violations"] for practice in report["practices"]}
    assert set(found) == set(TAMPERING)
    for slug, (_, expected) in TAMPERING.items():
        named = [
            (violation["kind"], violation["sequence"], _place(trails[slug], violation["recordId"]))
            for violation in found[slug]
        ]
        assert named == expected, (slug, found[slug])
        for violation in found[slug]:
            assert f"{slug}: {violation['message']}\n" in done.err
            if violation["recordId"] is not None:
                assert f"Record {violation['recordId']}" in violation["message"]
    whole = line.run("audit", "verify", "--practice", "untouched")
    assert (whole.status, whole.err) == (0, "")


def _place(ids: list[int], record_id: int | None) -> int | None:
    """Which of a practice's records; one past the last for what tampering itself has added."""
    if record_id is None or record_id >= ids[-1] + 1_000_000:
        return None
    return ids.index(record_id) + 1 if record_id in ids else len(ids) + 1


def test_records_that_wait_for_their_seal_are_sealed_first(line: CommandLine, trails: dict[str, list[int]]) -> None:
    _append(line, ["untouched"], 150)
    (practice,) = line.json("audit", "verify", "--practice", "untouched")["practices"]
    assert practice["violations"] == []
    assert practice["head"]["sequence"] == 156


def test_broken_trails_are_exported_too(line: CommandLine, trails: dict[str, list[int]]) -> None:
    for zone in ("UTC", "Asia/Kolkata", "America/New_York"):
        done = line.run("audit", "export", TZ=zone)
        assert done.status == 0, done
        exported = [json.loads(text) for text in done.out.splitlines()]
        assert {record["practice"] for record in exported} == set(TAMPERING)
        times = {record["practice"]: record["at"] for record in exported if record["sequence"] == 2 and "at" in record}
        assert times["time-made-absurd"] == times["time-beyond-python"] == "9999-12-30T00:00:00.000000Z"
    listed = line.json("audit", "list", "--limit", "500")
    assert {record["practice"] for record in listed} == set(TAMPERING)


async def test_a_trail_of_many_batches_is_read_whole(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH", 4)
    monkeypatch.setattr(verify, "BATCH", 4)
    await database.write(PRACTICE, "long")
    practice = await database.fetchval("SELECT practice_id FROM practice WHERE slug = 'long'")
    for number in range(13):
        subjects = ["pat_rare"] if number == 1 else []
        await database.write("SELECT append_audit($1, $2, 'a', 'o', 'ok', $3, 'r')", practice, NOW, subjects)
    report = await verify.verify_chain(database, practice, NOW)
    assert (report.sequence, report.violations) == (13, ())
    (rare,) = (
        await reading.find_records(database, practice, reading.AuditFilter(subject="pat_rare"), limit=50)
    ).records
    assert rare["sequence"] == 2
    found = (await reading.find_records(database, practice, reading.AuditFilter(), limit=50)).records
    assert [row["sequence"] for row in found] == list(range(13, 0, -1))
