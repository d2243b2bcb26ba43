"""The style sheets and scripts of the console and of features."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.console.calendar.grid import grid_css
from frontdesk.domain.errors import Problem
from frontdesk.feature import features
from frontdesk.web.static_files import Assets

PATH = "/console/assets"


def _folders() -> list[Traversable]:
    return [files("frontdesk.console") / "static", *(feature.folder / "static" for feature in features())]


_STATIC = Assets(_folders, {"grid.css": grid_css})


def asset(name: str) -> str:
    """The URL of a file in a folder `static/`, or of a generated one."""
    return f"{PATH}/{_STATIC.names[name]}"


def asset_routes() -> list[Route]:
    async def serve(request: Request) -> Response:
        found = _STATIC.get(request.path_params["name"])
        if found is None:
            raise Problem("not_found", "There is nothing at this path.")
        headers = {"Content-Security-Policy": "default-src 'none'", "Cross-Origin-Resource-Policy": "same-origin"}
        return found.answer(request, headers)

    return [Route(f"{PATH}/{{name}}", serve)]
