"""`frontdesk doctor`: what is well is said to be well, and every ill is found."""

import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from frontdesk.access.keys.encryption import SecretKeyError
from frontdesk.cli import doctor
from frontdesk.cli.connection import has_embedded_database
from frontdesk.cli.output import CommandError
from frontdesk.serving.lifespan import create
from frontdesk.settings import Settings
from frontdesk.store import distribution
from frontdesk.store.distribution import Distribution
from tests.cli.command_line import CommandLine, Done, on_database
from tests.console.identity_provider import running_provider
from tests.support.ports import free_port
from tests.support.world import PRACTICE

FHIR = yaml.safe_dump(
    {
        "practice": {
            "slug": "distant",
            "name": "Distant",
            "timeZone": "UTC",
            "schedulingSystem": {
                "kind": "fhir",
                "baseUrl": "http://127.0.0.1:1/fhir",
                "locations": {"1": "Location/a"},
                "providers": {"10": "Practitioner/b"},
            },
        },
        "locations": [{"id": 1, "name": "Downtown"}],
        "providers": [
            {"id": 10, "name": "Dr. Chen", "hours": [{"location": 1, "days": ["mon"], "from": "09:00", "to": "12:00"}]}
        ],
        "visitTypes": [{"id": 20, "name": "Exam", "procedures": [{"id": 100, "name": "Exam", "durationMinutes": 15}]}],
    }
)
OTHER_SECRET = "an operator's secret of more than enough characters"


@pytest.fixture(scope="module")
def port() -> str:
    return str(free_port())


@pytest.fixture(scope="module")
def used(line: CommandLine) -> CommandLine:
    """A data directory as `serve` leaves it: tables, keys, a practice."""
    line.json("practice", "import", "-", stdin=PRACTICE.replace("SLUG", "harbor"))
    line.json("keys", "list")
    return line


@pytest.fixture
def restored(used: CommandLine) -> Iterator[CommandLine]:
    """What a test changes in these tables is put back."""
    yield used
    on_database(used, lambda connection: connection.execute("DELETE FROM migration WHERE number = 9999"))


