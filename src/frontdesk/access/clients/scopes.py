"""Every scope there is. An operation names one of them; a client holds some of them."""

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
