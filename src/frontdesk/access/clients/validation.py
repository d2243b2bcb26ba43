"""Validates the name, grant, scopes and limits of a client."""

from collections.abc import Collection, Sequence
from typing import cast, get_args

from frontdesk.access.clients.caller import Grant
from frontdesk.access.clients.scopes import every_scope
from frontdesk.domain.spelling import closest
from frontdesk.domain.text import character_error
from frontdesk.texts import N_, ExplainedError, Text

_MAX_NAME_LENGTH = 100
_MAX_PER_MINUTE = 2**31 - 1
_MAX_QUOTA = 2**63 - 1
_MAX_BUDGET = 1_000_000
_MAX_MATCH_MISSES = 100
_MAX_UPCOMING = 1000


class ClientError(ExplainedError):
    """The request is invalid. `field` names the invalid field, if there is one."""

    def __init__(self, text: str | Text, field: str | None = None) -> None:
        super().__init__(text)
        self.field = field


def checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > _MAX_NAME_LENGTH or character_error(name):
        text = Text("A client's name is one line of 1 to %(maximum)s characters.", maximum=_MAX_NAME_LENGTH)
        raise ClientError(text, "name")
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
    for field, template, value, maximum in (
        (
            "per_minute",
            N_("The rate limit (calls a minute) must be between 1 and %(maximum)s."),
            per_minute,
            _MAX_PER_MINUTE,
        ),
        ("quota", N_("The quota must be between 1 and %(maximum)s."), quota, _MAX_QUOTA),
    ):
        if value is not None and not 1 <= value <= maximum:
            raise ClientError(Text(template, maximum=maximum), field)


def check_access_limits(**limits: int | None) -> None:
    """Checks the limits of a client, named like the fields of `AccessLimits`; None follows the practice."""
    for field, template, maximum in (
        (
            "patients_per_hour",
            N_("The hourly patient limit must be between 1 and %(maximum)s, or 0 for no limit."),
            _MAX_BUDGET,
        ),
        (
            "patients_per_day",
            N_("The daily patient limit must be between 1 and %(maximum)s, or 0 for no limit."),
            _MAX_BUDGET,
        ),
        (
            "match_misses",
            N_("The number of failed matches must be between 1 and %(maximum)s, or 0 for no limit."),
            _MAX_MATCH_MISSES,
        ),
        (
            "writes_per_hour",
            N_("The hourly limit on writes of a kind must be between 1 and %(maximum)s, or 0 for no limit."),
            _MAX_BUDGET,
        ),
        (
            "upcoming_per_patient",
            N_("The limit on upcoming appointments of a patient must be between 1 and %(maximum)s, or 0 for no limit."),
            _MAX_UPCOMING,
        ),
    ):
        value = limits.get(field)
        if value is not None and not 0 <= value <= maximum:
            raise ClientError(Text(template, maximum=maximum), field)


def ordered(scopes: Collection[str]) -> tuple[str, ...]:
    return tuple(scope for scope in every_scope() if scope in scopes)
