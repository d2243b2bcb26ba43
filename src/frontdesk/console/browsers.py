"""Names of browsers for the list of sessions."""

from frontdesk.texts import N_

_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "Mac"),
    ("Linux", "Linux"),
)


def browser_name(user_agent: str) -> str:
    """The browser and system of a request, by the names above, so that nothing from the request is stored."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), N_("A browser"))
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), None)
    return browser if system is None else f"{browser} on {system}"
