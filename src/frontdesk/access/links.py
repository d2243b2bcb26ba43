"""One-time links: made for a person by somebody who may, used once, within a quarter of an hour."""

from collections.abc import Callable
from datetime import datetime, timedelta

from frontdesk.access.operators import OperatorError, OperatorRecord, hold, record, show_operator
from frontdesk.access.sign_in import digest_of, new_token
from frontdesk.store.database import Database

LINK_LIFETIME = timedelta(minutes=15)


async def new_link(
    database: Database, operator_id: str, *, actor: str, clock: Callable[[], datetime]
) -> tuple[OperatorRecord, str]:
    """The person and the token of a fresh link. Links of theirs that were not used stop working."""
    operator = await show_operator(database, operator_id)
    token, now = new_token(), clock()
    async with database.transaction() as connection:
        held = await hold(connection, operator_id)
        if held is None or held["disabled"]:
            raise OperatorError(f"The operator {operator_id!r} is disabled: enable them first.")
        await connection.execute(
            "DELETE FROM operator_link WHERE operator_id = $1 AND used_at IS NULL", operator.operator_id
        )
        await connection.execute(
            "INSERT INTO operator_link VALUES ($1, $2, $3, $4)",
            digest_of(token),
            operator.operator_id,
            now,
            now + LINK_LIFETIME,
        )
        await record(connection, operator.practice_id, now, actor, "console.new_link", "executed", operator.operator_id)
    return operator, token


def link_address(public_url: str, token: str) -> str:
    """What is behind the # stays in the browser: no server or proxy on the way sees or logs it."""
    return f"{public_url}/console/sign-in#{token}"
