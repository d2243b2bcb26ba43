"""Compares the receipts of executed writes with what agents were told before they confirmed."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg

from frontdesk.app import Service
from frontdesk.domain.errors import Problem
from frontdesk.features.receipts.receipts import Receipts
from frontdesk.features.receipts.verifying import InvalidReceipt, verify_receipt

if TYPE_CHECKING:
    from tests.proof.checker import Checker
    from tests.proof.facts import Effect
    from tests.proof.stored import Stored

_MAX_ISSUED = 60  # of one check: each is issued and verified
_AGREED = """
SELECT c.practice_id, c.record_id, r.request_id, r.operation FROM agreed_challenge c
JOIN audit_record r ON r.practice_id = c.practice_id AND r.record_id = c.record_id
"""


@dataclass(frozen=True, slots=True)
class Issued:
    """What the receipt of a record states, or why there is none."""

    request_id: str
    operation: str
    stated: dict[str, Any] | None
    refusal: str = ""


async def read_agreed(dsn: str) -> list[Any]:
    """Every record of a write that was agreed to."""
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "frontdesk, public"})
    try:
        return list(await connection.fetch(_AGREED))
    finally:
        await connection.close()


async def issue_some(service: Service, agreed: Sequence[Any]) -> list[Issued]:
    await service.ring.refresh()
    receipts, keys = service.engine.services[Receipts], service.ring.jwks()
    issued = []
    for row in random.sample(agreed, min(_MAX_ISSUED, len(agreed))):
        stated, refusal = None, ""
        try:
            stated = verify_receipt(await receipts.issue(row["practice_id"], row["record_id"]), keys)
        except (Problem, InvalidReceipt) as error:
            refusal = f"{error} {row}"
        issued.append(Issued(row["request_id"], row["operation"], stated, refusal))
    return issued


def compare_receipts(checker: "Checker", stored: "Stored") -> None:
    findings, facts = checker.findings, checker.facts
    agreed = {(row["request_id"], row["operation"]) for row in stored.agreed}
    effects: dict[tuple[str, str], Effect] = {}
    for effect in findings.effects:
        op = effect.op
        calls = {(each.request_id, each.name) for each in effect.ops}
        effects |= dict.fromkeys(calls, effect)
        is_agents = op.client in facts.agents and op.token is not None
        if is_agents and effect.body is not None and not calls & agreed:
            findings.add("receipt missing", op)
    for each in stored.receipts:
        explained = effects.get((each.request_id, each.operation))
        if each.stated is None:
            findings.add("receipt refused", each.refusal)
        elif explained is None or explained.op.token is None:
            findings.add("receipt that no call explains", each.request_id)
        elif (fault := _fault(checker, explained, each.stated)) is not None:
            findings.add("receipt of something else", f"{fault} {explained.op}")


def _fault(checker: "Checker", effect: "Effect", stated: dict[str, Any]) -> str | None:
    """What of the receipt is not as the agent was told."""
    op, record = effect.op, stated["record"]
    assert op.token is not None
    challenge = checker.facts.challenges.get(op.token)
    told = None if challenge is None else challenge.body.get("readBack")
    expected = {
        "the client": (op.client, stated["askedBy"]["clientId"], record["actor"]),
        "the operation": (op.name, record["operation"], record["operation"]),
        "the practice": (op.practice, record["practice"], record["practice"]),
        "the consent": ("token", stated["consent"]["kind"], record["consent"]),
        "the token": (*[hashlib.sha256(op.token.encode()).hexdigest()] * 2, stated["challenge"]["intentId"]),
    }
    for name, (wanted, first, second) in expected.items():
        if not wanted == first == second:
            return name
    if told is not None and stated["readBack"] != told:
        return "the read-back"
    ids = {value for name, value in (effect.body or {}).items() if name.endswith("Id")}
    return None if ids <= set(record["subjectIds"]) else "the ids"
