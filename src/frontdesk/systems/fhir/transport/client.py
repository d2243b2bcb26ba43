"""Client of one practice's FHIR server: reads, searches, conditional creates and versioned updates.

A request fails as certainly not executed (`SystemUnavailable`), declined (`Declined`), or, for a write, with an unknown
outcome (`AnswerLost`). Writes are never repeated here. URLs and bodies carry protected data and are never logged.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx
import orjson

from frontdesk.systems.fhir.resources.elements import (
    INTENTS,
    Resource,
    identifier_values,
    is_record,
    listed,
    reference_of,
    version_of,
)
from frontdesk.systems.fhir.resources.refusals import DECLINED, refusal_reason
from frontdesk.systems.fhir.transport.answers import Answer, first_record, operation_result
from frontdesk.systems.fhir.transport.batches import Batches, is_unknown
from frontdesk.systems.fhir.transport.deadline import Deadline, gather_all
from frontdesk.systems.fhir.transport.queries import (
    CombinedQuery,
    FindQuery,
    Parameters,
    Query,
    ReadQuery,
    SearchQuery,
    bundle,
    searches,
)
from frontdesk.systems.fhir.transport.request_sender import JSON, Request, RequestSender
from frontdesk.systems.port import Misconfigured, SystemUnavailable

MAX_PAGES = 50
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)
_log = logging.getLogger(__name__)


class Declined(Exception):
    """The server refused a write. `contended`: another writer changed the record or is writing now, or it exists."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status)
        self.contended = status in (409, 412)
        self.reason = reason


class AnswerLost(Exception):
    """The outcome of a write is unknown. `failed`: the server answered with an error, or with success and a refusal in
    the body, which is then the `reason`."""

    def __init__(self, *, failed: bool = False, retry_after: int = 2, reason: str = "") -> None:
        super().__init__("the answer to a write was lost")
        self.failed = failed
        self.retry_after = retry_after
        self.reason = reason


Made = tuple[str, Resource]  # a new record, and the urn by which others of the same transaction refer to it
Written = Resource | Declined | AnswerLost | SystemUnavailable


