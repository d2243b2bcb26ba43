"""All scopes. An operation requires one of them; a client has some of them."""

from collections.abc import Collection, Mapping
from functools import cache

from frontdesk.feature import StoredFeatures, features

SCOPES = (
    "practices:read",
    "slots:read",
    "patients:read",
    "patients:write",
    "appointments:read",
    "appointments:book",
    "appointments:cancel",
    "appointments:confirm",
)


# What an assistant may reach at most, by the role of the staff member who connected it. Callers are identified by the
# data that patients:write changes, so only admins can hand it to an assistant.
ROLE_SCOPES: Mapping[str, frozenset[str]] = {
    "staff": frozenset(SCOPES) - {"patients:write"},
    "admin": frozenset(SCOPES),
}


@cache
def extension_scopes() -> tuple[str, ...]:
    """Of the features' operations. No client holds one that was not named when its scopes were chosen."""
    return tuple(scope for feature in features() for scope in feature.scopes)


@cache
def every_scope() -> tuple[str, ...]:
    return SCOPES + extension_scopes()


def usable_scopes(scopes: Collection[str], stored: StoredFeatures) -> frozenset[str]:
    """Without those of features that the practice has switched off."""
    unusable = (scope for feature in features() if not feature.is_enabled(stored) for scope in feature.scopes)
    return frozenset(scopes).difference(unusable)
