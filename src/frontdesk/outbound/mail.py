"""Sends mail through the SMTP server of the settings."""

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import unquote, urlsplit

from frontdesk.settings import Settings

_TIMEOUT_SECONDS = 20.0
_PORTS = {"smtps": 465, "smtp": 587}
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class MailUnavailable(Exception):
    """The mail server could not be reached, or refused the mail."""


class Mailer:
    def __init__(self, settings: Settings) -> None:
        # The settings are complete or there is no mailer.
        self._server = urlsplit(settings.smtp_url or "")
        self._from = settings.mail_from or ""

    async def send(self, to: str, subject: str, text: str) -> None:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._from, to, subject
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=self._from.rpartition("@")[2])
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        await asyncio.to_thread(self._smtp_session, message)

    async def check(self) -> None:
        """Signs in to the server and sends nothing."""
        await asyncio.to_thread(self._smtp_session, None)

    def _smtp_session(self, message: EmailMessage | None) -> None:
        try:
            with self._connected() as server:
                if self._server.scheme == "smtp" and self._server.hostname not in _THIS_MACHINE:
                    server.starttls(context=ssl.create_default_context())
                if self._server.username:
                    server.login(unquote(self._server.username), unquote(self._server.password or ""))
                if message is not None:
                    server.send_message(message)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise MailUnavailable from error

    def _connected(self) -> smtplib.SMTP:
        host, port = self._server.hostname or "", self._server.port or _PORTS[self._server.scheme]
        if self._server.scheme == "smtps":
            return smtplib.SMTP_SSL(host, port, timeout=_TIMEOUT_SECONDS, context=ssl.create_default_context())
        return smtplib.SMTP(host, port, timeout=_TIMEOUT_SECONDS)
