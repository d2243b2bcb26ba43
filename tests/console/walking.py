"""Addresses for every page there is: a page that takes an id gets one that looks right, of whichever practice."""

from collections.abc import Mapping

from frontdesk.console.guard import PREFIX, Page

# What stands in the addresses of pages, and an id of that form which nobody has.
NOBODYS: Mapping[str, str] = {
    "undo_id": "undo_" + "0" * 22,
    "absence_id": "abs_" + "0" * 22,
    "appointment_id": "apt_" + "0" * 22,
    "patient_id": "pat_" + "0" * 22,
    "staff_id": "op_" + "0" * 20,
    "client_id": "fd_" + "0" * 20,
    "endpoint_id": "whk_1_" + "0" * 16,
    "feed_id": "feed_1_" + "0" * 16,
    "approval_id": "0" * 64,
    "passkey_id": "pk_" + "0" * 20,
    "number": "0" * 8,
    "ending": "yaml",
}


def address_of(page: Page, ids: Mapping[str, str] = NOBODYS) -> str:
    path = page.path
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, f"{page.path} takes an id that tests/console/walking.py does not know"
    return PREFIX + path
