"""Webhook endpoints of a practice, and what could not be delivered to them.

What is added here goes to public addresses only: those of a private network are added on the command line.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.desk.context import ActionContext
from frontdesk.desk.form_uses import recorder_once
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.outbound.targets import TargetError
from frontdesk.outbound.webhooks.deliveries import Delivery, list_deliveries, replay
from frontdesk.outbound.webhooks.endpoints import (
    DEFAULT_RETIREMENT,
    Endpoint,
    EndpointLimitError,
    WebhookError,
    add_endpoint,
    list_endpoints,
    live_secrets,
    pause_endpoint,
    practice_of,
    remove_endpoint,
    resume_endpoint,
    rotate_secret,
    show_endpoint,
)
from frontdesk.outbound.webhooks.sender import Sender, Sent, send_test
from frontdesk.store.database import Database

MAX_ENDPOINTS = 20  # every event is sent to each
_MAX_DEAD_SHOWN = 20


@dataclass(frozen=True, slots=True)
class EndpointView:
    endpoint: Endpoint
    dead: Sequence[Delivery]  # newest first


@dataclass(frozen=True, slots=True)
class Webhooks:
    database: Database
    cipher: KeyCipher
    sender: Sender

    async def all(self, context: ActionContext) -> list[EndpointView]:
        context.require("admin")
        found = []
        for endpoint in await list_endpoints(self.database, context.practice_id):
            dead = await list_deliveries(self.database, endpoint.endpoint_id, "dead", _MAX_DEAD_SHOWN)
            found.append(EndpointView(endpoint, dead))
        return found

    async def add(self, context: ActionContext, url: str, events: Sequence[str], *, once: str) -> tuple[Endpoint, str]:
        """The endpoint and its secret. Raises SecretShown if the form was sent before."""
        context.require("admin")
        try:
            await self.sender.check_public(url)
            added = await add_endpoint(
                self.database,
                self.cipher,
                context.practice_id,
                url,
                events,
                context.now,
                public_only=True,
                limit=MAX_ENDPOINTS,
                recorder=recorder_once(context, "console.add_webhook", once),
            )
        except (TargetError, EndpointLimitError) as error:
            raise invalid([FieldError("url", "webhook", error.text)]) from None
        except WebhookError as error:
            raise invalid([FieldError("events", "webhook", error.text)]) from None
        context.seal_soon()
        return added

    async def rotate(self, context: ActionContext, endpoint_id: str, *, once: str) -> tuple[Endpoint, str]:
        """The endpoint and its new secret; messages are signed with both for a day. Raises SecretShown."""
        await self._own(context, endpoint_id)
        rotated = await rotate_secret(
            self.database,
            self.cipher,
            endpoint_id,
            context.now,
            retire_old_after=DEFAULT_RETIREMENT,
            recorder=recorder_once(context, "console.rotate_webhook_secret", once),
        )
        context.seal_soon()
        return rotated

    async def test(self, context: ActionContext, endpoint_id: str) -> Sent:
        """Sends a signed message without data; of the answer only its status is read."""
        endpoint = await self._own(context, endpoint_id)
        await context.record("console.test_webhook", endpoint_id)
        keys = await live_secrets(self.database, self.cipher, endpoint, context.now)
        return await send_test(self.sender, endpoint.url, keys, context.now, public_only=endpoint.public_only)

    async def remove(self, context: ActionContext, endpoint_id: str) -> None:
        await self._own(context, endpoint_id)
        await remove_endpoint(self.database, endpoint_id, recorder=context.audit.recorder("console.remove_webhook"))
        context.seal_soon()

    async def replay_dead(self, context: ActionContext, endpoint_id: str) -> None:
        """Sends every dead letter of an endpoint again."""
        await self._own(context, endpoint_id)
        recorder = context.audit.recorder("console.replay_webhook")
        await replay(self.database, endpoint_id, None, context.now, recorder=recorder)
        context.seal_soon()

    async def set_paused(self, context: ActionContext, endpoint_id: str, *, paused: bool) -> None:
        await self._own(context, endpoint_id)
        change, operation = (
            (pause_endpoint, "console.pause_webhook") if paused else (resume_endpoint, "console.resume_webhook")
        )
        await change(self.database, endpoint_id, context.now, recorder=context.audit.recorder(operation))
        context.seal_soon()

    async def _own(self, context: ActionContext, endpoint_id: str) -> Endpoint:
        context.require("admin")
        try:
            if practice_of(endpoint_id) == context.practice_id:
                return await show_endpoint(self.database, endpoint_id)
        except WebhookError:
            pass
        raise Problem("not_found", "There is no such webhook endpoint.")
