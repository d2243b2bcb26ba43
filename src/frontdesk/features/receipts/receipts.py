"""Issues receipts of executed writes, each signed with the key of the audit trail."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

import jwt

from frontdesk.access.keys.ring import KeyRing
from frontdesk.audit.agreements import place_in_chain, records_between
from frontdesk.audit.heads import AuditHeads, TrailAlteredError
from frontdesk.audit.reading import exact_time, record_document, seal_pending
from frontdesk.audit.trail import record_digest
from frontdesk.desk.actors import actors_of
from frontdesk.domain.consent import Consent
from frontdesk.domain.errors import Problem
from frontdesk.features.receipts.verifying import TYPE, InvalidReceipt, verify_receipt
from frontdesk.store.database import Database

MAX_LINKS = 1000  # between a record and its signed head; heads are signed every minute


class Reported(NamedTuple):
    """Whose word it is that a person agreed, and what a receipt proves of it."""

    by: Literal["client", "host", "patient", "staff"]
    proves: str


REPORTED: Mapping[Consent, Reported] = {
    "token": Reported(
        "client",
        "The client repeated the request that was to be read back, with the token of the challenge. This proves that "
        "the executed request is the same; an appointment that others moved in between was changed where it was then. "
        "That a person heard it and agreed is what the client says.",
    ),
    "elicitation": Reported(
        "host",
        "The host of the client reported that its user agreed when it asked. That a person answered is what the host "
        "says.",
    ),
    "card": Reported(
        "host",
        "The host of the client reported that the button of the card was pressed. That a person pressed it is what the "
        "host says.",
    ),
    "link": Reported(
        "patient", "Somebody with the patient's link and the date of birth agreed on a page of this service."
    ),
    "staff": Reported("staff", "A staff member who was signed in to the console of this service agreed."),
}


@dataclass(frozen=True, slots=True)
class Receipts:
    """The caller has checked that the write may be shown, and records that a receipt was issued."""

    database: Database
    keys: KeyRing
    audit_heads: AuditHeads
    issuer: str
    clock: Callable[[], datetime]

    async def issue(self, practice_id: int, record_id: int) -> str:
        """The receipt of a record that has an agreed challenge. Nothing is issued about an altered trail."""
        try:
            stated = await self._statement(practice_id, record_id)
            key = self.keys.audit_key
            text = jwt.encode(stated, key.private, algorithm="EdDSA", headers={"kid": key.kid, "typ": TYPE})
            verify_receipt(text, self.keys.jwks())
        except (TrailAlteredError, InvalidReceipt, TypeError, ValueError):
            raise Problem("conflict", "The audit trail was altered: no receipt can be issued.") from None
        return text

    async def _statement(self, practice_id: int, record_id: int) -> dict[str, Any]:
        record, head = await place_in_chain(self.database, practice_id, record_id)
        if head is None:
            await seal_pending(self.database, practice_id)
            await self.audit_heads.sign(practice_id)
            record, head = await place_in_chain(self.database, practice_id, record_id)
        if record is None or head is None:  # others write faster than is sealed
            raise Problem("upstream_unavailable", retry_after=2)
        links = None
        if head["sequence"] - record["sequence"] <= MAX_LINKS:
            between = await records_between(self.database, practice_id, record["sequence"], head["sequence"])
            links = [record_digest(each).hex() for each in between]
        actor = (await actors_of(self.database, practice_id, [record["actor"]]))[record["actor"]]
        consent: Consent = record["consent"]
        reported = REPORTED[consent]
        return {
            "iss": self.issuer,
            "iat": int(self.clock().timestamp()),
            "practiceName": record["name"],
            "askedBy": {
                "clientId": actor.id,
                "name": actor.name,
                **({} if actor.connected_by is None else {"connectedBy": actor.connected_by}),
            },
            "readBack": json.loads(record["challenge_text"])["readBack"],
            "consent": {"kind": consent, "reportedBy": reported.by, "proves": reported.proves},
            "challenge": {"intentId": record["intent_id"].hex(), "text": record["challenge_text"]},
            "record": record_document(record["slug"], record),
            "previousHash": (record["previous"] or b"").hex(),
            "links": links,
            "head": {
                "sequence": head["sequence"],
                "hash": head["hash"].hex(),
                "signedAt": exact_time(head["signed_at"]),
                "keyId": head["key_id"],
                "signature": b64encode(head["signature"]).decode(),
            },
        }
