"""Runs commands of root as the account of the service, and gives that account the data directory.

Data that root owns, from a time without such an account, stays root's until the service starts as the account.
"""

import fcntl
import os
import stat
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from frontdesk import privileges
from frontdesk.cli.output import CommandError
from frontdesk.cli.service_address import FILE_NAME
from frontdesk.privileges import ServiceAccount, needed_capabilities, service_account

if TYPE_CHECKING:
    from frontdesk.settings import Settings

_OURS = frozenset(("secret.key", "demo-credentials.json", "postgres", "metrics", FILE_NAME))
_IN_USE = ("start.lock", "guard.lock", "users.lock")
_STOPPING_SECONDS = 5.0  # the server of a command that has just ended needs a moment
_POLL_SECONDS = 0.02


def act_as_service_account(settings: "Settings") -> None:
    """Lets a command of root act as the account. Files that its caller named are opened in `privileges.as_caller`."""
    account = service_account(settings.run_as)
    if account is None or not account.is_dedicated or _owner(settings.data_dir) not in (None, account.user):
        return
    privileges.act_as(account, needed_capabilities(account, settings.data_dir, settings.port))


def become_service_account(settings: "Settings") -> None:
    """Drops the root privileges of the service for good. Without a dedicated account only the workers drop theirs."""
    account = service_account(settings.run_as)
    if account is None or not account.is_dedicated:
        return
    if settings.uses_data_dir and _owner(settings.data_dir) in (None, 0):
        give_data_dir(settings.data_dir, account)
    privileges.become(account, needed_capabilities(account, settings.data_dir, settings.port))
    os.environ |= {"HOME": account.home, "USER": account.name, "LOGNAME": account.name}


def give_data_dir(folder: Path, account: ServiceAccount) -> None:
    """Gives a data directory of root to the account, or creates it."""
    by_hand = f"stop frontdesk and run chown -R {account.name}: {folder}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if others := sorted({path.name for path in folder.iterdir()} - _OURS):
        raise CommandError(f"The data directory {folder} belongs to root and holds {others[0]}: {by_hand}.")
    deadline = time.monotonic() + _STOPPING_SECONDS
    with ExitStack() as held:
        for name in _IN_USE:
            lock = folder / "postgres" / name
            if lock.exists():
                file = held.enter_context(lock.open("rb"))
                if not _locked(file, deadline):
                    raise CommandError(
                        f"The embedded PostgreSQL in {folder} is still in use by root: stop frontdesk first."
                    )
        for _, folders, files, descriptor in os.fwalk(folder, topdown=False):
            for name in (*folders, *files):
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:  # may be a file outside of the directory
                    raise CommandError(f"{name} in the data directory {folder} has other hard links: {by_hand}.")
                os.chown(name, account.user, account.group, dir_fd=descriptor, follow_symlinks=False)
        os.chown(folder, account.user, account.group)


def _locked(file: BinaryIO, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        else:
            return True


def _owner(folder: Path) -> int | None:
    try:
        return folder.stat().st_uid
    except FileNotFoundError:
        return None
