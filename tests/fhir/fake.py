"""A small FHIR server in memory for tests that must not need Node: only what the adapter asks for.

The same tests run against it and against a server that nobody here wrote, so that it cannot say what that would not.
"""

import json
from datetime import datetime
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.fhir.door import Answer

KINDS = ("Appointment", "Encounter", "HealthcareService", "Location", "Patient", "Practitioner", "PractitionerRole")
Resource = dict[str, Any]


class Fake:
    """`batches`: it takes several requests in one, and says so."""

    def __init__(self, public_base: str, *, batches: bool = False) -> None:
        self._public_base = public_base
        self.batches = batches
        self._kept: dict[str, Resource] = {}
        self._ids = count(1)

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        parts = urlsplit(target)
        path = parts.path.strip("/").split("/")
        query = parse_qsl(parts.query)
        document = json.loads(body) if body else {}
        if method == "POST" and document.get("type") == "batch":
            entries = [await self._entry(entry) for entry in document["entry"]]
            return json_answer(200, {"resourceType": "Bundle", "type": "batch-response", "entry": entries})
        if path == ["metadata"]:
            return json_answer(200, statement(batches=self.batches))
        if method == "GET" and len(path) == 1:
            return json_answer(200, self._bundle(path[0], query))
        if method == "GET":
            found = self._kept.get("/".join(path))
            return json_answer(404, outcome("not found")) if found is None else json_answer(200, found)
        if method == "POST":
            return self._create(document, headers.get("if-none-exist"))
        return self._update("/".join(path), document, headers.get("if-match"))

    async def _entry(self, entry: Resource) -> Resource:
        request, resource = entry["request"], entry.get("resource")
        if request["method"] == "PUT" and "ifMatch" not in request:
            return {"resource": self._store(entry["resource"]), "response": {"status": "200"}}
        body = b"" if resource is None else json.dumps(resource).encode()
        headers = {"if-match": request.get("ifMatch", "")}
        answer = await self.answer(request["method"], f"/{request['url']}", headers, body)
        found = json.loads(answer.body)
        if answer.status >= 400:
            return {"response": {"status": str(answer.status), "outcome": found}}
        return {"resource": found, "response": {"status": f"{answer.status} OK"}}

    def _create(self, document: Resource, unless: str | None) -> Answer:
        if unless is not None:
            found = self._search(document["resourceType"], parse_qsl(unless))
            if found:
                return json_answer(200, found[0])
        return json_answer(201, self._store({**document, "id": f"made-{next(self._ids)}"}))

    def _update(self, reference: str, document: Resource, version: str | None) -> Answer:
        found = self._kept.get(reference)
        if found is None:
            return json_answer(404, outcome("not found"))
        if version != f'W/"{found["meta"]["versionId"]}"':
            return json_answer(412, outcome("another version"))
        return json_answer(200, self._store(document))

    def _store(self, document: Resource) -> Resource:
        reference = f"{document['resourceType']}/{document['id']}"
        meta = {**document.get("meta", {}), "versionId": str(next(self._ids)), "lastUpdated": "2026-11-15T08:00:00Z"}
        self._kept[reference] = {**document, "meta": meta}
        return self._kept[reference]

    def _bundle(self, kind: str, query: list[tuple[str, str]]) -> Resource:
        found = self._search(kind, [pair for pair in query if pair[0] == "_id" or not pair[0].startswith("_")])
        options = dict(query)
        if "_sort" in options:
            found.sort(key=lambda each: each.get("start", ""))
        size, offset = int(options.get("_count", "20")), int(options.get("_offset", "0"))
        bundle: Resource = {"resourceType": "Bundle", "type": "searchset", "total": len(found)}
        bundle["entry"] = [{"resource": each} for each in found[offset : offset + size]]
        if offset + size < len(found):
            rest = "&".join(f"{name}={value}" for name, value in query if name != "_offset").replace("|", "%7C")
            bundle["link"] = [{"relation": "next", "url": f"{self._public_base}/{kind}?{rest}&_offset={offset + size}"}]
        return bundle

    def _search(self, kind: str, query: list[tuple[str, str]]) -> list[Resource]:
        found = [each for each in self._kept.values() if each["resourceType"] == kind]
        return [each for each in found if all(_fits(each, name, value) for name, value in query)]


def _fits(resource: Resource, name: str, value: str) -> bool:
    wanted = value.split(",")
    if name in ("start", "date", "end"):
        member = "end" if name == "end" else "start"
        if member not in resource:
            return False
        moment, limit = datetime.fromisoformat(resource[member]), datetime.fromisoformat(value[2:])
        return {"ge": moment >= limit, "gt": moment > limit, "lt": moment < limit}[value[:2]]
    if name == "_id":
        return resource["id"] in wanted
    if name == "status":
        return resource.get("status") in wanted
    if name == "birthdate":
        return resource.get("birthDate") == value
    if name == "identifier":
        tokens = [f"{each.get('system')}|{each.get('value')}" for each in resource.get("identifier", [])]
        return any(token in wanted for token in tokens)
    if name in ("patient", "actor") and "participant" in resource:
        references = [each["actor"] for each in resource["participant"]]
    else:
        field = {"patient": "subject"}.get(name, name)
        found = resource.get(field) or []
        references = found if isinstance(found, list) else [found]
    return any(each["reference"] in wanted for each in references)


def statement(*, batches: bool = False) -> Resource:
    interaction = [{"code": code} for code in ("read", "search-type", "create", "update")]
    resource = [
        {"type": kind, "interaction": interaction, "versioning": "versioned", "conditionalCreate": True}
        for kind in (*KINDS, "Schedule", "Slot")
    ]
    rest: list[Resource] = [{"mode": "server", "resource": resource}]
    if batches:
        rest[0]["interaction"] = [{"code": "batch"}]
    return {"resourceType": "CapabilityStatement", "fhirVersion": "4.0.1", "rest": rest}


def outcome(text: str) -> Resource:
    issue = [{"severity": "error", "code": "invalid", "details": {"text": text}}]
    return {"resourceType": "OperationOutcome", "issue": issue}


def json_answer(status: int, document: Resource) -> Answer:
    return Answer(status, {"content-type": "application/fhir+json"}, json.dumps(document).encode())
