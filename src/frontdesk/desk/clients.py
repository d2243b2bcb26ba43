"""Admins manage the clients of their practice: add, change, disable, rotate secrets, revoke tokens."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from frontdesk.access.clients.records import (
    AS_THE_PRACTICE,
    DEFAULT_PER_MINUTE,
    DEFAULT_QUOTA,
    AccessLimits,
    ClientRecord,
    add_client,
    change_client,
    disable_client,
    distrust_client,
    enable_client,
    list_clients,
    revoke_tokens,
    rotate_secret,
    show_client,
    trust_client,
)
from frontdesk.access.clients.validation import (
    ClientError,
    check_access_limits,
    check_limits,
    checked_grant,
    checked_name,
    checked_scopes,
)
from frontdesk.access.keys.ring import KeyRing
from frontdesk.audit.trail import AuditRecorder
from frontdesk.desk.context import ActionContext
from frontdesk.desk.form_uses import recorder_once
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.store.database import Database
from frontdesk.store.rows import field_names
from frontdesk.texts import Text

# All practices share the service. These hold for each client: nothing limits how many clients a practice has.
_MAX_PER_MINUTE = 10 * DEFAULT_PER_MINUTE
_MAX_QUOTA = 10 * DEFAULT_QUOTA


class _Change(Protocol):
    def __call__(
        self, database: Database, client_id: str, /, *, recorder: AuditRecorder, clock: Callable[[], datetime]
    ) -> Awaitable[ClientRecord]: ...


@dataclass(frozen=True, slots=True)
class ClientFields:
    """What an admin enters about a client."""

    name: str
    grant: str
    scopes: Sequence[str]
    per_minute: int
    quota: int
    access_limits: AccessLimits = AS_THE_PRACTICE


@dataclass(frozen=True, slots=True)
class Clients:
    database: Database
    ring: KeyRing

    async def all(self, context: ActionContext) -> list[ClientRecord]:
        context.require("admin")
        return await list_clients(self.database, practice=context.staff.practice_slug)

    async def one(self, context: ActionContext, client_id: str) -> ClientRecord:
        context.require("admin")
        try:
            client = await show_client(self.database, client_id)
        except ClientError:
            raise Problem("not_found", "There is no such client.") from None
        if client.practice_slug != context.staff.practice_slug:
            raise Problem("not_found", "There is no such client.")
        return client

    async def add(self, context: ActionContext, fields: ClientFields, *, once: str) -> tuple[ClientRecord, str]:
        """The client and its secret. Raises SecretShown if the form was sent before."""
        context.require("admin")
        check_client(fields)
        added = await add_client(
            self.database,
            self.ring,
            practice=context.staff.practice_slug,
            recorder=recorder_once(context, "console.add_client", once),
            clock=lambda: context.now,
            **{name: getattr(fields, name) for name in field_names(ClientFields)},
        )
        context.seal_soon()
        return added

    async def rotate(
        self, context: ActionContext, client_id: str, *, retire_old_after: timedelta, once: str
    ) -> tuple[ClientRecord, str]:
        """The client and its new secret. The previous one works for the given time."""
        if (await self.one(context, client_id)).staff_id is not None:
            raise Problem("conflict", "An assistant that staff have connected has no secret.")
        recorder = recorder_once(context, "console.rotate_client_secret", once)
        rotated = await rotate_secret(
            self.database,
            self.ring,
            client_id,
            retire_old_after=retire_old_after,
            recorder=recorder,
            clock=lambda: context.now,
        )
        context.seal_soon()
        return rotated

    async def change(self, context: ActionContext, client_id: str, fields: ClientFields) -> ClientRecord:
        """A change of grant or scopes ends every access token issued before."""
        check_client(fields, await self.one(context, client_id))
        try:
            changed = await change_client(
                self.database,
                client_id,
                name=fields.name,
                grant=fields.grant,
                scopes=fields.scopes,
                per_minute=fields.per_minute,
                quota=fields.quota,
                access_limits=fields.access_limits,
                recorder=context.audit.recorder("console.change_client"),
                clock=lambda: context.now,
            )
        except ClientError as error:
            raise invalid([FieldError(error.field or "$", "client", error.text)]) from None
        context.seal_soon()
        return changed

    async def set_disabled(self, context: ActionContext, client_id: str, *, disabled: bool) -> ClientRecord:
        change = disable_client if disabled else enable_client
        recorder = context.audit.recorder("console.disable_client" if disabled else "console.enable_client")
        return await self._changed(context, client_id, change, recorder)

    async def set_trusted(self, context: ActionContext, client_id: str, *, trusted: bool) -> ClientRecord:
        """Whether the client is trusted to ask people."""
        change = trust_client if trusted else distrust_client
        recorder = context.audit.recorder("console.trust_client" if trusted else "console.distrust_client")
        return await self._changed(context, client_id, change, recorder)

    async def revoke_tokens(self, context: ActionContext, client_id: str) -> ClientRecord:
        recorder = context.audit.recorder("console.revoke_client_tokens")
        return await self._changed(context, client_id, revoke_tokens, recorder)

    async def _changed(
        self, context: ActionContext, client_id: str, change: _Change, recorder: AuditRecorder
    ) -> ClientRecord:
        await self.one(context, client_id)
        changed = await change(self.database, client_id, recorder=recorder, clock=lambda: context.now)
        context.seal_soon()
        return changed


def check_client(fields: ClientFields, held: ClientRecord | None = None) -> None:
    """Raises a Problem with every field that breaks a rule. The client may keep the limits that it has."""
    max_per_minute = max(_MAX_PER_MINUTE, held.per_minute if held else 0)
    max_quota = max(_MAX_QUOTA, held.quota if held else 0)
    rules: tuple[Callable[[], object], ...] = (
        lambda: checked_name(fields.name),
        lambda: checked_grant(fields.grant),
        lambda: checked_scopes(fields.scopes),
        lambda: check_limits(fields.per_minute, None),
        lambda: check_limits(None, fields.quota),
        lambda: _check_allowed("per_minute", fields.per_minute, max_per_minute),
        lambda: _check_allowed("quota", fields.quota, max_quota),
        *(partial(check_access_limits, **{name: value}) for name, value in asdict(fields.access_limits).items()),
    )
    errors = []
    for rule in rules:
        try:
            rule()
        except ClientError as error:
            errors.append(FieldError(error.field or "$", "client", error.text))
    if errors:
        raise invalid(errors)


def _check_allowed(field: str, value: int, maximum: int) -> None:
    if value > maximum:
        text = Text(
            "Only the operator can set more than %(maximum)s, with frontdesk client set-limits.", maximum=maximum
        )
        raise ClientError(text, field)
