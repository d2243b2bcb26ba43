"""`frontdesk doctor`: checks the installation, one line per check with advice, and changes nothing.

A failed check makes the command fail; a warning does not.
"""

import argparse
import contextlib
import json
import os
import shutil
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from frontdesk.cli import alert_checks, exposure
from frontdesk.cli.commands import Commands, add_command
from frontdesk.cli.connection import (
    explain_database_errors,
    has_embedded_database,
    owner_dsn,
    prepare_data_dir,
    service_dsn,
    start_database,
    wait_for,
)
from frontdesk.cli.output import FAILURE, CommandError, answer, counted, table, to_document
from frontdesk.cli.running_service import ask_service

if TYPE_CHECKING:
    from frontdesk.settings import Settings
    from frontdesk.store.database import Database
    from frontdesk.store.migrate import SchemaState

_GIBIBYTE = 1024**3
_MIN_FREE_BYTES = 200 * 1024**2
_MAX_CLOCK_DRIFT = timedelta(seconds=2)
_MAX_KEY_AGE = timedelta(days=365)
_MAX_OUTBOX_EVENTS = 100_000

State = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: str
    state: State
    detail: str


def add_commands(commands: Commands) -> None:
    add_command(commands, "doctor", _doctor, "Check the configuration, the database and everything around them.")


def _doctor(args: argparse.Namespace) -> int:
    findings = examine()
    document = as_document(findings)
    rows = [(f.check, f.state, f.detail) for f in findings]
    answer(args, document, table(("CHECK", "STATE", "DETAIL"), rows, ""))
    return 0 if document["healthy"] else FAILURE


def as_document(findings: list[CheckResult]) -> dict[str, object]:
    healthy = not any(finding.state == "failed" for finding in findings)
    return {"healthy": healthy, "checks": [to_document(finding) for finding in findings]}


def examine() -> list[CheckResult]:
    from frontdesk.settings import SettingsError, load_with_sources

    try:
        loaded = load_with_sources()
    except SettingsError as error:
        return [CheckResult("configuration", "failed", str(error))]
    settings = loaded.settings
    found = [
        CheckResult("settings file", *exposure.settings_file(loaded)),
        _run_check("account", exposure.account, settings),
    ]
    where = "embedded" if settings.database_url is None else "given by FRONTDESK_DATABASE_URL"
    found.insert(0, CheckResult("configuration", "ok", f"{settings.public_url}; database {where}"))
    checks = {
        "data directory": _data_dir,
        "disk": _disk,
        "port": _port,
        "network": exposure.network,
        "identity provider": _identity_provider,
        "mail": _mail,
        "client documents": exposure.client_documents,
        "metrics": alert_checks.metrics,
        "traces": alert_checks.traces,
    }
    found += [_run_check(name, check, settings) for name, check in checks.items()]
    try:
        if settings.database_url is None and not has_embedded_database(settings):
            return [*found, CheckResult("database", "skipped", "there is none yet: frontdesk serve creates it")]
        start_database(settings, lambda _step: None)
        return found + wait_for(_examine_database(settings))
    except Exception as error:  # any error that makes the database unavailable is the finding
        return [*found, CheckResult("database", "failed", sentence(error))]


async def _examine_database(settings: "Settings") -> list[CheckResult]:
    from frontdesk.store.database import Database

    with explain_database_errors(settings, owner=True):
        reachable, migrations, clock = await _server(settings)
    found = [reachable, migrations, clock]
    if migrations.state == "failed":
        return [*found, CheckResult("keys, practices", "skipped", "the database does not fit this version")]
    with explain_database_errors(settings):
        database = Database(service_dsn(settings), pool_size=2, pooled=settings.direct_database_url is not None)
        await database.open()
    try:
        found.append(await _run_async_check("keys", _keys(settings, database)))
        found.append(await _run_async_check("upstreams", _upstreams(database)))
        found += await _workers(database)
        found += await _queues(database)
        found.append(await _run_async_check("outbox", _outbox(database)))
        found.append(await _run_async_check("sessions", alert_checks.sessions(database)))
        found.append(await _run_async_check("phone numbers", _phone_numbers(database)))
        found.append(await _run_async_check("proxies", _proxies(settings, database)))
    finally:
        await database.close()
    return found


def _data_dir(settings: "Settings") -> tuple[State, str]:
    folder = settings.data_dir
    if not settings.uses_data_dir:
        return "skipped", "not used"
    if not folder.exists():
        return "skipped", f"{folder} does not exist yet: frontdesk serve creates it"
    prepare_data_dir(folder)  # refuses a folder that belongs to another account
    if folder.stat().st_mode & 0o077:
        return "warning", f"{folder} is open to other accounts: run chmod 700 {folder}"
    return "ok", str(folder)


