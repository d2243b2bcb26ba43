"""HTML building blocks of the documentation pages. All text is escaped here."""

import shlex
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from urllib.parse import urlencode

import orjson

from frontdesk.domain.errors import CATALOGUE
from frontdesk.operations import OPERATIONS, Operation
from frontdesk.settings import Settings

_NAMES = frozenset(operation.name for operation in OPERATIONS)
_LINKS = (
    ("/docs", "Reference"),
    ("/docs/guides", "Guides"),
    ("/errors.html", "Errors"),
    ("/openapi/v1.json", "OpenAPI"),
)


def page(title: str, path: str, contents: str, main: str, assets: Mapping[str, str]) -> str:
    """A complete page with its table of contents."""
    here = {path: ' aria-current="page"'}
    links = "".join(f'<a href="{address}"{here.get(address, "")}>{name}</a>' for address, name in _LINKS)
    return fill(
        "frame.html",
        title=escape(title),
        links=links,
        contents=contents,
        main=main,
        style=f"/docs/assets/{assets['docs.css']}",
        script=f"/docs/assets/{assets['docs.js']}",
        icon=f"/docs/assets/{assets['icon.svg']}",
    )


def fill(template: str, **parts: str) -> str:
    """A template of this package with its placeholders filled."""
    text = (files("frontdesk.doors.docs") / template).read_text(encoding="utf-8")
    return Template(text).substitute(parts)


def contents_list(heading: str, entries: Iterable[tuple[str, str, str]]) -> str:
    """A section of the table of contents. Entries are (address, mark, text)."""
    items = "".join(
        f'<li data-find="{escape(f"{mark} {text} {address}".lower())}"><a href="{address}">{mark_of(mark)}'
        f"<span>{escape(text)}</span></a></li>"
        for address, mark, text in entries
    )
    return f"<section><h2>{escape(heading)}</h2><ul>{items}</ul></section>"


def mark_of(text: str) -> str:
    """A method or status as a coloured label."""
    return f'<b class="mark {text[0] + "xx" if text[:1].isdigit() else text.lower()}">{text}</b>' if text else ""


def prose(text: str) -> str:
    """Plain text with `names` set as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if index % 2 else piece for index, piece in enumerate(pieces))


def linked(text: str) -> str:
    """Plain text with names of operations and error codes linked to their entries."""
    words = []
    for word in escape(text).split(" "):
        name = word.rstrip(".,;:")
        place = f"/docs#{name}" if name in _NAMES else f"/errors.html#{name}"
        found = name in _NAMES or (
            name in CATALOGUE and "_" in name
        )  # "internal" and "conflict" are ordinary words, too
        words.append(f'<a href="{place}"><code>{name}</code></a>{word[len(name) :]}' if found else word)
    return " ".join(words)


def sample(caption: str, code: str) -> str:
    """A code sample with a caption."""
    return f'<figure class="sample"><figcaption>{escape(caption)}</figcaption><pre><code>{code}</code></pre></figure>'


def json_markup(value: object, indent: int = 0) -> str:
    """Indented JSON with highlighted keys and values."""
    space, inner = "  " * indent, "  " * (indent + 1)
    if isinstance(value, Mapping) and value:
        members = [
            f'{inner}<i class="key">{_text(name)}</i>: {json_markup(member, indent + 1)}'
            for name, member in value.items()
        ]
        return "{\n" + ",\n".join(members) + f"\n{space}}}"
    if isinstance(value, list) and value:
        if all(isinstance(item, int) for item in value):
            return "[" + ", ".join(json_markup(item) for item in value) + "]"
        return "[\n" + ",\n".join(inner + json_markup(item, indent + 1) for item in value) + f"\n{space}]"
    if isinstance(value, str):
        return f'<i class="text">{_text(value)}</i>'
    return f'<i class="value">{_text(value)}</i>'


def _text(value: object) -> str:
    return escape(orjson.dumps(value).decode(), quote=False)


def curl(operation: Operation, settings: Settings, body: Mapping[str, object] | None) -> str:
    """The operation's example as a curl command."""
    path, query = operation.path, {}
    for name, value in operation.example.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", str(value))
        elif body is None:
            query[name] = value
    address = f"{settings.public_url}/api{path}" + (f"?{urlencode(query)}" if query else "")
    lines = [f"curl {'' if operation.method == 'GET' else f'-X {operation.method} '}{shlex.quote(address)}"]
    lines.append('-H "Authorization: Bearer $TOKEN"')
    if body is not None:
        document = orjson.dumps(body, option=orjson.OPT_INDENT_2).decode() if body else "{}"
        lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(document)}".replace("\n", "\n  ")]
    return escape(" \\\n  ".join(lines), quote=False)
