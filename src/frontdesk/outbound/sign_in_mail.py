"""Mails one-time sign-in links to staff who ask for one with their e-mail address.

The request is answered before the address is looked up, so that neither the answer nor its time says whose it is.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from frontdesk.access.staff.links import LINK_LIFETIME, link_address, links_for_email
from frontdesk.audit.trail import AuditContext
from frontdesk.outbound.mail import Mailer, MailUnavailable
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown

SIGN_IN_PAGE = "sign-in-page"  # the actor: nobody has proven who they are
_MAX_CONNECTIONS = 4
_MAX_WAITING = 100
_MINUTES = int(LINK_LIFETIME.total_seconds() // 60)
_TEXT = """\
Somebody, probably you, asked to sign in to frontdesk.

{links}
Each link works once, within {minutes} minutes. If it was not you, ignore this mail: without the link nobody gets in.
"""
_log = logging.getLogger(__name__)


class SignInMail:
    """`on_audit` is called with each practice that has a new audit record to seal."""

    def __init__(
        self,
        database: Database,
        mailer: Mailer,
        public_url: str,
        clock: Callable[[], datetime],
        on_audit: Callable[[int], None],
    ) -> None:
        self._database = database
        self._mailer = mailer
        self._public_url = public_url
        self._clock = clock
        self._on_audit = on_audit
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = asyncio.Semaphore(_MAX_CONNECTIONS)

    def request(self, email: str, request_id: str) -> None:
        """Sends a link for each practice where the address belongs to staff, soon, or nothing."""
        if len(self._tasks) >= _MAX_WAITING:
            _log.warning("a sign-in link was not mailed: too many are waiting")
            return
        task = asyncio.create_task(self._send(email, request_id), name="sign-in-mail")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Waits for the mails that are being sent."""
        await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send(self, email: str, request_id: str) -> None:
        async with self._connections:
            try:
                audit = AuditContext(SIGN_IN_PAGE, self._clock(), request_id)
                made = await links_for_email(self._database, email, audit=audit)
                for link in made:
                    self._on_audit(link.practice_id)
                if made:
                    # Not the name: admins write it, and may add anybody's address.
                    links = "".join(
                        f"Practice {each.practice_slug}:\n{link_address(self._public_url, each.token)}\n\n"
                        for each in made
                    )
                    await self._mailer.send(
                        made[0].email, "Your sign-in link", _TEXT.format(links=links, minutes=_MINUTES)
                    )
            except MailUnavailable:
                _log.warning("a sign-in link was not mailed: the mail server is unavailable or refused it")
            except (DatabaseUnavailable, OutcomeUnknown):
                _log.warning("a sign-in link was not mailed: the database is unavailable")
            except Exception:
                _log.exception("a sign-in link was not mailed")
