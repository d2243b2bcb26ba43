"""`frontdesk serve`: starts the service, and with --demo prints how to call it."""

import argparse
import contextlib
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command
from frontdesk.cli.connection import (
    CommandContext,
    Progress,
    explain_database_errors,
    on_database,
    owner_dsn,
    prepare_data_dir,
    start_database,
    wait_for,
)
from frontdesk.cli.exposure import warnings
from frontdesk.cli.output import to_json
from frontdesk.cli.service_address import record_address
from frontdesk.cli.staff import sign_in_link

if TYPE_CHECKING:
    from frontdesk.cli.demo_data import Demo
    from frontdesk.settings import Settings

_BANNER = """
  frontdesk is ready at {url}

    REST     {url}/api
    MCP      {url}/mcp
    Docs     {url}/docs
    Console  {url}/console
"""
_FHIR = "    FHIR     {url}/fhir/R4\n"
_DEMO = """
  This link signs you in to the demo practice's console. It works once, within {minutes} minutes:

    {link}

  Two clients may call the demo practice:

    agent        client id      {agent.client_id}
                 client secret  {agent.client_secret}
    integration  client id      {integration.client_id}
                 client secret  {integration.client_secret}

  Paste these lines into another terminal: a token, what it may do, and the next free appointments.

{requests}
"""
# Quoted URLs and no comments: the lines work in every shell.
_REQUESTS = """\
TOKEN=$(curl -s "{url}/oauth/token" -d grant_type=client_credentials \\
  -d "client_id={agent.client_id}" -d "client_secret={agent.client_secret}" \\
  | sed 's/.*"access_token": *"\\([^"]*\\)".*/\\1/')
curl -s "{url}/api/capabilities" -H "Authorization: Bearer $TOKEN"; echo
curl -s "{url}/api/slots/first-available?visitTypeId=21&procedureId=102" -H "Authorization: Bearer $TOKEN"; echo"""
_STOP = "\n  Press Ctrl-C to stop.\n"
_log = logging.getLogger(__name__)


def add_commands(commands: Commands) -> None:
    command = add_command(commands, "serve", _serve, "Start the service, and with it everything it needs.")
    command.add_argument("--host", metavar="HOST", help="address to listen on (default 127.0.0.1)")
    command.add_argument("--port", metavar="PORT", type=int, help="port to listen on (default 8080)")
    command.add_argument("--workers", metavar="N", type=int, help="number of worker processes (default 1)")
    command.add_argument("--tls-certificate", metavar="FILE", help="certificate chain (PEM), to serve https")
    command.add_argument("--tls-key", metavar="FILE", help="key of the certificate (PEM)")
    command.add_argument(
        "--insecure-http", action="store_true", default=None, help="accept plain HTTP from other machines"
    )
    command.add_argument("--demo", action="store_true", help="import a demo practice and print how to call it")


def _serve(args: argparse.Namespace) -> None:
    from frontdesk.serving.traces import check_installed
    from frontdesk.settings import CONFIG_VARIABLE, load_settings

    settings = load_settings(
        host=args.host,
        port=args.port,
        workers=args.workers,
        tls_certificate=args.tls_certificate,
        tls_key=args.tls_key,
        insecure_http=args.insecure_http,
    )
    os.environ |= {**settings.as_environment(), CONFIG_VARIABLE: ""}  # workers read nothing else
    check_installed(settings)
    found = warnings(settings)
    from frontdesk.serving import serve

    def prepare() -> Callable[[], None]:
        if settings.uses_data_dir:
            prepare_data_dir(settings.data_dir)
        start_database(settings, _progress(args), creates=True)
        prepared = wait_for(_prepare(args, settings))
        record_address(settings)
        return lambda: _announce(args, settings, prepared, found)

    serve(settings, prepare)


def _progress(args: argparse.Namespace) -> Progress:
    return (lambda _step: None) if args.json else (lambda step: print(f"{step} ...", flush=True))


async def _prepare(args: argparse.Namespace, settings: "Settings") -> "tuple[Demo, str] | None":
    """Migrate the database and prepare the demo, so that errors appear before a worker starts."""
    from frontdesk.store.migrate import Phase, migrate

    # Nodes of the previous release may use a database given by URL.
    phase: Phase | None = None if settings.database_url is None else "before"
    with explain_database_errors(settings, owner=True):
        await migrate(owner_dsn(settings), phase=phase)

    async def work(context: CommandContext) -> "tuple[Demo, str] | None":
        ring = await context.ring()
        if not args.demo:
            return None
        from frontdesk.cli.demo_data import prepare_demo

        demo = await prepare_demo(context, ring, datetime.now(UTC), _progress(args))
        return demo, await sign_in_link(context, demo.staff_id)

    return await on_database(settings, work)


def _announce(
    args: argparse.Namespace, settings: "Settings", prepared: "tuple[Demo, str] | None", found: list[str]
) -> None:
    url = settings.public_url
    for warning in found:
        _log.warning("%s", warning)
    if args.json:
        document: dict[str, object] = {
            "url": url,
            "docs": f"{url}/docs",
            "console": f"{url}/console",
            "warnings": found,
        }
        if prepared is not None:
            document |= {"demo": prepared[0].document(), "signInLink": prepared[1]}
        _print(to_json(document))
        return
    text = (_BANNER + (_FHIR if settings.fhir_server else "")).format(url=url)
    text += "".join(f"\n  WARNING: {warning}.\n" for warning in found)
    if prepared is not None:
        from frontdesk.access.staff.links import LINK_LIFETIME

        demo, link = prepared
        clients = {"agent": demo.agent, "integration": demo.integration}
        minutes = int(LINK_LIFETIME.total_seconds() // 60)
        text += _DEMO.format(requests=_REQUESTS.format(url=url, **clients), link=link, minutes=minutes, **clients)
    _print(text + _STOP)


def _print(text: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # closed standard output is no reason to stop
        print(text, flush=True)