class FhirClient:
    def __init__(self, base_url: str, sender: RequestSender) -> None:
        self._base_url = base_url
        self.sender = sender
        self.batches = Batches()

    async def close(self) -> None:
        await self.sender.close()

    async def read(self, deadline: Deadline, reference: str) -> Resource | None:
        """One record, or None if the server has none."""
        query = ReadQuery(reference)
        return self._record(query, await self._ask(deadline, query))

    async def search(self, deadline: Deadline, kind: str, parameters: Parameters) -> list[Resource]:
        """All matching records."""
        query = SearchQuery(kind, parameters)
        return await self._records(deadline, query, await self._ask(deadline, query))

    async def search_any(self, deadline: Deadline, kind: str, name: str, values: Sequence[str]) -> list[Resource]:
        """All records that match one of the values."""
        return [found for page in await self.query_all(deadline, searches(kind, name, values)) for found in page]

    async def query_all(self, deadline: Deadline, queries: Sequence[Query]) -> list[Any]:
        """The result of each query: a record or None of a ReadQuery, a list of records of the others."""
        answers = None
        if self.batches.takes("reads") and len(queries) > 1:
            answers = await self._ask_in_batch(deadline, queries)
        if answers is None:
            answers = await gather_all(*(self._ask(deadline, query) for query in queries))
        return await gather_all(
            *(self._result(deadline, query, answer) for query, answer in zip(queries, answers, strict=True))
        )

    async def read_all(self, deadline: Deadline, *combined: CombinedQuery[object]) -> list[Any]:
        """The result of each of them, whose types differ; a query that several have in common is sent once."""
        queries = {query.target: query for each in combined for query in each.queries}
        found = dict(zip(queries, await self.query_all(deadline, list(queries.values())), strict=True))
        return [each.result([found[query.target] for query in each.queries]) for each in combined]

    async def pages(
        self, deadline: Deadline, kind: str, parameters: Parameters, *, one: bool = False
    ) -> AsyncIterator[list[Resource]]:
        """The pages of a search, with `one` of a single record each."""
        query = SearchQuery(kind, parameters, one)
        async for page in self._pages(deadline, query, await self._ask(deadline, query)):
            yield page

    async def create(self, deadline: Deadline, resource: Resource, unless: str) -> Resource:
        """The created record, or the existing one that matches `unless`."""
        kind, name = resource["resourceType"], f"create of {resource['resourceType']}"
        answer = await self._exchange_write(deadline, "POST", kind, name, resource, {"If-None-Exist": unless})
        if answer.status == 200 and is_record(answer.found, kind) and not _has_our_intent(answer.found, resource):
            # It ignored the condition: the record is somebody else's, and must not be taken for a booking gone wrong.
            reason = "the server answers If-None-Exist with another record: it does not search by identifier"
            raise self.sender.report_misconfiguration(name, Misconfigured(reason))
        return self._stored(kind, name, answer)

    async def update(self, deadline: Deadline, resource: Resource, beside: Sequence[Made] = ()) -> Resource:
        """Updates the record if it still has the version that was read, and creates others in the same transaction."""
        kind, name = resource["resourceType"], f"update of {resource['resourceType']}"
        if not beside:
            headers = {"If-Match": _etag(resource)}
            return await self._write(deadline, "PUT", reference_of(resource), name, resource, headers)
        entries = [
            _versioned_update(resource),
            *(
                {"fullUrl": url, "resource": each, "request": {"method": "POST", "url": each["resourceType"]}}
                for url, each in beside
            ),
        ]
        answer = await self._exchange_write(deadline, "POST", "", name, bundle("transaction", entries), {})
        return self._stored(kind, name, self._with_first(kind, answer))

    async def operate(
        self, deadline: Deadline, target: str, name: str, parameters: Resource, before: Resource | None = None
    ) -> Resource:
        """Executes an operation that changes an Appointment, if it still has the version of `before`, and returns the
        Appointment."""
        headers = {} if before is None else {"If-Match": _etag(before)}
        answer = await self._exchange_write(deadline, "POST", target, name, parameters, headers)
        return self._stored("Appointment", name, self._with_first("Appointment", answer))

    def _with_first(self, kind: str, answer: Answer) -> Answer:
        return answer if answer.found is None else replace(answer, resource=first_record(kind, answer.found))

    async def update_all(self, deadline: Deadline, resources: Sequence[Resource]) -> Sequence[Written | None]:
        """What became of each update. Without batches they are sent one by one up to the first that fails; None: not
        sent."""
        if self.batches.takes("updates") and len(resources) > 1:
            in_batch = await self._update_in_batch(deadline, resources)
            if in_batch is not None:
                return in_batch
        written: list[Written | None] = []
        for resource in resources:
            try:
                written.append(await self.update(deadline, resource))
            except (Declined, AnswerLost, SystemUnavailable) as error:
                written.append(error)
                break
        return [*written, *(None for _ in resources[len(written) :])]

    async def _update_in_batch(self, deadline: Deadline, resources: Sequence[Resource]) -> list[Written] | None:
        """None if the server does not know batches, and has executed nothing."""
        entries = [_versioned_update(each) for each in resources]
        try:
            answer = await self._exchange_write(deadline, "POST", "", "batch", bundle("batch", entries), {})
            answers = self.batches.answers("updates", answer, len(resources))
            if answers is None and is_unknown(answer):
                return None
            if answers is None:
                self._check_written("batch", answer)
                raise AnswerLost
        except (Declined, AnswerLost, SystemUnavailable) as error:
            return [error for _ in resources]
        return [self._written(each, single) for each, single in zip(resources, answers, strict=True)]

    def _written(self, resource: Resource, answer: Answer) -> Written:
        kind = resource["resourceType"]
        try:
            return self._stored(kind, f"update of {kind}", answer)
        except (Declined, AnswerLost, SystemUnavailable) as error:
            return error

    async def _ask(self, deadline: Deadline, query: Query) -> Answer:
        return await self._get(deadline, Request("GET", f"{self._base_url}/{query.target}", query.name))

    async def _get(self, deadline: Deadline, request: Request) -> Answer:
        """Sends a read, and once more if it broke off: the server may have closed an idle connection."""
        try:
            try:
                return await self.sender.send(deadline, request)
            except (httpx.RemoteProtocolError, httpx.ReadError):
                return await self.sender.send(deadline, request)
        except (httpx.HTTPError, TimeoutError) as error:
            raise SystemUnavailable from error

    async def _ask_in_batch(self, deadline: Deadline, queries: Sequence[Query]) -> list[Answer] | None:
        """None if the server refused the batch; it is then asked one by one."""
        body = orjson.dumps(bundle("batch", [{"request": {"method": "GET", "url": query.target}} for query in queries]))
        request = Request("POST", self._base_url, "batch", body, {"Content-Type": JSON})
        answer = await self._get(deadline, request)
        if answer.misconfiguration is None and answer.found is None and not is_unknown(answer):
            raise SystemUnavailable(answer.retry_after)
        return self.batches.answers("reads", answer, len(queries))

    async def _result(self, deadline: Deadline, query: Query, answer: Answer) -> object:
        if isinstance(query, ReadQuery):
            return self._record(query, answer)
        if isinstance(query, FindQuery):
            return await self._proposed(deadline, query, answer)
        return await self._records(deadline, query, answer)

    def _record(self, query: ReadQuery, answer: Answer) -> Resource | None:
        if answer.status in (404, 410) and not answer.is_foreign:
            return None
        found = self._readable(query.name, answer)
        if query.reference != "metadata" and f"{found['resourceType']}/{found.get('id')}" != query.reference:
            raise SystemUnavailable
        return found

    async def _records(self, deadline: Deadline, query: SearchQuery, answer: Answer) -> list[Resource]:
        found: list[Resource] = []
        async for page in self._pages(deadline, query, answer):
            found += page
            if query.one and found:
                break
        return found

    async def _pages(self, deadline: Deadline, query: SearchQuery, answer: Answer) -> AsyncIterator[list[Resource]]:
        url: str | None = None
        for _ in range(MAX_PAGES):
            if url is not None:
                answer = await self._get(deadline, Request("GET", url, query.name))
            page = self._readable(query.name, answer)
            if page["resourceType"] != "Bundle":
                raise SystemUnavailable
            found = [entry.get("resource") for entry in listed(page.get("entry"))]
            yield [record for record in found if is_record(record, query.kind)]
            url = self._next_page(query.name, page)
            if url is None:
                return
        raise self._too_many(query.kind)

    async def _proposed(self, deadline: Deadline, query: FindQuery, answer: Answer) -> list[Resource]:
        """A server may refuse a range with too much in it: it is asked about halves of it, down to a day."""
        found: list[Resource] = []
        for _ in range(MAX_PAGES):
            halves = query.halves() if answer.refuses_question else None
            if halves is not None:
                for half in halves:
                    found += await self._proposed(deadline, half, await self._ask(deadline, half))
                return found
            answered = operation_result(self._readable(query.name, answer))
            if answered["resourceType"] != "Bundle":
                raise SystemUnavailable
            page = [entry.get("resource") for entry in listed(answered.get("entry"))]
            page = [each for each in page if isinstance(each, dict) and each.get("resourceType") == "Appointment"]
            found += page
            url, following = self._next_page(query.name, answered), query.after(page)
            if url is not None:
                answer = await self._get(deadline, Request("GET", url, query.name))
            elif following is not None:
                query = following
                answer = await self._ask(deadline, query)
            else:
                return found
        raise self._too_many("Appointment")

    def _too_many(self, kind: str) -> SystemUnavailable:
        _log.warning("the scheduling system found more than can be read at once", extra={"resourceType": kind})
        return SystemUnavailable(30)

    def _readable(self, name: str, answer: Answer) -> Resource:
        try:
            found = answer.readable(name)
        except Misconfigured as error:
            raise self.sender.report_misconfiguration(name, error) from None
        self.sender.clear_misconfiguration(name)
        return found

    async def _write(
        self, deadline: Deadline, method: str, target: str, name: str, resource: Resource, headers: Mapping[str, str]
    ) -> Resource:
        answer = await self._exchange_write(deadline, method, target, name, resource, headers)
        return self._stored(resource["resourceType"], name, answer)

    async def _exchange_write(
        self, deadline: Deadline, method: str, target: str, name: str, resource: Resource, headers: Mapping[str, str]
    ) -> Answer:
        url = f"{self._base_url}/{target}" if target else self._base_url
        headers = {**headers, "Content-Type": JSON, "Prefer": "return=representation"}
        request = Request(method, url, name, orjson.dumps(resource), headers, is_write=True)
        try:
            return await self.sender.send(deadline, request)
        except _NOT_SENT as error:
            raise SystemUnavailable from error
        except (httpx.HTTPError, TimeoutError) as error:
            raise AnswerLost from error

    def _stored(self, kind: str, name: str, answer: Answer) -> Resource:
        self._check_written(name, answer)
        if answer.found is None or not is_record(answer.found, kind):
            reason = refusal_reason(answer.found)
            raise AnswerLost(failed=bool(reason), reason=reason)
        self.sender.clear_misconfiguration(name)
        return answer.found

    def _check_written(self, name: str, answer: Answer) -> None:
        """Raises what the status of the answer to a write means, unless it is a success."""
        if 300 <= answer.status < 400 or answer.status in (401, 403):
            raise self.sender.report_misconfiguration(
                name, Misconfigured(f"the server answered the {name} with status {answer.status}")
            )
        if answer.status in (408, 425, 429):
            raise SystemUnavailable(answer.retry_after)
        if answer.status >= 500:
            # After a gateway's error the server behind it may still execute the write.
            raise AnswerLost(failed=answer.status not in (502, 504), retry_after=answer.retry_after)
        if 400 <= answer.status < 500:
            raise Declined(answer.status, refusal_reason(answer.resource) or DECLINED)

    def _next_page(self, name: str, page: Resource) -> str | None:
        for link in listed(page.get("link")):
            if link.get("relation") == "next" and isinstance(link.get("url"), str):
                try:
                    url = str(httpx.URL(f"{self._base_url}/").join(link["url"]))
                except httpx.InvalidURL as error:
                    raise SystemUnavailable from error
                if not url.startswith((f"{self._base_url}/", f"{self._base_url}?")):
                    # Our credentials go to the configured server only.
                    reason = "the server's links to further pages lead to another address than baseUrl"
                    raise self.sender.report_misconfiguration(name, Misconfigured(reason))
                return url
        return None


def _has_our_intent(found: Resource | None, sent: Resource) -> bool:
    return found is not None and set(identifier_values(sent, INTENTS)) <= set(identifier_values(found, INTENTS))


def _versioned_update(resource: Resource) -> Resource:
    request = {"method": "PUT", "url": reference_of(resource), "ifMatch": _etag(resource)}
    return {"resource": resource, "request": request}


def _etag(resource: Resource) -> str:
    version = version_of(resource)
    if version is None:
        _log.warning("the scheduling system does not version its records")
        raise SystemUnavailable(30)
    return f'W/"{version}"'
