"""How a command connects to the database: the embedded server, which is started for it, or the configured one.

Few commands create a database. An older one is left to `frontdesk db migrate`, because older servers may still use it.
"""

import atexit
import errno
import os
import pwd
import secrets
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from frontdesk.cli.output import BadInput, CommandError
from frontdesk.cli.service_address import with_recorded_address

if TYPE_CHECKING:
    from frontdesk.access.keys.encryption import KeyCipher
    from frontdesk.access.keys.ring import KeyRing
    from frontdesk.audit.trail import AuditContext
    from frontdesk.settings import Settings
    from frontdesk.store.database import Database
    from frontdesk.store.embedded.server import EmbeddedPostgres

T = TypeVar("T")
Progress = Callable[[str], None]
_BLOCKED_SECONDS = 1.0  # after a signal, until what blocks the event loop is interrupted


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a command works with. Its audit records share one request id."""

    settings: "Settings"
    database: "Database"
    audit: "AuditContext"

    async def ring(self) -> "KeyRing":
        return (await self.ring_and_cipher())[0]

    async def present_ring(self) -> "KeyRing | None":
        """The keys as they are, None without the secret key. Creates neither keys nor a secret key."""
        from frontdesk.access.keys.encryption import KeyCipher, has_secret_key, read_secrets
        from frontdesk.access.keys.ring import KeyRing

        if not has_secret_key(self.settings):
            return None
        ring = KeyRing(self.database, KeyCipher(read_secrets(self.settings)))
        await ring.refresh()
        return ring

    async def cipher(self) -> "KeyCipher":
        """Creates the keys if there are none: by them, a later command knows whether its secret key is this one."""
        return (await self.ring_and_cipher())[1]

    async def ring_and_cipher(self) -> "tuple[KeyRing, KeyCipher]":
        from frontdesk.access.keys.ring import KeyRing, cipher_for_database, has_keys

        if self.settings.uses_data_dir and not await has_keys(self.database):
            prepare_data_dir(self.settings.data_dir)  # a new secret key is put there
        cipher = await cipher_for_database(self.settings, self.database)
        ring = KeyRing(self.database, cipher, token_lifetime_seconds=self.settings.token_lifetime_seconds)
        await ring.load()
        return ring, cipher

    async def record_everywhere(self, operation: str, *subjects: str) -> None:
        """Adds an audit record to the trail of every practice, for a command that concerns all of them."""
        from frontdesk.audit.trail import append_audit
        from frontdesk.store.practices import practice_ids

        for practice_id in (await practice_ids(self.database)).values():
            async with self.database.transaction(practice_id) as connection:
                await append_audit(connection, self.audit.entry(practice_id, operation, subjects))

    async def practice_id(self, slug: str, *, also_removed: bool = False) -> int:
        """Raises BadInput if there is no such practice, with the closest slug, or if it was removed."""
        from frontdesk.store.practices import is_removed, practice_ids, why_unusable

        known = await practice_ids(self.database)
        if slug not in known or (is_removed(slug) and not also_removed):
            raise BadInput(why_unusable(slug, known))
        return known[slug]


def with_database(work: Callable[[CommandContext], Awaitable[T]], *, creates: bool = False) -> T:
    """Runs a command's work on the database that the settings name."""
    settings = started_settings(creates=creates)
    return wait_for(on_database(settings, work, creates=creates))


def started_settings(*, creates: bool = False) -> "Settings":
    """The settings, once the database they name has been started."""
    from frontdesk.settings import load_settings

    settings = load_settings()
    start_database(settings, _to_terminal, creates=creates)
    return with_recorded_address(settings)