def _disk(settings: "Settings") -> tuple[State, str]:
    if settings.database_url is not None:
        return "skipped", "the database keeps its files elsewhere"
    if not settings.data_dir.exists():
        return "skipped", "there is no data directory yet"
    free = shutil.disk_usage(settings.data_dir).free
    detail = f"{free / _GIBIBYTE:.1f} GiB free"
    return ("failed" if free < _MIN_FREE_BYTES else "warning" if free < _GIBIBYTE else "ok"), detail


def _port(settings: "Settings") -> tuple[State, str]:
    from frontdesk.serving import ServingError, free_address

    try:
        free_address(settings.host, settings.port)
        return "ok", f"{settings.port} is free"
    except ServingError as error:
        answer = ask_service(settings, "/readyz")
        with contextlib.suppress(ValueError):
            document = json.loads("" if answer is None else answer[1][:1000])
            if isinstance(document, dict) and isinstance(document.get("status"), str):
                failing = ": ".join(["", ", ".join(document["failing"])]) if document.get("failing") else ""
                state: State = "ok" if document["status"] == "ready" else "failed"
                return state, f"frontdesk answers: {document['status'][:100]}{failing}"
        return "failed", str(error)


def _identity_provider(settings: "Settings") -> tuple[State, str]:
    if settings.oidc_issuer is None:
        return "skipped", "none is set: staff sign in to the console with passkeys and links"
    from frontdesk.access.staff.identity_provider import IdentityError, IdentityProvider, ProviderUnavailable

    try:
        wait_for(IdentityProvider(settings).begin())
    except (IdentityError, ProviderUnavailable):
        return "failed", "FRONTDESK_OIDC_ISSUER does not answer as an OpenID provider of that name"
    return "ok", str(settings.shown("oidc_issuer"))


def _mail(settings: "Settings") -> tuple[State, str]:
    if settings.smtp_url is None:
        return "skipped", "no server is set: sign-in links are not mailed"
    from frontdesk.outbound.mail import Mailer, MailUnavailable

    try:
        wait_for(Mailer(settings).check())
    except MailUnavailable:
        return "failed", "the server of FRONTDESK_SMTP_URL does not answer, or refuses the login"
    return "ok", f"sign-in links are mailed from {settings.mail_from}"


async def _server(settings: "Settings") -> tuple[CheckResult, CheckResult, CheckResult]:
    """Checks reachability, version, migrations and clock with the login that owns the schema."""
    from frontdesk.store.database import session_settings
    from frontdesk.store.hosts import Hosts
    from frontdesk.store.migrate import read_state

    connection = await Hosts(owner_dsn(settings)).connect(server_settings=session_settings(role=None), timeout=10)
    try:
        version = connection.get_server_version()
        release = (await connection.fetchval("SHOW server_version")).partition(" ")[0]
        before = datetime.now(UTC)
        database_time = await connection.fetchval("SELECT clock_timestamp()")
        after = datetime.now(UTC)
        schema = await read_state(connection)
    finally:
        await connection.close()
    server = CheckResult("database", "ok", f"PostgreSQL {release}")
    if version < (15,):
        server = CheckResult("database", "failed", f"PostgreSQL {release}; 15 or newer is needed")
    drift = max(before - database_time, database_time - after, timedelta())
    clock: State = "ok" if drift <= _MAX_CLOCK_DRIFT else "failed"
    return (
        server,
        CheckResult("migrations", *_migrations(schema)),
        CheckResult("clock", clock, f"{drift.total_seconds():.1f} s between this machine and the database"),
    )


def _migrations(schema: "SchemaState") -> tuple[State, str]:
    if schema.mismatch is not None:
        return "failed", schema.mismatch
    if schema.pending:
        return "failed", f"{schema.pending} pending: run frontdesk db migrate"
    if schema.deferred_migrations:
        return "warning", "once all nodes run this version: run frontdesk db migrate --phase after"
    return "ok", "up to date"


async def _keys(settings: "Settings", database: "Database") -> tuple[State, str]:
    from frontdesk.access.keys.encryption import KeyCipher, has_secret_key, read_secrets
    from frontdesk.access.keys.ring import PURPOSES, examine_keys, has_keys

    if not await has_keys(database):
        return "skipped", "there are none yet: the first start creates them"
    if not has_secret_key(settings):
        return "failed", f"the secret key file {settings.secret_key_file} is missing"
    found = await examine_keys(database, KeyCipher(read_secrets(settings)))
    in_use = {record.purpose: record for record, _ in found if record.retired_at is None}
    if missing := [purpose for purpose in PURPOSES if purpose not in in_use]:
        return "failed", f"there is no key for {', '.join(missing)}"
    if not all(newest for _, newest in found):
        return "warning", "some are encrypted with an older secret: run frontdesk keys reencrypt"
    now = datetime.now(UTC)
    if old := [purpose for purpose, record in in_use.items() if now - record.created_at > _MAX_KEY_AGE]:
        return "warning", f"older than a year: {', '.join(sorted(old))}; run frontdesk keys rotate"
    return "ok", f"{len(found)}, all can be decrypted"


