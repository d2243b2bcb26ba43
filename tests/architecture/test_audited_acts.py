"""Every command and every action of the console leaves an audit record, or stands here with the reason why not."""

import argparse
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk.cli import _parser
from frontdesk.feature import features
from frontdesk.store import database as store
from frontdesk.store import hosts
from tests.cli.in_process import Command, command
from tests.support.audited_features import Audited, audited
from tests.support.world import PRACTICE, World, book

__all__ = ["command"]

# Run in this order; a name in braces is an id that an earlier command has printed.
AUDITED = """
practice import {file}                                                    console.import_practice_file
practice import {file} --dry-run                                          console.compare_patients
patient import {csv} --practice harbor                                    command.import_patients
practice export harbor                                                    console.export_practice_file
practice export harbor --with-patients                                    command.export_patients
practice suspend harbor                                                   command.suspend_practice
practice resume harbor                                                    command.resume_practice
client add --practice harbor --name New --grant agent --scope slots:read  console.add_client
client disable {clientId}                                                 console.disable_client
client enable {clientId}                                                  console.enable_client
client trust {clientId}                                                   console.trust_client
client distrust {clientId}                                                console.distrust_client
client rotate-secret {clientId}                                           console.rotate_client_secret
client revoke-tokens {clientId}                                           console.revoke_client_tokens
client set-access {clientId} --scope slots:read                           console.change_client
client set-scopes {clientId} slots:read                                   console.change_client
client set-limits {clientId} --per-minute 5                               console.change_client
client set-keys {clientId} --remove                                       console.change_client
client forget-misses {clientId}                                           console.forget_client_misses
staff add --practice harbor --name New --role staff                       console.add_staff
staff link {staffId}                                                      console.new_link
staff disable {staffId}                                                   console.disable_staff
staff enable {staffId}                                                    console.enable_staff
staff set-role {staffId} --role admin                                     console.set_staff_role
webhook add --practice harbor --url http://127.0.0.1:9/hook               command.add_webhook
webhook pause {endpointId}                                                console.pause_webhook
webhook resume {endpointId}                                               console.resume_webhook
webhook rotate-secret {endpointId}                                        command.rotate_webhook_secret
webhook replay {endpointId}                                               console.replay_webhook
events tail --practice harbor                                             command.read_events
feed add --practice harbor --provider 10                                  command.add_feed
feed add --practice harbor --provider 10 --with-names                     command.add_feed_with_names
audit export --practice harbor                                            console.export_audit
keys rotate                                                               command.rotate_keys
keys reencrypt                                                            command.reencrypt_keys
"""
REMOVING = """
client remove {clientId} --yes  command.remove_client
staff remove {staffId}       console.remove_staff
webhook remove {endpointId}  command.remove_webhook
feed revoke {feedId}         command.revoke_feed
"""
AUDITED_ELSEWHERE = {
    "backup": "cli/test_backups.py",
    "restore": "cli/test_backups.py",
    "practice remove": "cli/test_removals.py",
    "serve": "cli/test_demo_data.py",
    "audit receipt": "features/receipts/test_receipt_commands.py",
}
# Run in transactions that cannot write, so that none of them changes anything.
READING = """
config show
practice list
practice show harbor
practice check harbor
client list
client show {clientId}
staff list
staff show {staffId}
webhook list
webhook show {endpointId}
webhook deliveries {endpointId}
feed list --practice harbor
audit list
keys list
db status
doctor
support-bundle --output {bundle}
"""
WRITING_UNAUDITED = {
    "audit verify": "seals records that wait for it, and nothing else",
    "audit verify-receipt": "reads two files, and does not use the database",
    "practice init": "writes a file, and does not use the database",
    "practice schema": "prints a file of the package",
    "completion": "prints a script, and does not use the database",
    "db distribute": "moves rows to other servers as they are; the table of its steps records it",
    "db migrate": "changes tables and functions; the table of migrations records it",
    "webhook test": "sends a message without data, and changes nothing",
}

# Actions of the desk that disclose no patient and change nothing but the person's own view.
QUIET_ACTIONS = {
    "Assistants.all", "Assistants.application", "Assistants.are_allowed",
    "Assistants.one", "Assistants.trusted_hosts", "AuditRecords.actors",
    "AuditRecords.last_check", "AuditRecords.close",
    "Blocks.offered", "Blocks.upcoming", "Calendar.directory", "Calendar.next_working_day", "Calendar.version",
    "Checklist.progress", "Clients.all", "Clients.one",
    "Confirmations.recent", "Listener.next", "Overrides.broken_rules", "Overrides.offered",
    "PracticeFiles.opened",
    "PatientReads.alarms", "PatientReads.of_client", "PatientReads.of_clients",
    "Months.read", "Patients.searchable", "Patients.supports", "Preferences.choose_language",
    "Preferences.read", "Preferences.save", "Reports.read",
    "Staff.all", "Staff.one",
    "Staff.sign_ins", "SystemHealth.now",
    "Usage.of_clients", "Usage.over_time", "Webhooks.all",
}  # fmt: skip
RECORDS = re.compile(r"context\.(record|record_in|audit|call)\b|recorder_once\(context|context\.staff\.staff_id,\n")


def leaves(parser: argparse.ArgumentParser, *words: str) -> Iterator[str]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield " ".join(words)
    for group in groups:
        for name, each in group.choices.items():
            yield from leaves(each, *words, name)


