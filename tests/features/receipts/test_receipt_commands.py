"""`frontdesk audit receipt` and `frontdesk audit verify-receipt`."""

import base64
import json
from pathlib import Path

import httpx

from tests.cli.in_process import Command, command
from tests.console.desk import records
from tests.features.receipts.conftest import issued, listed, published
from tests.support.world import World, book, patient_id

__all__ = ["command"]

NESTED = base64.urlsafe_b64encode(b"[" * 99_999).decode()  # deeper than can be read


async def test_a_receipt_is_issued_by_record_or_request_and_verified_offline(
    world: World, agent: httpx.AsyncClient, command: Command, tmp_path: Path
) -> None:
    booked = await book(agent)
    [record] = await records(world, operation="book_appointment", outcome="executed")
    [shown] = [
        each
        for each in (await command("audit", "list", "--practice", "harbor", "--json")).document
        if each["recordId"] == record["record_id"]
    ]
    assert shown["challenge"] == record["challenge"].hex()
    keys, file = tmp_path / "jwks.json", tmp_path / "receipt.jws"
    keys.write_text(json.dumps(await published(world)))
    wrote = await command("audit", "receipt", str(record["record_id"]), "--practice", "harbor", "--output", str(file))
    assert (wrote.status, wrote.out) == (0, f"Wrote the receipt to {file}.\n"), wrote
    again = await command("audit", "receipt", str(record["record_id"]), "--practice", "harbor", "--output", str(file))
    assert again.status == 1, "it overwrites nothing"

    verified = await command("audit", "verify-receipt", str(file), "--keys", str(keys))
    assert verified.status == 0, verified
    for part in ("valid", "book_appointment, executed", "agent of harbor", "Dr. Robert Chen", booked):
        assert part in verified.out
    assert "token, reported by the client" in verified.out
    by_request = await command(
        "audit", "receipt", "--request-id", record["request_id"], "--practice", "harbor", "--json"
    )
    file.write_text(by_request.document["receipt"])
    document = (await command("audit", "verify-receipt", str(file), "--keys", str(keys), "--json")).document
    assert (document["valid"], document["states"]["record"]["recordId"]) == (True, record["record_id"])

    entries = await records(world, operation="command.issue_receipt")
    subjects = [booked, await patient_id(agent)]
    assert [(each["actor"], each["subject_ids"]) for each in entries] == [("command-line", subjects)] * 2


async def test_a_receipt_that_was_changed_is_refused(
    world: World, agent: httpx.AsyncClient, command: Command, tmp_path: Path
) -> None:
    await book(agent)
    text = await issued(agent, (await listed(agent))[0]["id"])
    keys, file = tmp_path / "jwks.json", tmp_path / "receipt.jws"
    keys.write_text(json.dumps(await published(world)))
    for content, says in (
        (f"A{text[1:]}", "This is not a receipt."),
        (f"{text[:-2]}{'AA' if not text.endswith('AA') else 'BA'}", "The signature is not valid."),
        ("é", "This is not a receipt."),
        ("", "This is not a receipt."),
        (f"{NESTED}.AAAA.{'A' * 86}", "This is not a receipt."),
    ):
        file.write_text(content, encoding="utf-8")
        refused = await command("audit", "verify-receipt", str(file), "--keys", str(keys))
        assert (refused.status, refused.err) == (1, f"{says}\n"), content
    file.write_text(text)
    for content in ("[]", "[" * 100_000):
        keys.write_text(content)
        refused = await command("audit", "verify-receipt", str(file), "--keys", str(keys))
        assert (refused.status, refused.err) == (2, f"{keys} is no set of keys (JWKS).\n")
    gone = await command("audit", "verify-receipt", str(tmp_path / "none"), "--keys", str(keys))
    assert gone.status in (1, 2)


async def test_only_writes_that_were_agreed_to_have_a_receipt(
    world: World, agent: httpx.AsyncClient, command: Command
) -> None:
    await book(agent)
    [read] = await records(world, operation="match_patient")
    [booked] = await records(world, operation="book_appointment", outcome="executed")
    for words in (
        (str(read["record_id"]), "--practice", "harbor"),
        (str(booked["record_id"]), "--practice", "other"),
        ("--request-id", "f" * 32, "--practice", "harbor"),
        ("x", "--practice", "harbor"),
        ("--practice", "harbor"),
        (str(booked["record_id"]), "--request-id", "x", "--practice", "harbor"),
    ):
        refused = await command("audit", "receipt", *words)
        assert (refused.status, refused.out) == (2, ""), words
    assert await records(world, operation="command.issue_receipt") == []


async def test_several_writes_with_one_request_id_are_named(
    world: World, agent: httpx.AsyncClient, command: Command
) -> None:
    agent.headers["traceparent"] = f"00-{'a' * 32}-{'b' * 16}-01"
    for _ in range(2):
        await book(agent)
    refused = await command("audit", "receipt", "--request-id", "a" * 32, "--practice", "harbor")
    written = await records(world, operation="book_appointment", outcome="executed")
    assert refused.status == 2
    assert all(str(each["record_id"]) in refused.err for each in written)
