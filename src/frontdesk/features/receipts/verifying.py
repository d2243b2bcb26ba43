"""Verifies receipts with published keys alone, without the service that issued them."""

import hashlib
import json
import re
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from frontdesk.audit.heads import Head, head_message
from frontdesk.audit.reading import exact_time
from frontdesk.audit.trail import link_hash, record_digest

TYPE = "consent-receipt+jwt"
MAX_LENGTH = 200_000
_COMPACT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]{86}\Z", re.ASCII)


class InvalidReceipt(Exception):
    """The message is one sentence, without anything of the receipt."""


def verify_receipt(text: str, key_set: Mapping[str, Any]) -> dict[str, Any]:
    """What the receipt states. Raises InvalidReceipt."""
    if len(text) > MAX_LENGTH or not _COMPACT.match(text):
        raise InvalidReceipt("This is not a receipt.")
    header, payload, signature = text.split(".")
    try:
        kid = _read(header)["kid"]
        if _read(header) != {"alg": "EdDSA", "kid": kid, "typ": TYPE}:
            raise InvalidReceipt("This is not a receipt.")
        _public_key(key_set, kid).verify(_decoded(signature), f"{header}.{payload}".encode())
    except InvalidSignature:
        raise InvalidReceipt("The signature is not valid.") from None
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InvalidReceipt("This is not a receipt.") from None
    try:
        stated = _read(payload)
        _check_chain(stated, key_set)
    except InvalidSignature:
        raise InvalidReceipt("The signature of the head is not valid.") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise InvalidReceipt("The receipt has another form than this release can verify.") from None
    return stated


def _check_chain(stated: dict[str, Any], key_set: Mapping[str, Any]) -> None:
    record, head, asked = stated["record"], stated["head"], stated["challenge"]
    digest = hashlib.sha256(bytes.fromhex(asked["intentId"]) + asked["text"].encode()).hexdigest()
    if digest != record["challenge"]:
        raise InvalidReceipt("What was read back is not what the audit record has the digest of.")
    told = (stated["readBack"], stated["consent"]["kind"], stated["askedBy"]["clientId"])
    if told != (json.loads(asked["text"])["readBack"], record["consent"], record["actor"]):
        raise InvalidReceipt("The receipt contradicts itself.")
    at = link_hash(bytes.fromhex(stated["previousHash"]), record_digest(_row(record)))
    if at.hex() != record["hash"]:
        raise InvalidReceipt("The audit record does not match its hash.")
    if stated["links"] is not None:
        for link in stated["links"]:
            at = link_hash(at, bytes.fromhex(link))
        if at.hex() != head["hash"] or head["sequence"] != record["sequence"] + len(stated["links"]):
            raise InvalidReceipt("The audit record is not covered by the signed head.")
    message = head_message(
        record["practiceId"], Head(head["sequence"], bytes.fromhex(head["hash"])), _moment(head["signedAt"])
    )
    _public_key(key_set, head["keyId"]).verify(b64decode(head["signature"], validate=True), message)


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record under the names of its columns."""
    return {
        "practice_id": record["practiceId"],
        "record_id": record["recordId"],
        "at": _moment(record["at"]),
        "actor": record["actor"],
        "operation": record["operation"],
        "outcome": record["outcome"],
        "subject_ids": record["subjectIds"],
        "request_id": record["requestId"],
        "consent": record["consent"],
        "challenge": bytes.fromhex(record["challenge"]),
    }


def _public_key(key_set: Mapping[str, Any], kid: str) -> Ed25519PublicKey:
    found = [each for each in key_set["keys"] if each["kid"] == kid]
    if len(found) != 1:
        raise InvalidReceipt("The key set does not have the key that signed this.")
    [key] = found
    if (key["kty"], key["crv"]) != ("OKP", "Ed25519"):
        raise ValueError
    return Ed25519PublicKey.from_public_bytes(_decoded(key["x"]))


def _read(part: str) -> dict[str, Any]:
    found = json.loads(_decoded(part), object_pairs_hook=_without_repetition)
    if not isinstance(found, dict):
        raise TypeError
    return found


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _decoded(part: str) -> bytes:
    """Raises ValueError for another encoding of the same bytes."""
    decoded = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if urlsafe_b64encode(decoded).rstrip(b"=").decode() != part:
        raise ValueError
    return decoded


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if exact_time(moment) != text:
        raise ValueError
    return moment
