"""Static documents, compressed once and with ETags, and assets under names that contain a hash of their content.

Imports of `"./name.js"` in scripts are rewritten to the hashed names.
"""

import gzip
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

_REVALIDATE = "public, no-cache"
_FOR_EVER = "public, max-age=31536000, immutable"
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_IMPORT = re.compile(rb'"\./([a-z-]+\.js)"')


@dataclass(frozen=True, slots=True)
class StaticFile:
    media_type: str
    body: bytes
    packed: bytes
    tag: str
    caching: str

    def answer(self, request: Request, headers: Mapping[str, str]) -> Response:
        """The document, compressed if accepted, or 304 if unchanged."""
        headers = {
            "Cache-Control": self.caching,
            "ETag": f'W/"{self.tag}"',
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
            **headers,
        }
        known = [
            tag.strip().removeprefix("W/").strip('"') for tag in request.headers.get("if-none-match", "").split(",")
        ]
        if self.tag in known:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, media_type=self.media_type, headers={**headers, "Content-Encoding": "gzip"})
        return Response(self.body, media_type=self.media_type, headers=headers)


def published(media_type: str, body: bytes, caching: str = _REVALIDATE) -> StaticFile:
    tag = hashlib.sha256(body).hexdigest()[:16]
    return StaticFile(media_type, body, gzip.compress(body, 9, mtime=0), tag, caching)


class Assets:
    """The files of folders, each with a name of its own, and generated ones, prepared on first use."""

    def __init__(
        self,
        folders: Callable[[], Iterable[Traversable]],
        written: Mapping[str, Callable[[], bytes]] | None = None,
    ) -> None:
        self._folders = folders
        self._written = written or {}

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The published name of each file."""
        return {plain: name for plain, (name, _) in self._files.items()}

    def __getitem__(self, plain: str) -> StaticFile:
        return self._files[plain][1]

    def get(self, name: str) -> StaticFile | None:
        """The file with this published name."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, StaticFile]:
        return dict(self._files.values())

    @cached_property
    def _files(self) -> Mapping[str, tuple[str, StaticFile]]:
        found = {name: write() for name, write in self._written.items()}
        for file in (file for folder in self._folders() if folder.is_dir() for file in folder.iterdir()):
            assert file.name not in found, file.name
            found[file.name] = file.read_bytes()
        made: dict[str, tuple[str, StaticFile]] = {}

        def make(plain: str) -> str:
            if plain not in made:
                stem, _, ending = plain.rpartition(".")
                body = _IMPORT.sub(lambda other: f'"./{make(other.group(1).decode())}"'.encode(), found[plain])
                document = published(_TYPES[ending], body, _FOR_EVER)
                made[plain] = (f"{stem}.{document.tag}.{ending}", document)
            return made[plain][0]

        for plain in found:
            if plain.rpartition(".")[2] in _TYPES:
                make(plain)
        return made
