"""Versions of resources: a hash of the content, which is also the entity tag of conditional reads."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

import orjson

from frontdesk.doors.fhir.addresses import Resource
from frontdesk.web.http_request import RawHeaders

_BYTES = 12


def versioned(resource: Resource) -> Resource:
    """The resource with its versionId."""
    content = orjson.dumps(resource, option=orjson.OPT_SORT_KEYS)
    version = hashlib.blake2b(content, digest_size=_BYTES).hexdigest()
    return resource | {"meta": {"versionId": version, **resource.get("meta", {})}}


def version_headers(resource: Resource) -> RawHeaders:
    """ETag and, if it is known when the resource changed, Last-Modified."""
    headers = [(b"etag", f'W/"{resource["meta"]["versionId"]}"'.encode())]
    changed = _last_updated(resource)
    if changed is not None:
        headers.append((b"last-modified", format_datetime(changed, usegmt=True).encode()))
    return headers


def is_unchanged(resource: Resource, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a conditional read has this version already. If-None-Match wins over If-Modified-Since."""
    tags = headers.get(b"if-none-match")
    if tags is not None:
        return names_version(tags, resource)
    since, changed = headers.get(b"if-modified-since"), _last_updated(resource)
    if since is None or changed is None:
        return False
    try:
        return changed <= parsedate_to_datetime(since.decode("latin-1")).astimezone(UTC)
    except (ValueError, OverflowError):
        return False


def names_version(tags: bytes, resource: Resource) -> bool:
    """Whether entity tags, or `*`, name the resource's version."""
    known = {tag.strip().removeprefix("W/").strip('"') for tag in tags.decode("latin-1").split(",")}
    return "*" in known or resource["meta"]["versionId"] in known


def _last_updated(resource: Resource) -> datetime | None:
    text = resource["meta"].get("lastUpdated")
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC).replace(microsecond=0)