def wait_for(work: Coroutine[object, object, T]) -> T:
    """The result of the work. SIGTERM cancels it at an await, and then does what its handler does.

    A handler that raises could do so between two callbacks of the event loop: the second would be lost, and a task that
    waits for it would wait forever. So it is called in the middle of the work only if that keeps the loop from
    cancelling, as a prompt does. A second SIGTERM ends the process whatever it does.
    """
    import asyncio

    handler = signal.getsignal(signal.SIGTERM)
    if not callable(handler):
        return asyncio.run(work)
    stopped = False
    task: asyncio.Task[object] | None = None

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        if stopped:
            os._exit(128 + number)
        stopped = True
        signal.signal(signal.SIGALRM, lambda *_: handler(number, frame))
        signal.setitimer(signal.ITIMER_REAL, _BLOCKED_SECONDS)
        if task is not None and not task.done():
            cancel(task)

    def cancel(task: asyncio.Task[object]) -> None:
        task.cancel()
        task.get_loop().call_soon_threadsafe(signal.setitimer, signal.ITIMER_REAL, 0)  # the loop is not blocked

    async def stoppable() -> T:
        nonlocal task
        task = asyncio.current_task()
        if stopped and task is not None:
            cancel(task)
        return await work

    signal.signal(signal.SIGTERM, stop)
    try:
        return asyncio.run(stoppable())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, handler)
        if stopped:
            signal.raise_signal(signal.SIGTERM)


async def on_database(
    settings: "Settings", work: Callable[[CommandContext], Awaitable[T]], *, creates: bool = False
) -> T:
    """The work on a database that runs and has tables; with `creates` they are made."""
    from frontdesk.store.database import Database
    from frontdesk.store.migrate import migrate, status

    owner = owner_dsn(settings)
    with explain_database_errors(settings, owner=True):
        state = await status(owner)
        if not state.applied_migrations and not creates:
            raise CommandError("The database has no tables yet: run frontdesk serve, or frontdesk db migrate.")
        if not state.applied_migrations:
            await migrate(owner)
        elif state.missing:
            raise CommandError("The database was made by an older version of frontdesk: run frontdesk db migrate.")
    with explain_database_errors(settings):
        database = Database(service_dsn(settings), pool_size=2, pooled=settings.direct_database_url is not None)
        await database.open()
    try:
        return await work(CommandContext(settings, database, _audit_context()))
    finally:
        await database.close()


def start_database(settings: "Settings", progress: Progress, *, creates: bool = False) -> None:
    """The embedded server runs from now until this process ends; a database given by URL is left alone."""
    if settings.database_url is None and not creates:
        check_embedded_database(settings)
    if settings.uses_data_dir and (settings.database_url is None or settings.data_dir.exists()):
        prepare_data_dir(settings.data_dir)
    if settings.database_url is None:
        server = _embedded(settings)
        server.start(progress=progress)
        atexit.register(server.stop_and_wait)


def has_database() -> bool:
    """Whether there is a database: the settings name a server, or their data directory has one."""
    from frontdesk.settings import load_settings

    settings = load_settings()
    return settings.database_url is not None or has_embedded_database(settings)


def check_embedded_database(settings: "Settings") -> None:
    if not has_embedded_database(settings):
        raise CommandError(
            f"There is no frontdesk database in {settings.data_dir.absolute()}: name the data directory of the service "
            "with --data-dir, or its settings with --config."
        )


def has_embedded_database(settings: "Settings") -> bool:
    try:
        (settings.postgres_dir / "data").stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError:
        prepare_data_dir(settings.data_dir)  # says whose it is
        raise
    return True


def service_dsn(settings: "Settings") -> str:
    from frontdesk.store.database import SERVICE_ROLE

    return settings.database_url or _embedded(settings).dsn(SERVICE_ROLE)


def owner_dsn(settings: "Settings") -> str:
    """A login that may change the schema."""
    from frontdesk.store.embedded.server import OWNER_ROLE

    given = settings.migration_database_url or settings.direct_database_url or settings.database_url
    return given or _embedded(settings).dsn(OWNER_ROLE)


