"""Runs operations for the caller of one FHIR request."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from frontdesk.access.clients.caller import Caller
from frontdesk.access.limits.rate_limiter import RateLimiter, Refused
from frontdesk.domain.cursors import Cursors
from frontdesk.doors.fhir.addresses import FHIR_PREFIX
from frontdesk.engine.arguments import Arguments
from frontdesk.engine.execute import Call, Engine
from frontdesk.engine.external_identifiers import ExternalIdentifiers
from frontdesk.engine.sandbox import engine_for
from frontdesk.operations import BY_NAME, Operation
from frontdesk.web.bodies import identify_again
from frontdesk.web.http_request import SIMULATE, HttpRequest, RawHeaders, decoded

_ANY_TOKEN_MAY = BY_NAME["get_capabilities"]


class Calls:
    """A request may need several operations. The gateway has counted one call; each further operation that is not
    answered from the directory alone is counted, too. `operation` is the one admitted, for the request log."""

    def __init__(
        self, engine: Engine, limiter: RateLimiter, http: HttpRequest, identifiers: ExternalIdentifiers
    ) -> None:
        self.identifiers = identifiers
        self._engine = engine
        self._limiter = limiter
        self._http = http
        self._is_counted = True
        self.operation: Operation | None = None

    async def admit(self, operation: Operation) -> None:
        """Checks token, practice and the scope of an operation before the rest of the request is read."""
        self.operation = operation
        if self._http.caller is None:
            call = Call(_ANY_TOKEN_MAY, self._http.token, Arguments, self._http.request_id, resource=FHIR_PREFIX)
            await self._engine.execute(call)
            self._http.caller = call.caller
        await self._engine.admit(self._call(operation, {}))

    async def admit_again(self) -> None:
        """Checks the caller again after the body has arrived, which may take long."""
        assert self.operation is not None, "admit comes first"
        identify_again(self._http, self._engine.authenticator, FHIR_PREFIX)
        await self.admit(self.operation)

    async def run(self, operation: Operation, **values: object) -> dict[str, Any]:
        """The operation's answer. `values` have their published names; None is left out."""
        return await self._execute(operation, _without_none(values), None)

    async def write(
        self, operation: Operation, values: Mapping[str, object], *, key: str | None, removed: Iterable[str] = ()
    ) -> dict[str, Any]:
        """The answer of a write with an Idempotency-Key. `removed` values are null."""
        return await self._execute(operation, _without_none(values) | dict.fromkeys(removed), key)

    async def result_of(self, key: str | None, token: str | None) -> Mapping[str, Any]:
        """What a write with this Idempotency-Key or confirmation token answered; empty if it was not executed."""
        return await self._engine.writes.intents.result_of(self.caller, key, token, self._engine.clock())

    async def _execute(self, operation: Operation, values: dict[str, object], key: str | None) -> dict[str, object]:
        if operation.depends_on != "directory":
            await self._count()
        call = self._call(operation, values, key)
        answer = await engine_for(call, self._engine).execute(call)
        return dict(answer.body)

    @property
    def caller(self) -> Caller:
        assert self._http.caller is not None, "admit comes first"
        return self._http.caller

    @property
    def cursors(self) -> Cursors:
        return self._engine.cursors(self.caller.practice_id)

    def _call(self, operation: Operation, values: dict[str, object], idempotency_key: str | None = None) -> Call:
        http, run = self._http, operation.run
        key = (f"fhir {run.__module__}.{run.__name__}", orjson.dumps(values, option=orjson.OPT_SORT_KEYS))
        return Call(
            operation,
            http.token,
            lambda: Arguments(values),
            http.request_id,
            idempotency_key,
            simulate=decoded(http.headers.get(SIMULATE)),
            caller=http.caller,
            cache_key=key if operation.depends_on is not None else None,
            resource=FHIR_PREFIX,
        )

    async def _count(self) -> None:
        if self._is_counted:
            self._is_counted = False
            return
        try:
            self._show(list(await self._limiter.charge(self.caller)))
        except Refused as refused:
            self._show(list(refused.headers))
            raise refused.problem from None

    def _show(self, limits: RawHeaders) -> None:
        """Replaces the rate limit headers of the answer."""
        names = {name for name, _ in limits}
        self._http.added[:] = [each for each in self._http.added if each[0] not in names] + limits


def _without_none(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}
