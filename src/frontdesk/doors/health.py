"""Health: /healthz says that the process is up, /readyz that the database answers and knows this version's schema."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk.store.database import Database, DatabaseUnavailable
from frontdesk.store.migrate import known_migrations


def health_routes(database: Database) -> list[Route]:
    newest = max(migration.number for migration in known_migrations())

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "up"})

    async def readyz(_request: Request) -> Response:
        try:
            applied = await database.fetchval("SELECT max(number) FROM migration")
        except DatabaseUnavailable:
            return JSONResponse({"status": "database unavailable"}, 503, {"Retry-After": "2"})
        if applied != newest:
            return JSONResponse({"status": "migrations pending"}, 503, {"Retry-After": "2"})
        return JSONResponse({"status": "ready"})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
