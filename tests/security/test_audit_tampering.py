"""What an attacker can and cannot do to the audit trail unnoticed: with the service's database role, with the
owner's, and with a head that was kept elsewhere."""

import json
import logging
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from frontdesk.audit.heads import AuditHeads, Head
from frontdesk.audit.trail import chain_hash, seal
from frontdesk.audit.verify import ChainReport, verify_chain
from tests.cli.in_process import Command, command
from tests.support.world import World, book, patient_id

__all__ = ["command"]

HARBOR = 1


async def records(world: World, count: int) -> None:
    agent = await world.client()
    for _ in range(count):
        await patient_id(agent)
    await seal(world.database, HARBOR)


def signing(world: World, file: Path | None = None) -> AuditHeads:
    """As another process has it: without memory of what was signed before."""
    return AuditHeads(world.database, world.service.engine.audit, world.service.ring, world.clock, file)


async def verified(world: World, *kept: Head) -> ChainReport:
    return await verify_chain(world.database, HARBOR, world.clock.now, keys=world.service.ring, kept=kept)


def kinds(report: ChainReport) -> list[str]:
    return [violation.kind for violation in report.violations]


async def remove_newest(owner: asyncpg.Connection, count: int) -> None:
    """Removes the newest records with their seals and signed heads, and moves the head back."""
    last = await owner.fetchval("SELECT max(sequence) FROM audit_seal WHERE practice_id = $1", HARBOR) - count
    await owner.execute("ALTER TABLE audit_head DISABLE TRIGGER audit_head_forward")
    await owner.execute(
        """DELETE FROM audit_record r USING audit_seal s
           WHERE s.practice_id = $1 AND s.sequence > $2 AND (r.practice_id, r.record_id) = (s.practice_id, s.record_id)
        """,
        HARBOR,
        last,
    )
    for table in ("audit_seal", "audit_signed_head"):
        await owner.execute(f"DELETE FROM {table} WHERE practice_id = $1 AND sequence > $2", HARBOR, last)
    await owner.execute(
        """UPDATE audit_head h SET sequence = s.sequence, hash = s.hash FROM audit_seal s
           WHERE h.practice_id = $1 AND s.practice_id = $1 AND s.sequence = $2""",
        HARBOR,
        last,
    )


async def rewrite(owner: asyncpg.Connection, sequence: int) -> None:
    """Changes a record and computes the chain again from there on, as anybody can: its hash has no key."""
    await owner.execute("ALTER TABLE audit_head DISABLE TRIGGER audit_head_forward")
    rows = await owner.fetch(
        """SELECT s.sequence, s.hash, r.* FROM audit_seal s JOIN audit_record r USING (practice_id, record_id)
           WHERE s.practice_id = $1 ORDER BY s.sequence""",
        HARBOR,
    )
    previous = b""
    for row in rows:
        record = dict(row)
        if row["sequence"] == sequence:
            record["actor"] = "somebody else"
            await owner.execute(
                "UPDATE audit_record SET actor = $3 WHERE practice_id = $1 AND record_id = $2",
                HARBOR, row["record_id"], record["actor"],
            )  # fmt: skip
        previous = chain_hash(previous, record)
        await owner.execute(
            "UPDATE audit_seal SET hash = $3 WHERE practice_id = $1 AND sequence = $2",
            HARBOR, row["sequence"], previous,
        )  # fmt: skip
    await owner.execute("UPDATE audit_head SET hash = $2 WHERE practice_id = $1", HARBOR, previous)


