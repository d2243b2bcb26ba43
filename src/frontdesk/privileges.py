"""Drops root privileges, and keeps other processes of the same account out of this one.

Root may try the service out: its workers then run as `nobody`.
"""

import ctypes
import os
import pwd
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

UNPRIVILEGED = "nobody"
NO_HOME = "/nonexistent"
_READ_EVERYTHING = 2  # CAP_DAC_READ_SEARCH
_DUMPABLE, _KEEP_CAPABILITIES, _NO_NEW_PRIVILEGES = 4, 8, 38  # of prctl
_CAPABILITY_VERSION = 0x20080522
_LIBC = ctypes.CDLL(None, use_errno=True)


class AccountError(Exception):
    """Why the service cannot run as an account, in one sentence."""


@dataclass(frozen=True, slots=True)
class WorkerAccount:
    user: int
    group: int


def leave_closed_home() -> None:
    """Takes another home where this account may not look into the one that it was given.

    PostgreSQL's driver looks for certificates there, and fails where it may not. `runuser -u` keeps root's home.
    """
    with suppress(RuntimeError, KeyError):
        if not os.access(Path.home(), os.X_OK):
            os.environ["HOME"] = NO_HOME


def worker_account() -> WorkerAccount | None:
    """The account of the workers and the embedded database if this process is root's, else None."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return None
    try:
        found = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise AccountError(f"There is no account {UNPRIVILEGED}: run useradd --system {UNPRIVILEGED}.") from None
    return WorkerAccount(found.pw_uid, found.pw_gid)


def protect_process() -> None:
    """Keeps processes of the same account from reading the memory, environment and files of this one.

    The process and those that it starts gain no rights by executing a file.
    """
    if sys.platform == "linux":
        _prctl(_DUMPABLE, 0)
        _prctl(_NO_NEW_PRIVILEGES, 1)


def drop_root_privileges() -> None:
    """For good. Root's data directory, and an installation in root's home, stay readable."""
    account = worker_account()
    if account is None:
        return
    try:
        _prctl(_KEEP_CAPABILITIES, 1)
        os.initgroups(UNPRIVILEGED, account.group)
        os.setresgid(account.group, account.group, account.group)
        os.setresuid(account.user, account.user, account.user)
        _keep_capability(_READ_EVERYTHING)
        _prctl(_KEEP_CAPABILITIES, 0)
        os.environ["HOME"] = NO_HOME
    except OSError as error:
        raise AccountError(f"Root cannot run workers as {UNPRIVILEGED} here ({error.strerror}).") from None
    protect_process()


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Words(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def _keep_capability(number: int) -> None:
    """Of this thread; later threads inherit it."""
    words = (_Words * 2)()  # numbers from 32 are in the second
    words[0] = _Words(effective=1 << number, permitted=1 << number)
    _check(_LIBC.capset(ctypes.byref(_Header(_CAPABILITY_VERSION, 0)), words))


def _prctl(option: int, *values: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _check(_LIBC.prctl(option, *padded))


def _check(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
