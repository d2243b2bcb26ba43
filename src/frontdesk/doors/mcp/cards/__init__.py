"""App cards (MCP Apps): a slot picker, and a card with a button that confirms a write.

A card is one HTML document without any address in it. It talks to its host only.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from frontdesk.doors.mcp.read_back import lines
from frontdesk.operations import Operation

EXTENSION = "io.modelcontextprotocol/ui"
MIME_TYPE = "text/html;profile=mcp-app"
_META_KEY = "frontdesk/card"
_FOLDER = Path(__file__).parent
_SLOT_SEARCHES = ("search_slots", "find_first_available")
_TITLES = {"confirm": "Confirm a change", "slots": "Free times"}


def card_of(operation: Operation) -> Mapping[str, object] | None:
    """The `_meta` of a tool that has a card."""
    if operation.name in _SLOT_SEARCHES:
        name = "slots"
    elif operation.kind == "write":
        name = "confirm"
    else:
        return None
    return {"ui": {"resourceUri": _uri(name), "visibility": ["model", "app"]}}


def resources() -> list[dict[str, object]]:
    return [{"uri": _uri(name), "name": name, "title": title, "mimeType": MIME_TYPE} for name, title in _TITLES.items()]


def contents(uri: str) -> list[dict[str, object]] | None:
    """The document of a card; None for an unknown address."""
    name = next((name for name in _TITLES if uri == _uri(name)), None)
    if name is None:
        return None
    ui = {"csp": {"connectDomains": [], "resourceDomains": []}, "prefersBorder": True}
    return [{"uri": uri, "mimeType": MIME_TYPE, "text": _document(name), "_meta": {"ui": ui}}]


@cache
def _document(name: str) -> str:
    text = (_FOLDER / "card.html").read_text(encoding="utf-8")
    script = (_FOLDER / f"{name}.js").read_text(encoding="utf-8")
    return text.replace("TITLE", _TITLES[name], 1).replace("SCRIPT", script, 1)


def proposal_meta(operation: Operation, read_back: Mapping[str, object], token: str | None) -> dict[str, object]:
    """What the card of a proposed write shows. The token is here only if the model must not see it."""
    shown = {"tool": operation.name, "title": operation.title, "lines": lines(read_back)}
    return {_META_KEY: shown if token is None else {**shown, "confirmationToken": token}}


def takes_cards(capabilities: object) -> bool:
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    ui = extensions.get(EXTENSION) if isinstance(extensions, dict) else None
    types = ui.get("mimeTypes") if isinstance(ui, dict) else None
    return isinstance(types, list) and MIME_TYPE in types


def _uri(name: str) -> str:
    return f"ui://frontdesk/{name}.html"