@contextmanager
def explain_database_errors(settings: "Settings", *, owner: bool = False) -> Iterator[None]:
    """Turns an error of the database into a CommandError of one sentence. `owner`: of the address of `owner_dsn`."""
    from asyncpg import exceptions as pg

    from frontdesk.store.sessions import SessionRefused

    setting = _address_setting(settings, owner=owner)
    where = "The embedded PostgreSQL" if setting is None else f"The database of {setting}"
    direct = "FRONTDESK_DIRECT_DATABASE_URL" if setting in (None, "FRONTDESK_DATABASE_URL") else setting
    try:
        yield
    except pg.InvalidAuthorizationSpecificationError:
        raise CommandError(f"{where} does not accept this login.") from None
    except pg.InvalidCatalogNameError:
        raise CommandError(f"{where} does not exist on its server: create it first.") from None
    except pg.InsufficientPrivilegeError:
        raise CommandError(
            f"{where} does not let this login do that: set FRONTDESK_MIGRATION_DATABASE_URL to a login that owns the "
            "database."
        ) from None
    except (pg.ClientConfigurationError, ValueError):
        raise CommandError(f"{where} has no valid address: it looks like postgresql://user@host:5432/name.") from None
    except SessionRefused as error:
        raise CommandError(str(error)) from None
    except (pg.ProtocolViolationError, pg.InvalidSQLStatementNameError, pg.DuplicatePreparedStatementError):
        raise CommandError(
            f"{where} behaves like a pooler: set {direct} to the address of PostgreSQL itself."
        ) from None
    except pg.TargetServerAttributeNotMatched:
        raise CommandError(f"{where} is a standby and accepts no writes: name the primary, or all hosts.") from None
    except (pg.OperatorInterventionError, pg.PostgresConnectionError, pg.TooManyConnectionsError):
        raise CommandError(f"{where} does not accept connections at the moment.") from None
    except TimeoutError:
        raise CommandError(f"{where} cannot be reached (it did not answer in time).") from None
    except OSError as error:
        file = "" if error.filename is None else f": {error.filename}"  # a certificate or its key
        raise CommandError(f"{where} cannot be reached ({_reason(error)}{file}).") from None


def _address_setting(settings: "Settings", *, owner: bool) -> str | None:
    """The setting that gives the address of `owner_dsn` or `service_dsn`."""
    if owner and settings.migration_database_url is not None:
        return "FRONTDESK_MIGRATION_DATABASE_URL"
    if owner and settings.direct_database_url is not None:
        return "FRONTDESK_DIRECT_DATABASE_URL"
    return None if settings.database_url is None else "FRONTDESK_DATABASE_URL"


def prepare_data_dir(folder: Path) -> None:
    """Creates a private data directory, or checks that the existing one belongs to this account and is writable."""
    advice = "choose another with FRONTDESK_DATA_DIR"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if error.errno == errno.EEXIST else _reason(error)
        raise CommandError(f"The data directory {folder} cannot be created ({reason}): {advice}.") from None
    owner = folder.stat().st_uid
    if owner != os.geteuid():
        name = _account(owner)
        again = f"runuser -u {name} -- {shlex.join(sys.argv)}" if os.geteuid() == 0 else "frontdesk as that account"
        raise CommandError(f"The data directory {folder} belongs to {name}: run {again}, or {advice}.")
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise CommandError(f"The data directory {folder} cannot be written to: {advice}.")


def _audit_context() -> "AuditContext":
    from frontdesk.audit.trail import COMMAND_LINE, AuditContext

    return AuditContext(COMMAND_LINE, datetime.now(UTC), secrets.token_hex(16))


def _embedded(settings: "Settings") -> "EmbeddedPostgres":
    from frontdesk.store.embedded.server import EmbeddedPostgres

    return EmbeddedPostgres(settings.postgres_dir)


def _account(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"account {number}"


def _reason(error: OSError) -> str:
    number = error.errno or 0
    text = os.strerror(number) if number > 0 else error.strerror or "no connection"
    return text[:1].lower() + text[1:]


def _to_terminal(step: str) -> None:
    if sys.stderr.isatty():
        print(f"{step} ...", file=sys.stderr)