def states(line: CommandLine, port: str, **settings: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Without the account that runs these tests: root has none of its own for the service."""
    done = line.run("doctor", "--json", **{"FRONTDESK_PORT": port, **settings})
    assert done.err == "", done
    document: Any = json.loads(done.out)
    assert document["healthy"] is (done.status == 0)
    found = {each["check"]: (each["state"], each["detail"]) for each in document["checks"]}
    if "account" in found:
        assert found.pop("account")[0] == ("failed" if os.geteuid() == 0 else "ok")
    return int(any(state == "failed" for state, _ in found.values())), found


def test_a_healthy_installation_is_healthy(used: CommandLine, port: str) -> None:
    status, found = states(used, port)
    assert status == 0
    assert {check: state for check, (state, _) in found.items()} == {
        "configuration": "ok",
        "settings file": "skipped",
        "data directory": "ok",
        "disk": "ok",
        "port": "ok",
        "network": "ok",
        "identity provider": "skipped",
        "mail": "skipped",
        "client documents": "skipped",
        "metrics": "skipped",
        "traces": "skipped",
        "database": "ok",
        "migrations": "ok",
        "clock": "ok",
        "keys": "ok",
        "upstreams": "skipped",
        "audit": "ok",
        "webhooks": "skipped",
        "upstream writes": "ok",
        "outbox": "ok",
        "sessions": "ok",
        "phone numbers": "warning",
        "proxies": "ok",
    }
    assert found["database"][1].startswith("PostgreSQL 18.")


def test_people_get_a_table(used: CommandLine, port: str) -> None:
    done: Done = used.run("doctor", FRONTDESK_PORT=port)
    assert done.status == (os.geteuid() == 0)
    assert done.out.splitlines()[0].split() == ["CHECK", "STATE", "DETAIL"]
    assert len(done.out.splitlines()) == 25


def test_an_empty_folder_is_well_and_stays_empty(tmp_path: Path, port: str) -> None:
    status, found = states(CommandLine(tmp_path / "none"), port)
    assert (status, found["database"][0], found["data directory"][0]) == (0, "skipped", "skipped")
    assert not (tmp_path / "none").exists()


def test_an_identity_provider_is_asked_who_it_is(used: CommandLine, port: str) -> None:
    with running_provider(time.time) as provider:
        settings = {
            "FRONTDESK_OIDC_ISSUER": provider.issuer,
            "FRONTDESK_OIDC_CLIENT_ID": "console",
            "FRONTDESK_OIDC_CLIENT_SECRET": "hunter2",
        }
        status, found = states(used, port, **settings)
        assert (status, found["identity provider"]) == (0, ("ok", provider.issuer))
        provider.metadata = {"issuer": "https://another.example"}
        status, found = states(used, port, **settings)
        assert (status, found["identity provider"][0]) == (1, "failed")
    status, found = states(used, port, **settings)
    assert (status, found["identity provider"][0]) == (1, "failed")


def test_a_setting_that_does_not_exist_is_found(used: CommandLine, port: str) -> None:
    status, found = states(used, port, FRONTDESK_PROT="1")
    assert (status, list(found)) == (1, ["configuration"])
    assert "FRONTDESK_PORT" in found["configuration"][1]


def test_a_database_that_does_not_answer_is_found_and_the_rest_is_still_told(used: CommandLine, port: str) -> None:
    url = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    status, found = states(used, port, FRONTDESK_DATABASE_URL=url)
    assert (status, found["database"][0], found["port"][0]) == (1, "failed", "ok")
    assert "cannot be reached" in found["database"][1]


def test_pending_and_foreign_migrations_are_found(restored: CommandLine, port: str) -> None:
    async def forget(connection: Any) -> Any:
        return await connection.fetchrow(
            "DELETE FROM migration WHERE number = (SELECT max(number) FROM migration) RETURNING *"
        )

    row = on_database(restored, forget)
    status, found = states(restored, port)
    assert (status, found["migrations"]) == (1, ("failed", "1 pending: run frontdesk db migrate"))

    async def replace(connection: Any) -> None:
        sql = (
            "INSERT INTO migration (feature, number, name, checksum, applied_at, phase) VALUES ($1, $2, $3, $4, $5, $6)"
        )
        await connection.execute(sql, *row.values())
        await connection.execute(sql, "", 9999, "future", "0", row["applied_at"], "after")

    on_database(restored, replace)
    status, found = states(restored, port)
    assert (status, found["migrations"][0]) == (1, "failed")
    assert "newer version" in found["migrations"][1]


def test_keys_that_the_secret_does_not_open_are_found(used: CommandLine, port: str) -> None:
    status, found = states(used, port, FRONTDESK_SECRET_KEY=OTHER_SECRET)
    assert (status, found["keys"][0]) == (1, "failed")
    assert OTHER_SECRET not in found["keys"][1]


def test_keys_under_an_older_secret_are_a_warning(used: CommandLine, port: str) -> None:
    both = f"{OTHER_SECRET},{(used.data_dir / 'secret.key').read_text().strip()}"
    status, found = states(used, port, FRONTDESK_SECRET_KEY=both)
    assert (status, found["keys"][0]) == (0, "warning")
    assert "keys reencrypt" in found["keys"][1]


def test_a_missing_secret_key_file_is_found_and_not_made(used: CommandLine, port: str) -> None:
    file = used.data_dir / "secret.key"
    aside = file.rename(file.with_suffix(".aside"))
    try:
        status, found = states(used, port)
        assert (status, found["keys"][0]) == (1, "failed")
        assert not file.exists()
    finally:
        aside.rename(file)


@pytest.mark.parametrize("secret", ["missing", OTHER_SECRET])
def test_no_command_works_with_another_secret_key_than_that_of_the_stored_keys(used: CommandLine, secret: str) -> None:
    file = used.data_dir / "secret.key"
    aside = file.rename(file.with_suffix(".aside"))
    settings = {} if secret == "missing" else {"FRONTDESK_SECRET_KEY": secret}
    advice = f"{file} is missing: put back your copy" if secret == "missing" else "another secret key"
    add_webhook = ("webhook", "add", "--practice", "harbor", "--url", "https://203.0.113.1/events")
    add_client = ("client", "add", "--practice", "harbor", "--name", "Agent", "--grant", "agent", "--scope", "all")
    try:
        for words in (add_webhook, add_client, ("keys", "list"), ("serve", "--port", str(free_port()))):
            done = used.run(*words, **{"FRONTDESK_WEBHOOK_ALLOW_PRIVATE": "true", **settings})
            assert (done.status, advice in done.err) == (1, True), done
            assert not file.exists()
    finally:
        aside.rename(file)
    assert used.json("webhook", "list") == []


def test_a_worker_does_not_start_with_a_new_secret_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONTDESK_DATA_DIR", str(tmp_path))
    with pytest.raises(SecretKeyError, match="is missing: put back your copy"):
        create(lambda: None)
    assert list(tmp_path.iterdir()) == []


def test_a_data_directory_that_cannot_be_entered_says_why_and_is_a_failed_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "theirs")
        Path(parent).chmod(0o755)
        folder.mkdir(mode=0o700 if os.geteuid() == 0 else 0)
        settings = Settings(data_dir=folder)
        with rights_of_another(), pytest.raises(CommandError) as raised:
            has_embedded_database(settings)
        advice = "belongs to root: run" if os.geteuid() == 0 else "cannot be written to"
        assert str(raised.value).startswith(f"The data directory {folder} {advice}")

        def refuse(_: object) -> bool:
            raise raised.value

        monkeypatch.setenv("FRONTDESK_DATA_DIR", str(folder))
        monkeypatch.setattr(doctor, "has_embedded_database", refuse)
        monkeypatch.setattr(doctor, "prepare_data_dir", refuse)
        found = {each.check: (each.state, each.detail) for each in doctor.examine()}
        assert found["data directory"] == found["database"] == ("failed", str(raised.value))


@contextlib.contextmanager
def rights_of_another() -> Iterator[None]:
    """Of an account that is not root's."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_old_keys_are_a_warning(used: CommandLine, port: str) -> None:
    def aged(interval: str) -> Any:
        return lambda connection: connection.execute(
            f"UPDATE sealed_key SET created_at = created_at - interval '{interval}' WHERE purpose = 'token-signing'"
        )

    on_database(used, aged("400 days"))
    try:
        status, found = states(used, port)
        assert (status, found["keys"][0]) == (0, "warning")
        assert "token-signing" in found["keys"][1]
    finally:
        on_database(used, aged("-400 days"))


def test_forwarded_headers_of_a_peer_that_is_not_trusted_are_a_warning(used: CommandLine, port: str) -> None:
    seen = "INSERT INTO observation VALUES ('untrusted forwarded header', '10.0.0.5', now() - interval '{} days')"
    for days, trusted, state in ((1, "", "warning"), (1, "10.0.0.0/8", "ok"), (8, "", "ok")):
        sql = seen.format(days)
        on_database(used, lambda connection, sql=sql: connection.execute(sql))
        status, found = states(used, port, FRONTDESK_TRUSTED_PROXIES=trusted)
        on_database(used, lambda connection: connection.execute("DELETE FROM observation"))
        assert (status, found["proxies"][0]) == (0, state)
        assert ("10.0.0.5" in found["proxies"][1]) is (state == "warning")


def test_a_practice_where_an_area_code_identifies_patients_is_a_warning(used: CommandLine, port: str) -> None:
    status, found = states(used, port)
    assert (status, found["phone numbers"][0]) == (0, "warning")
    assert (
        "an area code is enough to match a patient's number at harbor: set phoneMatch: ending"
        in (found["phone numbers"][1])
    )
    rule = "UPDATE practice SET phone_match = '{}'"
    on_database(used, lambda connection: connection.execute(rule.format("ending")))
    try:
        assert states(used, port)[1]["phone numbers"][0] == "ok"
    finally:
        on_database(used, lambda connection: connection.execute(rule.format("anywhere")))


def test_a_port_that_another_program_has_is_found(used: CommandLine) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        status, found = states(used, str(other.getsockname()[1]))
    assert (status, found["port"][0]) == (1, "failed")


def test_a_port_that_frontdesk_itself_serves_is_well(used: CommandLine) -> None:
    with used.serving() as served:
        status, found = states(used, served.url.rpartition(":")[2])
    assert (status, found["port"]) == (0, ("ok", "frontdesk answers: ready"))


def test_plain_http_to_a_network_is_found(tmp_path: Path, port: str) -> None:
    status, found = states(CommandLine(tmp_path / "none"), port, FRONTDESK_HOST="0.0.0.0")
    assert (status, found["network"][0]) == (1, "failed")
    assert "FRONTDESK_TRUSTED_PROXIES" in found["network"][1]


def test_a_data_directory_open_to_others_is_a_warning(used: CommandLine, port: str) -> None:
    used.data_dir.chmod(0o755)
    try:
        status, found = states(used, port)
        assert (status, found["data directory"][0]) == (0, "warning")
    finally:
        used.data_dir.chmod(0o700)


def test_records_that_wait_too_long_for_their_seal_are_a_warning(used: CommandLine, port: str) -> None:
    async def append(connection: Any) -> None:
        practice = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = 'harbor'")
        await connection.execute(
            "SELECT append_audit($1, now() - interval '1 hour', 'a', 'book_appointment', 'executed', '{}', '')",
            practice,
        )

    assert used.json("audit", "verify")["whole"]  # seals those of the import, whose age is looked at first
    on_database(used, append)
    status, found = states(used, port)
    assert (status, found["audit"][0]) == (0, "warning")
    assert used.json("audit", "verify")["whole"]
    assert states(used, port)[1]["audit"][0] == "ok"


def test_a_scheduling_system_that_does_not_answer_is_found(used: CommandLine, port: str) -> None:
    used.json("practice", "import", "-", stdin=FHIR)
    status, found = states(used, port)
    assert (status, found["upstreams"][0]) == (1, "failed")
    assert "distant" in found["upstreams"][1]


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (("auto", "auto"), ("ok", "one:5432")),
        (("force_custom_plan", "force_custom_plan"), ("ok", "one:5432")),
        (("force_custom_plan", "auto"), ("failed", "with this version of Citus they run out of memory: ")),
        (("auto", "force_custom_plan"), ("warning", "with this version of Citus they plan every call again: ")),
    ],
)
async def test_the_mode_of_planning_has_to_suit_the_version_of_citus(
    monkeypatch: pytest.MonkeyPatch, modes: tuple[str, str], expected: tuple[str, str]
) -> None:
    async def answer(found: object, *_: object) -> object:
        return found

    found = Distribution(("one:5432",), steps=1, unfinished=0)
    monkeypatch.setattr(distribution, "read_distribution", partial(answer, found))
    monkeypatch.setattr(distribution, "lost_workers", partial(answer, []))
    monkeypatch.setattr(distribution, "plan_modes", partial(answer, modes))
    [result] = await doctor._workers(None)  # type: ignore[arg-type] - nothing is asked
    state, detail = expected
    assert (result.check, result.state) == ("workers", state)
    assert result.detail.startswith(detail)
