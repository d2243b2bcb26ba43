"""The console's style sheets and scripts, under names that change with their content: a browser keeps them for ever.

A script may import another by `"./name.js"`; the published one asks for the published name.
"""

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.domain.errors import Problem

PATH = "/console/assets"
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_IMPORT = re.compile(rb'"\./([a-z-]+\.js)"')


@dataclass(frozen=True, slots=True)
class _Asset:
    name: str
    media_type: str
    body: bytes
    packed: bytes


def asset(name: str) -> str:
    """The address of a file in `static/`."""
    return f"{PATH}/{_published(name).name}"


def asset_routes() -> list[Route]:
    async def serve(request: Request) -> Response:
        found = _by_published_name().get(request.path_params["name"])
        if found is None:
            raise Problem("not_found", "There is nothing at this path.")
        headers = {
            "Cache-Control": "public, max-age=31536000, immutable",
            "Content-Security-Policy": "default-src 'none'",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
        }
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(found.packed, media_type=found.media_type, headers=headers)
        return Response(found.body, media_type=found.media_type, headers=headers)

    return [Route(f"{PATH}/{{name}}", serve)]


@cache
def _published(name: str) -> _Asset:
    stem, _, ending = name.rpartition(".")
    body = (files("frontdesk.doors.console") / "static" / name).read_bytes()
    body = _IMPORT.sub(lambda found: f'"./{_published(found.group(1).decode()).name}"'.encode(), body)
    tag = hashlib.sha256(body).hexdigest()[:16]
    return _Asset(f"{stem}.{tag}.{ending}", _TYPES[ending], body, gzip.compress(body, 9, mtime=0))


@cache
def _by_published_name() -> Mapping[str, _Asset]:
    folder = files("frontdesk.doors.console") / "static"
    found = (_published(file.name) for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES)
    return {each.name: each for each in found}
