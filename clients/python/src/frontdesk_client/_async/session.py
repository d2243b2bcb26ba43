"""The HTTP session of a client: tokens, retries and deadlines."""

import platform
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from frontdesk_client._async.pages import AsyncPage
from frontdesk_client._async.proposals import AsyncProposal
from frontdesk_client._retries import Deadline, Retries
from frontdesk_client._tokens import Token
from frontdesk_client._version import __version__
from frontdesk_client._waiting import AsyncTurn, async_sleep
from frontdesk_client._wire import Answer, Reader, Request, given
from frontdesk_client.errors import AnswerLost, FrontdeskError
from frontdesk_client.problems import Unauthorized

T = TypeVar("T")

_HEADERS = {
    "Accept": "application/json",
    "User-Agent": f"frontdesk-client/{__version__} python/{platform.python_version()}",
}


class AsyncSession:
    def __init__(
        self,
        base_url: str,
        *,
        client_id: str,
        client_secret: str,
        timeout: float = 10.0,
        deadline: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`base_url` is the address of the service, with or without `/api`. `timeout` is the read timeout and
        `deadline` the time limit of a call including retries, in seconds. Pass a `transport` for proxies and
        certificates."""
        if not base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must start with http:// or https://")
        self._base_url = base_url.rstrip("/").removesuffix("/api")
        self._credentials = {"client_id": client_id, "client_secret": client_secret}
        self._timeout = timeout
        self._deadline = deadline
        self._token: Token | None = None
        self._turn = AsyncTurn()
        self._http = httpx.AsyncClient(transport=transport, headers=_HEADERS)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def _read(self, request: Request, reader: Reader[T]) -> T:
        answer = await self._call(request)
        return answer.read(reader)

    async def _read_page(self, request: Request, reader: Reader[T]) -> AsyncPage[T]:
        answer = await self._call(request)
        return answer.read(lambda body: AsyncPage.from_json(body, self._call, request, reader))

    async def _propose(self, request: Request, reader: Reader[T]) -> AsyncProposal[T]:
        return AsyncProposal(self._call, request, reader, await self._call(request))

    async def _call(self, request: Request) -> Answer:
        """The response to a request: a success or the challenge of a write. A refused token is renewed once."""
        deadline, retries = Deadline(self._deadline), Retries()
        token = await self._fresh_token(deadline)
        try:
            return await self._persist(request, token, deadline, retries)
        except Unauthorized:
            token = await self._fresh_token(deadline, refused=token)
        return await self._persist(request, token, deadline, retries)

    async def _fresh_token(self, deadline: Deadline, refused: str | None = None) -> str:
        """The shared token; one caller fetches it while the others wait."""
        try:
            async with self._turn.hold(deadline.left()):
                token = self._token
                if token is None or token.text == refused or not token.is_fresh():
                    token = self._token = await self._fetch_token(deadline)
                return token.text
        except TimeoutError:
            raise AnswerLost("No token came within the deadline.") from None

    async def _fetch_token(self, deadline: Deadline) -> Token:
        request = Request("POST", "/oauth/token", body={"grant_type": "client_credentials", **self._credentials})
        answer = await self._persist(request, None, deadline, Retries())
        return answer.read(Token.from_json)

    async def _persist(self, request: Request, token: str | None, deadline: Deadline, retries: Retries) -> Answer:
        while True:
            try:
                answer = await self._exchange(request, token, deadline)
                if answer.succeeded or answer.is_challenge:
                    return answer
                raise answer.problem()
            except FrontdeskError as error:
                pause = retries.pause(error)
                if pause is None or not deadline.allows(pause):
                    raise
                await async_sleep(pause)
                if not deadline.allows(0):  # the delay exceeded the deadline: raise the original error
                    raise

    async def _exchange(self, request: Request, token: str | None, deadline: Deadline) -> Answer:
        content = bytearray()
        try:
            async with self._http.stream(
                request.method, **self._addressed(request, token), timeout=min(self._timeout, deadline.left())
            ) as response:
                async for chunk in response.aiter_bytes():
                    content += chunk
                    deadline.left()
        except httpx.LocalProtocolError:
            raise  # the request itself cannot be sent
        except httpx.RequestError as error:
            raise AnswerLost(f"No answer came: {type(error).__name__} {error}".rstrip()) from error
        return Answer.received(response.status_code, bytes(content), response.headers)

    def _addressed(self, request: Request, token: str | None) -> dict[str, Any]:
        if token is None:
            return {"url": self._base_url + request.path, "data": request.body}
        headers = {"Authorization": f"Bearer {token}"}
        if request.idempotency_key is not None:
            headers["Idempotency-Key"] = request.idempotency_key
        return {
            "url": f"{self._base_url}/api{request.path}",
            "params": given(request.query),
            "json": None if request.body is None else given(request.body),
            "headers": headers,
        }
