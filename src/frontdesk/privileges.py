"""Drops root privileges, and keeps other processes of the same account out of this one.

Started by root, the service runs as a dedicated account. A command acts as that account as well, so that it neither
leaves files of root behind nor follows links of the account with root privileges.
"""

import ctypes
import os
import pwd
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEDICATED, SHARED = "frontdesk", "nobody"
READ_EVERYTHING, BIND_LOW_PORTS = 2, 10  # CAP_DAC_READ_SEARCH, CAP_NET_BIND_SERVICE
_FIRST_FREE_PORT = 1024
_DUMPABLE, _KEEP_CAPABILITIES, _NO_NEW_PRIVILEGES, _AMBIENT = 4, 8, 38, 47  # of prctl
_AMBIENT_RAISE = 2
_CAPABILITY_VERSION = 0x20080522
_LIBC = ctypes.CDLL(None, use_errno=True)


class AccountError(Exception):
    """Why the service cannot run as an account, in one sentence."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    name: str
    user: int
    group: int
    home: str

    @property
    def is_dedicated(self) -> bool:
        """Whether the account is the service's own: processes of other services may run as the shared one."""
        return self.name != SHARED


@dataclass(frozen=True, slots=True)
class _Acting:
    account: ServiceAccount
    capabilities: frozenset[int]


_acting: _Acting | None = None


def service_account(name: str | None) -> ServiceAccount | None:
    """The account with this name, or else the dedicated or the shared one; None if this process is not root's."""
    if os.getuid() != 0 or sys.platform != "linux":
        if name is not None and name != _name_of(os.geteuid()):
            raise AccountError(f"Only root can run the service as {name}, which FRONTDESK_RUN_AS names.")
        return None
    for candidate in (DEDICATED, SHARED) if name is None else (name,):
        try:
            found = pwd.getpwnam(candidate)
        except KeyError:
            continue
        if found.pw_uid == 0:
            raise AccountError("FRONTDESK_RUN_AS names root: name an account without its rights.")
        return ServiceAccount(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir)
    raise AccountError(f"There is no account {name or SHARED}: run useradd --system {name or DEDICATED}.")


def protect_process() -> None:
    """Keeps processes of the same account from reading the memory, environment and files of this one.

    The process and those that it starts gain no rights by executing a file.
    """
    if sys.platform == "linux":
        _prctl(_DUMPABLE, 0)
        _prctl(_NO_NEW_PRIVILEGES, 1)


def become(account: ServiceAccount, capabilities: Iterable[int] = ()) -> None:
    """Drops root privileges for good, except for these capabilities, which started processes inherit."""
    kept = frozenset(capabilities)
    try:
        _prctl(_KEEP_CAPABILITIES, 1)
        os.initgroups(account.name, account.group)
        os.setresgid(account.group, account.group, account.group)
        os.setresuid(account.user, account.user, account.user)
        _set_capabilities(kept, kept, kept)
        for capability in kept:
            _prctl(_AMBIENT, _AMBIENT_RAISE, capability)
        _prctl(_KEEP_CAPABILITIES, 0)
    except OSError as error:
        raise AccountError(
            f"Root cannot run the service as {account.name} here ({error.strerror}): start it as that account."
        ) from None
    protect_process()


def act_as(account: ServiceAccount, capabilities: Iterable[int] = ()) -> None:
    """Lets this process of root act as the account, until `as_caller`."""
    global _acting
    os.initgroups(account.name, account.group)
    _acting = _Acting(account, frozenset(capabilities))
    _lower(_acting)


@contextmanager
def as_caller() -> Iterator[None]:
    """Acts with the rights of the account that called, for a file that the caller named."""
    if _acting is None:
        yield
        return
    os.seteuid(0)
    os.setegid(0)
    try:
        yield
    finally:
        _lower(_acting)


def acting_account() -> ServiceAccount | None:
    return None if _acting is None else _acting.account


def child_options() -> dict[str, Any]:
    """Options of subprocess with which a child has the rights that this process acts with, and no others."""
    acting = _acting
    if acting is None:
        return {}

    def drop() -> None:
        os.seteuid(0)
        become(acting.account, acting.capabilities)

    return {"preexec_fn": drop}


def needed_capabilities(account: ServiceAccount, data_dir: Path, port: int = _FIRST_FREE_PORT) -> set[int]:
    needed = {BIND_LOW_PORTS} if port < _FIRST_FREE_PORT else set()
    return needed | ({READ_EVERYTHING} if unreadable(account, data_dir) else set())


def unreadable(account: ServiceAccount, data_dir: Path) -> Path | None:
    """The folder that keeps the account from this installation or the data directory."""
    pydantic = sys.modules.get("pydantic")  # stands for the installed packages
    modules = [os.__file__, __file__, getattr(pydantic, "__file__", None) or __file__]
    files = [Path(file).resolve() for file in (sys.executable, *modules)]
    for path in (*(file.parent for file in files), data_dir.absolute().parent):
        for folder in reversed((path, *path.parents)):
            if folder.exists() and not _may_enter(account, folder):
                return folder
    return None


def _may_enter(account: ServiceAccount, folder: Path) -> bool:
    found = folder.stat()
    groups = os.getgrouplist(account.name, account.group)
    shift = 6 if found.st_uid == account.user else 3 if found.st_gid in groups else 0
    return bool(found.st_mode >> shift & 0o1)


def _lower(acting: _Acting) -> None:
    os.setegid(acting.account.group)
    os.seteuid(acting.account.user)
    if acting.capabilities:
        _set_capabilities(acting.capabilities, _permitted(), frozenset())


def _name_of(user: int) -> str | None:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return None


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Words(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def _set_capabilities(effective: frozenset[int], permitted: frozenset[int], inheritable: frozenset[int]) -> None:
    """Of this thread; later threads inherit them."""
    words = (_Words * 2)()
    for index in range(2):
        sets = [_word(capabilities, index) for capabilities in (effective, permitted, inheritable)]
        words[index] = _Words(*sets)
    _check(_LIBC.capset(ctypes.byref(_Header(_CAPABILITY_VERSION, 0)), words))


def _permitted() -> frozenset[int]:
    words = (_Words * 2)()
    _check(_LIBC.capget(ctypes.byref(_Header(_CAPABILITY_VERSION, 0)), words))
    return frozenset(number for number in range(64) if words[number // 32].permitted >> number % 32 & 1)


def _word(capabilities: frozenset[int], index: int) -> int:
    return sum(1 << number % 32 for number in capabilities if number // 32 == index)


def _prctl(option: int, *values: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _check(_LIBC.prctl(option, *padded))


def _check(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