def lines(table: str) -> list[list[str]]:
    return [re.split(r" {2,}", line) for line in table.splitlines() if line]


def test_every_command_is_audited_or_named_with_the_reason() -> None:
    known = [words for words, *_ in lines(AUDITED + REMOVING + READING)]
    known += [*AUDITED_ELSEWHERE, *WRITING_UNAUDITED]
    for leaf in leaves(_parser()):
        assert any(f"{words} ".startswith(f"{leaf} ") for words in known), f"is {leaf} audited?"


@pytest.mark.parametrize("package", ["frontdesk.desk", *(f"frontdesk.features.{each.name}" for each in features())])
def test_every_action_of_the_desk_is_audited_or_named(package: str) -> None:
    """Those of a feature are named in `audited.py` beside its tests."""
    is_desk = package == "frontdesk.desk"
    named = Audited(quiet_actions=QUIET_ACTIONS) if is_desk else audited(package.rpartition(".")[2])
    found, silent = set(), []
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        if module.name.endswith(("desk.context", "desk.actors")):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            for name, method in inspect.getmembers(kind, inspect.iscoroutinefunction):
                if kind.__module__ == module.name and not name.startswith("_"):
                    action = f"{kind.__name__}.{name}"
                    found.add(action)
                    source, by = inspect.getsource(method), named.recorded_by.get(action)
                    recorded = RECORDS.search(source) if by is None else f"self.{by}(context" in source
                    if action not in named.quiet_actions and not recorded:
                        silent.append(action)
    assert silent == []
    assert found >= {*named.quiet_actions}


async def records_of(world: World) -> list[Any]:
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch("SELECT * FROM audit_record WHERE practice_id = 1 ORDER BY record_id")
    return list(rows)


async def dead_letter(world: World, endpoint_id: str) -> None:
    async with world.database.transaction(1) as connection:
        await connection.execute(
            """INSERT INTO webhook_delivery (practice_id, endpoint_id, event_id, subject, state, attempts, due_at)
               SELECT 1, $1, max(event_id), 's', 'dead', 9, $2 FROM outbox WHERE practice_id = 1""",
            endpoint_id,
            world.clock.now,
        )


async def test_commands_leave_audit_records_and_the_others_write_nothing(
    world: World, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRONTDESK_WEBHOOK_ALLOW_PRIVATE", "true")
    (tmp_path / "harbor.yaml").write_text(PRACTICE.replace("SLUG", "harbor"))
    appointment = await book(await world.client())
    (tmp_path / "patients.csv").write_text("firstName,lastName,dob,phone\nMary,Shelley,1990-01-01,+1 555 010 0188\n")
    names = {"file": "harbor.yaml", "csv": "patients.csv", "bundle": "bundle.tar.gz"}
    ids: dict[str, Any] = {key: tmp_path / name for key, name in names.items()}

    async def run(words: str) -> list[Any]:
        """The records that a command leaves."""
        before = len(await records_of(world))
        ended = await command(*words.format(**ids).split(), "--json")
        assert ended.status == 0 or words == "doctor", (words, ended)
        if words.split()[1:2] == ["add"]:
            ids.update(ended.document)
        return (await records_of(world))[before:]

    async def run_audited(table: str) -> dict[str, list[Any]]:
        left = {}
        for words, operation in lines(table):
            if words.startswith("webhook replay"):
                await dead_letter(world, ids["endpointId"])
            left[operation] = await run(words)
            assert operation in [record["operation"] for record in left[operation]], words
            assert {record["actor"] for record in left[operation]} == {"command-line"}, words
        return left

    left = await run_audited(AUDITED)
    patients = {row["patient_id"] for row in await patients_of(world)}
    assert set(left["command.export_patients"][0]["subject_ids"]) == patients
    assert appointment in left["command.read_events"][0]["subject_ids"]
    with monkeypatch.context() as patch:
        settings = store.session_settings
        patch.setattr(store, "session_settings", lambda role: {**settings(role), "default_transaction_read_only": "on"})
        patch.setattr(hosts, "ACCEPTED", "any")
        for (words,) in lines(READING):
            assert await run(words) == [], words
    await run_audited(REMOVING)


async def patients_of(world: World) -> list[Any]:
    async with world.database.transaction(1) as connection:
        return list(await connection.fetch("SELECT patient_id FROM patient WHERE practice_id = 1"))


async def test_a_large_export_names_every_patient(world: World, command: Command) -> None:
    async with world.database.transaction(1) as connection:
        await connection.execute(
            """INSERT INTO patient (practice_id, number, patient_id, first_name, last_name, dob, phone, name_key,
                   phone_digits, seen, created_at, updated_at)
               SELECT 1, n, 'pat_' || lpad(n::text, 22, '0'), 'A', 'B', '2000-01-01', '5550100', 'a|b', '5550100', true,
                   now(), now()
               FROM generate_series(1000, 1500) n"""
        )
    assert (await command("practice", "export", "harbor", "--with-patients")).status == 0
    records = [row for row in await records_of(world) if row["operation"] == "command.export_patients"]
    assert [len(row["subject_ids"]) for row in records] == [200, 200, 105]
    named = {each for row in records for each in row["subject_ids"]}
    assert named == {row["patient_id"] for row in await patients_of(world)}
    (found,) = (await command("audit", "list", "--subject", "pat_0000000000000000001400", "--json")).document
    assert found["operation"] == "command.export_patients"
