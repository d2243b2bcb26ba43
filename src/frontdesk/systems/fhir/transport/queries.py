"""Reads and searches as values, so that several are sent to a FHIR server in one batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypeVar

import httpx

from frontdesk.systems.fhir.resources.elements import Resource, instant, stamp

Parameters = Sequence[tuple[str, str]]
T_co = TypeVar("T_co", covariant=True)

FIND = "Appointment/$find"  # how operators read the name of this request

PAGE_SIZE = 1000  # servers send less if they want to
BUFFER_ROOM = timedelta(hours=4)  # a range without room for the buffers of an appointment has no proposal
_MIN_RANGE = timedelta(days=1)
_MAX_VALUES_PER_QUERY = 40


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """One record; the result is None if the server has none."""

    reference: str

    @property
    def target(self) -> str:
        return self.reference

    @property
    def name(self) -> str:
        return f"read of {self.reference.partition('/')[0]}"


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """All matching records, or with `one` at most the first of them."""

    kind: str
    parameters: Parameters
    one: bool = False

    @property
    def target(self) -> str:
        count = "1" if self.one else str(PAGE_SIZE)
        return f"{self.kind}?{httpx.QueryParams([*self.parameters, ('_count', count)])}"

    @property
    def name(self) -> str:
        return f"search of {self.kind}"


@dataclass(frozen=True, slots=True)
class FindQuery:
    """All times that the server's `$find` proposes from `starts` to `ends`, as Appointments without ids."""

    subject: Parameters
    starts: datetime
    ends: datetime

    @property
    def target(self) -> str:
        times = [("start", stamp(self.starts)), ("end", stamp(self.ends))]
        return f"Appointment/$find?{httpx.QueryParams([*times, *self.subject])}"

    @property
    def name(self) -> str:
        return FIND

    def halves(self) -> "tuple[FindQuery, FindQuery] | None":
        """The same question about two shorter ranges, None if it is short already. They share some hours: a time at the
        seam needs room for its buffers in one of them."""
        middle = self.starts + (self.ends - self.starts) / 2
        if self.ends - self.starts <= _MIN_RANGE:
            return None
        return replace(self, ends=middle + BUFFER_ROOM), replace(self, starts=middle - BUFFER_ROOM)

    def after(self, page: Sequence[Resource]) -> "FindQuery | None":
        """What to ask after a page that was cut off at the number that was asked for."""
        limit = next((int(value) for name, value in self.subject if name == "_count"), None)
        last = max((moment for each in page if (moment := instant(each.get("start")))), default=self.ends)
        following = last.replace(second=0, microsecond=0) + timedelta(minutes=1)
        if limit is None or len(page) < limit or not self.starts < following < self.ends:
            return None
        return replace(self, starts=following)


Query = ReadQuery | SearchQuery | FindQuery


@dataclass(frozen=True, slots=True)
class CombinedQuery(Generic[T_co]):
    """Queries, and what is made of their results. Combined queries are sent together by `FhirClient.read_all`."""

    queries: Sequence[Query]
    result: Callable[[Sequence[Any]], T_co]  # of the results of its queries, which differ in type


def searches(kind: str, name: str, values: Sequence[str], parameters: Parameters = ()) -> list[SearchQuery]:
    """Searches for records that match one of the values: several, because the length of a URL is limited."""
    chunks = [values[at : at + _MAX_VALUES_PER_QUERY] for at in range(0, len(values), _MAX_VALUES_PER_QUERY)]
    return [SearchQuery(kind, [(name, ",".join(chunk)), *parameters]) for chunk in chunks]


def bundle(kind: Literal["batch", "transaction"], entries: Sequence[Resource]) -> Resource:
    return {"resourceType": "Bundle", "type": kind, "entry": list(entries)}
