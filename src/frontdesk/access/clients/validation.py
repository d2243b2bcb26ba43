"""Validates the name, grant, scopes and limits of a client."""

from collections.abc import Collection, Sequence
from typing import cast, get_args

from frontdesk.access.clients.caller import Grant
from frontdesk.access.clients.scopes import every_scope
from frontdesk.domain.spelling import closest
from frontdesk.domain.text import character_error

_MAX_NAME_LENGTH = 100
_MAX_PER_MINUTE = 2**31 - 1
_MAX_QUOTA = 2**63 - 1
_MAX_BUDGET = 1_000_000
_MAX_MATCH_MISSES = 100


class ClientError(Exception):
    """The request is invalid; the message is one sentence. `field` names the invalid field, if there is one."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


def checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > _MAX_NAME_LENGTH or character_error(name):
        raise ClientError(f"A client's name is one line of 1 to {_MAX_NAME_LENGTH} characters.", "name")
    return name


def checked_grant(grant: str) -> Grant:
    if grant not in get_args(Grant):
        grants = " or ".join(get_args(Grant))
        raise ClientError(f"A client's grant is {grants}.", "grant")
    return cast(Grant, grant)


def checked_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    if not scopes:
        raise ClientError("A client needs at least one scope.", "scopes")
    for scope in scopes:
        if scope not in every_scope():
            raise ClientError(f"There is no scope {scope!r}{closest(scope, every_scope())}.", "scopes")
    return ordered(scopes)


def check_limits(per_minute: int | None, quota: int | None) -> None:
    for field, name, value, maximum in (
        ("per_minute", "rate limit (calls a minute)", per_minute, _MAX_PER_MINUTE),
        ("quota", "quota", quota, _MAX_QUOTA),
    ):
        if value is not None and not 1 <= value <= maximum:
            raise ClientError(f"The {name} must be between 1 and {maximum}.", field)


def check_patient_access(**limits: int | None) -> None:
    """Checks the limits of a client, named like the fields of `PatientAccess`; None follows the practice."""
    for field, name, maximum in (
        ("patients_per_hour", "hourly patient limit", _MAX_BUDGET),
        ("patients_per_day", "daily patient limit", _MAX_BUDGET),
        ("match_misses", "number of failed matches", _MAX_MATCH_MISSES),
    ):
        value = limits.get(field)
        if value is not None and not 0 <= value <= maximum:
            raise ClientError(f"The {name} must be between 1 and {maximum}, or 0 for no limit.", field)


def ordered(scopes: Collection[str]) -> tuple[str, ...]:
    return tuple(scope for scope in every_scope() if scope in scopes)
