"""Paginated lists."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from frontdesk_client._wire import Answer, Reader, Request

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AsyncPage(Generic[T]):
    """One page of a list. `items` contains this page; iterating continues through all following pages."""

    items: tuple[T, ...]
    limit: int
    next_cursor: str | None
    _call: Callable[[Request], Awaitable[Answer]] = field(repr=False, compare=False)
    _request: Request = field(repr=False, compare=False)
    _reader: Reader[T] = field(repr=False, compare=False)

    @classmethod
    def from_json(
        cls, data: Any, call: Callable[[Request], Awaitable[Answer]], request: Request, reader: Reader[T]
    ) -> "AsyncPage[T]":
        items = tuple(reader(each) for each in data["items"])
        return cls(items, data["limit"], data.get("nextCursor"), call, request, reader)

    async def next_page(self) -> "AsyncPage[T] | None":
        """The next page, or None after the last."""
        if self.next_cursor is None:
            return None
        request = self._request.following(self.next_cursor)
        answer = await self._call(request)
        return answer.read(lambda body: AsyncPage.from_json(body, self._call, request, self._reader))

    async def __aiter__(self) -> AsyncIterator[T]:
        page: AsyncPage[T] | None = self
        while page is not None:
            for item in page.items:
                yield item
            page = await page.next_page()
