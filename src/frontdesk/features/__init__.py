"""The features beyond the contract's core, in the order in which the core iterates over them."""

FEATURES = (
    "notes",
    "agent_view",
    "calendar_feeds",
    "patient_links",
    "absences",
    "holds",
    "client_undo",
    "receipts",
    "approvals",
)