async def test_the_service_cannot_move_a_head_back_nor_touch_what_is_recorded(world: World) -> None:
    await records(world, 3)
    await signing(world).sign_due()
    for statement in (
        "UPDATE audit_head SET sequence = sequence - 1",
        "UPDATE audit_head SET hash = sha256('x')",
        "DELETE FROM audit_head",
        "TRUNCATE audit_head",
        "ALTER TABLE audit_head DISABLE TRIGGER audit_head_forward",
        "SET session_replication_role = replica",
        "DROP TRIGGER audit_head_forward ON audit_head",
        "UPDATE audit_signed_head SET hash = sha256('x')",
        "DELETE FROM audit_signed_head",
        "TRUNCATE audit_signed_head",
        "UPDATE audit_record SET actor = 'x'",
        "DELETE FROM audit_record",
        "UPDATE audit_seal SET hash = sha256('x')",
        "DELETE FROM audit_seal",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with world.database.transaction(HARBOR) as connection:
                await connection.execute(statement)
    assert kinds(await verified(world)) == []
    # What the sealer may do it can misuse, but not unnoticed: take a record from those that wait for their seal.
    await patient_id(await world.client())
    async with world.database.transaction(HARBOR) as connection:
        await connection.execute("DELETE FROM audit_unsealed WHERE practice_id = $1", HARBOR)
    assert kinds(await verified(world)) == ["sealMissing"]


@pytest.mark.one_server
async def test_a_rewritten_trail_differs_from_its_signed_head(world: World, owner: asyncpg.Connection) -> None:
    await records(world, 5)
    await signing(world).sign_due()
    await rewrite(owner, 3)
    assert kinds(await verify_chain(world.database, HARBOR, world.clock.now)) == ["signedHeadMismatch"]
    await owner.execute(
        """UPDATE audit_signed_head g SET hash = h.hash FROM audit_head h
           WHERE g.practice_id = $1 AND h.practice_id = $1""",
        HARBOR,
    )
    assert kinds(await verified(world)) == ["signatureInvalid"]


@pytest.mark.one_server
async def test_subjects_that_were_joined_to_hide_a_patient_are_reported(
    world: World, owner: asyncpg.Connection
) -> None:
    await book(await world.client())
    await seal(world.database, HARBOR)
    await signing(world).sign_due()
    joined = await owner.execute(
        """UPDATE audit_record SET subject_ids = ARRAY[array_to_string(subject_ids, ',')]
           WHERE operation = 'book_appointment' AND outcome = 'executed' AND cardinality(subject_ids) > 1"""
    )
    assert joined == "UPDATE 1"
    assert kinds(await verified(world)) == ["changed"]


@pytest.mark.one_server
async def test_a_signature_of_another_practice_or_key_is_not_valid(world: World, owner: asyncpg.Connection) -> None:
    await records(world, 2)
    await signing(world).sign_due()
    assert (await verified(world)).violations == ()
    for change in ("signed_at = signed_at + interval '1 second'", "key_id = 'another'", "signature = '\\x00'"):
        async with owner.transaction():
            await owner.execute("CREATE TEMPORARY TABLE before AS SELECT * FROM audit_signed_head")
            await owner.execute(f"UPDATE audit_signed_head SET {change}")
        assert kinds(await verified(world)) == ["signatureInvalid"]
        await owner.execute("DELETE FROM audit_signed_head")
        await owner.execute("INSERT INTO audit_signed_head SELECT * FROM before")
        await owner.execute("DROP TABLE before")
    await world.service.ring.rotate("audit-heads")
    assert (await verified(world)).violations == (), "an older key verifies forever"


@pytest.mark.one_server
async def test_removing_the_newest_records_is_revealed_by_a_head_kept_elsewhere(
    world: World, owner: asyncpg.Connection, command: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "kept.jsonl"
    running = signing(world, file)
    await records(world, 10)
    with caplog.at_level(logging.INFO):
        await running.sign_due()
        await records(world, 50)
        await running.sign_due()
        await signing(world, file).sign_due()  # another process finds nothing to sign
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["sequence"] for line in lines] == [10, 60]
    assert file.stat().st_mode & 0o777 == 0o600
    logged = [record for record in caplog.records if record.getMessage() == "audit head"]
    assert [(line.practice, line.sequence, line.hash) for line in logged] == [  # type: ignore[attr-defined]
        (line["practice"], line["sequence"], line["hash"]) for line in lines
    ]
    earlier, newest = (f"{line['sequence']}:{line['hash']}" for line in lines)
    whole = await command("audit", "verify", "--json", "--heads", str(file), "--head", f"harbor:{newest}")
    assert (whole.status, whole.err) == (0, ""), whole
    assert whole.document["practices"][0]["signed"] == {
        "first": {"sequence": 10, "signedAt": lines[0]["signedAt"]},
        "last": {"sequence": 60, "signedAt": lines[1]["signedAt"]},
        "signaturesChecked": True,
    }

    await remove_newest(owner, 50)
    assert (await verified(world)).violations == (), "the database alone does not reveal it"
    here = ("audit", "verify", "--practice", "harbor")
    assert (await command(*here, "--head", earlier)).status == 0
    for options in (("--head", newest), ("--heads", str(file)), ("--head", earlier, "--head", newest)):
        broken = await command(*here, *options)
        assert broken.status == 1
        assert "does not contain the head with sequence 60 that was kept elsewhere" in broken.err
    # The process that signed the head refuses to sign the trail without it, however long it grows again.
    await records(world, 60)
    await running.sign_due()
    refusal = next(record for record in caplog.records if record.getMessage() == "audit signing failed")
    assert refusal.exc_info is not None
    assert refusal.exc_info[0].__name__ == "TrailAlteredError"  # type: ignore[union-attr]
    assert len(file.read_text().splitlines()) == 2
    broken = await command(*here, "--head", newest)
    assert "it has another hash there" in broken.err


async def test_a_false_signed_head_does_not_stop_signing_unnoticed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The service's role may add signed heads: one far ahead looks as if everything was signed."""
    await records(world, 2)
    async with world.database.transaction(HARBOR) as connection:
        await connection.execute(
            "INSERT INTO audit_signed_head VALUES ($1, 1000000, sha256('x'), now(), 'none', '')", HARBOR
        )
    await signing(world).sign_due()
    assert "audit signing failed" in caplog.messages
    assert kinds(await verified(world)) == ["signedHeadMismatch"]


async def test_heads_that_cannot_be_read_are_bad_input(world: World, command: Command, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"message": "request"}\n')
    digest = "0" * 64
    odd = {}
    for name, practice, sequence in (("number", 5, 1), ("text", "harbor", "one"), ("true", "harbor", True)):
        odd[name] = tmp_path / f"{name}.jsonl"
        line = json.dumps({"practice": practice, "sequence": sequence, "hash": digest})
        odd[name].write_text(f"{'[' * 100_000}\n{line}\n")
    for options, message in (
        (("--head", f"1:{digest}"), "needs --practice"),
        (("--practice", "harbor", "--head", "1:abc"), "is not a head"),
        (("--head", f"harbour:1:{digest}"), "the closest is"),
        (("--heads", str(empty)), "contains no audit head"),
        (("--heads", str(tmp_path / "none")), "cannot be read"),
        (("--heads", str(odd["number"])), "belongs to the practice '5', which is not here"),
        (("--heads", str(odd["text"])), f"{odd['text']}:2: this is not an audit head"),
        (("--heads", str(odd["true"])), f"{odd['true']}:2: this is not an audit head"),
    ):
        ended = await command("audit", "verify", *options)
        assert ended.status == 2, (options, ended)
        assert message in ended.err


async def test_heads_are_signed_at_shutdown(world: World, caplog: pytest.LogCaptureFixture) -> None:
    await patient_id(await world.client())
    step: Any = world.service.audit_heads.step
    with caplog.at_level(logging.INFO):
        await step.close()
    assert [record.sequence for record in caplog.records if record.getMessage() == "audit head"] == [1]  # type: ignore[attr-defined]


async def test_a_trail_from_before_signatures_verifies_and_says_since_when_it_is_signed(
    world: World, command: Command
) -> None:
    await records(world, 5)
    report = await verified(world)
    assert (report.signed, report.violations) == (None, ())
    world.clock.advance(minutes=5)
    await signing(world).sign_due()
    report = await verified(world)
    assert report.violations == ()
    assert report.signed is not None
    assert (report.signed.first_sequence, report.signed.first_signed_at) == (5, world.clock.now)
    shown = await command("audit", "verify", "--practice", "harbor")
    assert "2026-11-15T08:05:00Z" in shown.out


async def test_without_the_secret_key_signatures_are_not_checked_and_no_key_is_made(
    world: World, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await records(world, 1)
    await signing(world).sign_due()
    monkeypatch.setenv("FRONTDESK_DATA_DIR", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    ended = await command("audit", "verify", "--json")
    assert ended.status == 0
    assert "signatures were not checked" in ended.err
    assert list((tmp_path / "elsewhere").iterdir()) == []
