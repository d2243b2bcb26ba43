"""All scopes. An operation requires one of them; a client has some of them."""

from collections.abc import Mapping

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

# Of operations beyond the contract. No client holds one that was not named when its scopes were chosen.
EXTENSION_SCOPES = ("notes:read",)
EVERY_SCOPE = SCOPES + EXTENSION_SCOPES

# What an assistant may reach at most, by the role of the staff member who connected it. Callers are identified by the
# data that patients:write changes, so only admins can hand it to an assistant.
ROLE_SCOPES: Mapping[str, frozenset[str]] = {
    "staff": frozenset(SCOPES) - {"patients:write"},
    "admin": frozenset(SCOPES),
}
