"""All scopes. An operation requires one of them; a client has some of them."""

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