async def _upstreams(database: "Database") -> tuple[State, str]:
    from frontdesk.systems.check import check_own_servers

    answers = await check_own_servers(database, await _practices(database), os.environ)
    if not answers:
        return "skipped", "no practice has a scheduling system of its own"
    if errors := [f"{slug}: {error}" for slug, error in answers.items() if error is not None]:
        return "failed", f"{'; '.join(errors)}. frontdesk practice check shows details"
    return "ok", f"{len(answers)} answered"


async def _workers(database: "Database") -> list[CheckResult]:
    from frontdesk.store.distribution import KEEP_NO_PLANS, lost_workers, plan_modes, read_distribution

    distribution = await read_distribution(database)
    if distribution is None:
        return []
    if lost := await lost_workers(database, distribution):
        return [
            CheckResult("workers", "failed", f"calls for practices there fail: {', '.join(lost)} cannot be reached")
        ]
    wanted, current = await plan_modes(database)
    if wanted != current:
        state: State = "failed" if wanted == KEEP_NO_PLANS else "warning"
        harm = "run out of memory" if state == "failed" else "plan every call again"
        remedy = "run frontdesk db migrate with a superuser's login, then restart the nodes"
        return [CheckResult("workers", state, f"with this version of Citus they {harm}: {remedy}")]
    return [CheckResult("workers", "ok", ", ".join(distribution.workers))]


async def _queues(database: "Database") -> list[CheckResult]:
    from frontdesk.store.queues import measure_queues

    checks = {
        "audit": alert_checks.audit,
        "webhooks": alert_checks.webhooks,
        "upstream writes": alert_checks.upstream_writes,
    }
    try:
        measured = await measure_queues(database)
    except Exception as error:
        return [CheckResult(", ".join(checks), "failed", sentence(error))]
    return [CheckResult(name, *check(measured)) for name, check in checks.items()]


async def _proxies(settings: "Settings", database: "Database") -> tuple[State, str]:
    from frontdesk.access.limits.addresses import trusted_proxy_check
    from frontdesk.access.limits.forwarded_headers import latest_ignored

    peer = await latest_ignored(database)
    if peer is not None and not trusted_proxy_check(settings.trusted_proxies)(peer):
        return "warning", (
            f"X-Forwarded-For of {peer} is ignored, and its callers share the limits of one address: "
            "if it is your proxy, add it to FRONTDESK_TRUSTED_PROXIES"
        )
    return "ok", ", ".join(settings.trusted_proxies) or "none is trusted, and no forwarded header was seen"


async def _phone_numbers(database: "Database") -> tuple[State, str]:
    """How practices match the digits that clients give: the third factor of a patient's identity."""
    from frontdesk.store.practices import practices_with_substring_match

    slugs = await practices_with_substring_match(database)
    if not slugs:
        return "ok", "fewer than seven digits match by the end of a number, so an area code identifies nobody"
    return "warning", (
        f"an area code is enough to match a patient's number at {', '.join(slugs)}: "
        "set phoneMatch: ending in the practice file, unless callers give other digits"
    )


async def _outbox(database: "Database") -> tuple[State, str]:
    from frontdesk.outbound.webhooks.events import count_events

    events = 0
    for practice_id in await _practices(database):
        events += await count_events(database, practice_id)
    return ("warning" if events > _MAX_OUTBOX_EVENTS else "ok"), f"{counted(events, 'event')} kept"


async def _practices(database: "Database") -> list[int]:
    from frontdesk.store.practices import practice_ids

    return list((await practice_ids(database)).values())


def _run_check(name: str, check: "Callable[[Settings], tuple[State, str]]", settings: "Settings") -> CheckResult:
    try:
        return CheckResult(name, *check(settings))
    except (CommandError, OSError) as error:
        return CheckResult(name, "failed", sentence(error))


async def _run_async_check(name: str, check: Coroutine[object, object, tuple[State, str]]) -> CheckResult:
    try:
        return CheckResult(name, *await check)
    except Exception as error:  # a check that crashes must not hide the others
        return CheckResult(name, "failed", sentence(error))


def sentence(error: Exception) -> str:
    """A sentence without the message of a database or library, which may quote stored data."""
    from frontdesk.access.keys.encryption import SecretKeyError
    from frontdesk.store.embedded.server import EmbeddedPostgresError

    if isinstance(error, CommandError | SecretKeyError | EmbeddedPostgresError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"this could not be checked ({type(error).__name__})"
