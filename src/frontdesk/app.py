"""The composition root: builds the service and its ASGI application from the settings."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Lifespan

from frontdesk.access.assistants.applications import Applications
from frontdesk.access.assistants.grants import AssistantGrants
from frontdesk.access.clients.assertions import Assertion, authenticate_assertion
from frontdesk.access.clients.authentication import Authenticator
from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.secrets import AuthenticatedClient, authenticate
from frontdesk.access.clients.tokens import Tokens
from frontdesk.access.keys.encryption import load_secret_key
from frontdesk.access.keys.ring import CURSORS, SLOT_IDS, KeyRing
from frontdesk.access.limits.addresses import trusted_proxy_check
from frontdesk.access.limits.connections import ConnectionLimit
from frontdesk.access.limits.failed_attempts import FailedAttempts
from frontdesk.access.limits.forwarded_headers import ForwardedHeaders
from frontdesk.access.limits.invalid_tokens import InvalidTokens
from frontdesk.access.limits.match_attempts import MatchAttempts
from frontdesk.access.limits.rate_limiter import RateLimiter
from frontdesk.access.limits.usage import UsageCounts
from frontdesk.access.staff.desk_lock import DeskLock
from frontdesk.access.staff.passkeys import Passkeys
from frontdesk.access.staff.relying_party import relying_party_of
from frontdesk.access.staff.sessions import StaffSessions
from frontdesk.audit.heads import AuditHeads
from frontdesk.audit.trail import AuditTrail
from frontdesk.background import Background, Step
from frontdesk.console.encrypted_cookies import EncryptedCookies
from frontdesk.console.guard import Console
from frontdesk.console.routes import console_routes
from frontdesk.desk.desk import Desk, build_desk
from frontdesk.desk.health import SystemHealth
from frontdesk.domain.cursors import Cursors
from frontdesk.domain.slot_ids import SlotIds, practice_key
from frontdesk.doors import mcp
from frontdesk.doors.assistants import AssistantDoor
from frontdesk.doors.fhir import FHIR_PREFIX, FhirDoor
from frontdesk.doors.gateway import Gateway
from frontdesk.doors.health import Health
from frontdesk.doors.oauth import oauth_routes
from frontdesk.doors.pages import PROBLEM_PAGES, page_routes
from frontdesk.doors.rest import PREFIX, RestDoor
from frontdesk.engine.answer_cache import AnswerCache
from frontdesk.engine.confirmation import Writes
from frontdesk.engine.execute import Engine
from frontdesk.engine.external_identifiers import ExternalIdentifiers
from frontdesk.engine.fair_limiter import FairLimiter
from frontdesk.engine.intents import Intents
from frontdesk.engine.patient_guard import PatientGuard
from frontdesk.feature import Core, Services, features
from frontdesk.housekeeping import housekeeping_steps
from frontdesk.operations import SlotJson
from frontdesk.outbound.calendar_notifier import CalendarNotifier
from frontdesk.outbound.checked_http import CheckedHttp
from frontdesk.outbound.client_documents import ClientDocuments
from frontdesk.outbound.key_sets import KeySets
from frontdesk.outbound.mail import Mailer
from frontdesk.outbound.sign_in_mail import SignInMail
from frontdesk.outbound.webhooks.deliverer import Deliverer
from frontdesk.outbound.webhooks.sender import Sender
from frontdesk.settings import Settings
from frontdesk.store.calendar_versions import CurrentVersions, PracticeVersions
from frontdesk.store.database import READY_SECONDS, WATCH_SECONDS, Database
from frontdesk.store.directories import DirectoryCache
from frontdesk.store.hosts import Hosts
from frontdesk.store.migrate import readiness
from frontdesk.store.notifications import NotificationListener
from frontdesk.store.queues import QUEUES, QueueMeter
from frontdesk.systems.fhir import FhirSystems
from frontdesk.systems.native import NativeCalendar, NativeSystem
from frontdesk.systems.port import SchedulingSystem
from frontdesk.web.error_handlers import UnexpectedErrors, exception_handlers
from frontdesk.web.request_log import RequestLog, log_line

if TYPE_CHECKING:
    from frontdesk.doors.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a running service, for the doors, the command line and the tests."""

    settings: Settings
    database: Database
    ring: KeyRing
    tokens: Tokens
    applications: Applications
    assistant_grants: AssistantGrants
    authenticator: Authenticator
    limiter: RateLimiter
    failed_attempts: FailedAttempts
    invalid_tokens: InvalidTokens
    forwarded_headers: ForwardedHeaders
    connection_limit: ConnectionLimit
    metrics: "Metrics | None"
    requests: RequestLog
    usage: UsageCounts
    engine: Engine
    audit_heads: AuditHeads
    desk: Desk
    staff_sessions: StaffSessions
    passkeys: Passkeys | None
    encrypted_cookies: EncryptedCookies
    desk_lock: DeskLock
    sign_in_mail: SignInMail | None
    webhooks: Deliverer
    key_sets: KeySets
    fhir: FhirSystems
    native: NativeCalendar
    calendar_notifier: CalendarNotifier

    def on_change(self, kind: str, id: str) -> None:
        """Drops what another process has changed from the caches."""
        self.authenticator.on_change(kind, id)
        self.limiter.on_change(kind, id)
        self.desk.live.on_change(kind, id)

    def on_listening(self) -> None:
        """The connection to the database is new: notifications may have been missed, and a fail-over may have lost
        changes that the caches still have."""
        self.native.clear()
        self.engine.answers.clear()
        self.desk.live.wake_all()


def build_service(
    settings: Settings,
    database: Database,
    clock: Callable[[], datetime] | None = None,
    requests: RequestLog | None = None,
) -> Service:
    """Wires the parts together; opens nothing."""
    now = clock or (lambda: datetime.now(UTC))
    seconds = time.time if clock is None else lambda: now().timestamp()
    cipher = load_secret_key(settings)
    ring = KeyRing(database, cipher, token_lifetime_seconds=settings.token_lifetime_seconds, clock=now)
    tokens = Tokens(ring, settings, clock=now)
    authenticator = Authenticator(database, tokens, seconds=seconds)
    audit = AuditTrail(database)
    documents = ClientDocuments(CheckedHttp(allow_private=False)) if settings.client_metadata_documents else None
    applications = Applications(database, None if documents is None else documents.fetch)
    calendar_notifier = CalendarNotifier(database)
    directories = DirectoryCache(database)
    current_versions = CurrentVersions(database)
    calendar = NativeCalendar(database, directories, current_versions)

    staff_sessions, party = StaffSessions(database, now, audit.seal_soon), relying_party_of(settings.public_url)

    def settled(practice_id: int) -> None:
        audit.seal_soon(practice_id)
        calendar_notifier.changed(practice_id)

    fhir = FhirSystems(database, directories, clock=now, on_settled=settled)

    async def system_of(caller: Caller, current: PracticeVersions | None = None) -> SchedulingSystem:
        stored = await directories.at(caller.practice_id, caller.directory_version)
        if stored.directory.practice.scheduling_system["kind"] == "fhir":
            return await fhir.system(caller.practice_id, stored)
        return NativeSystem(calendar, caller.practice_id, caller.directory_version, current).parts

    @lru_cache(maxsize=10_000)
    def keys_in_state(practice_id: int, _state: int) -> tuple[SlotIds, Cursors]:
        newest, *older = (practice_key(master, practice_id) for master in ring.secrets(SLOT_IDS))
        return SlotIds(newest, older), Cursors(ring.secrets(CURSORS), practice_id)

    def practice_keys(practice_id: int) -> tuple[SlotIds, Cursors]:
        return keys_in_state(practice_id, ring.state(seconds()))

    failed_attempts = FailedAttempts(database)
    webhook_sender = Sender(allow_private=settings.webhook_allow_private)
    audit_heads = AuditHeads(database, audit, ring, now, settings.audit_heads_file)
    services = Services()
    engine = Engine(
        authenticator=authenticator,
        systems=system_of,
        slot_ids=lambda practice_id: practice_keys(practice_id)[0],
        cursors=lambda practice_id: practice_keys(practice_id)[1],
        audit=audit,
        writes=Writes(
            Intents(database), audit, timedelta(seconds=settings.confirmation_seconds), calendar_notifier.changed
        ),
        answers=AnswerCache(directories.version, ring.state, seconds),
        current_versions=current_versions,
        limiter=FairLimiter(at_once=settings.database_pool_size, per_practice=max(1, settings.database_pool_size // 2)),
        search_limiter=FairLimiter(at_once=24, per_practice=16, yields=True),
        patient_guard=PatientGuard(database, MatchAttempts(database, ring)),
        slot_json=SlotJson(),
        services=services,
        clock=now,
    )
    services.build(
        Core(
            settings=settings,
            database=database,
            tokens=tokens,
            keys=ring,
            audit_heads=audit_heads,
            failed_attempts=failed_attempts,
            engine=engine,
            on_calendar_change=calendar_notifier.changed,
            clock=now,
        )
    )
    return Service(
        settings=settings,
        database=database,
        ring=ring,
        tokens=tokens,
        applications=applications,
        assistant_grants=AssistantGrants(database, ring, tokens, audit.seal_soon),
        authenticator=authenticator,
        limiter=RateLimiter(database),
        failed_attempts=failed_attempts,
        invalid_tokens=InvalidTokens(),
        forwarded_headers=ForwardedHeaders(database),
        connection_limit=ConnectionLimit(
            settings.connections_per_address, trusted_proxy_check(settings.trusted_proxies)
        ),
        metrics=_metrics(settings, database),
        requests=requests or RequestLog(log_line),
        usage=UsageCounts(database, now),
        engine=engine,
        audit_heads=audit_heads,
        desk=build_desk(
            engine=engine,
            database=database,
            cipher=cipher,
            ring=ring,
            applications=applications,
            public_url=settings.public_url,
            webhook_sender=webhook_sender,
            health=SystemHealth(database, fhir.condition, os.environ),
            on_calendar_change=calendar_notifier.changed,
        ),
        staff_sessions=staff_sessions,
        passkeys=None if party is None else Passkeys(database, staff_sessions, now, party),
        encrypted_cookies=EncryptedCookies(cipher, now),
        desk_lock=DeskLock(database, staff_sessions, now, cipher),
        sign_in_mail=_sign_in_mail(settings, database, now, audit.seal_soon),
        webhooks=Deliverer(
            database,
            cipher,
            webhook_sender,
            audit.seal_soon,
        ),
        key_sets=KeySets(CheckedHttp(allow_private=settings.webhook_allow_private)),
        fhir=fhir,
        native=calendar,
        calendar_notifier=calendar_notifier,
    )


def build_background(service: Service) -> Background:
    """The periodic work of a service."""
    database, metrics = service.database, service.metrics
    background = Background(
        [
            NotificationListener(_listened(service), service.on_change, service.on_listening).step,
            service.ring.step,
            service.engine.audit.step,
            service.audit_heads.step,
            service.calendar_notifier.step,
            service.webhooks.step,
            service.limiter.step,
            service.usage.step,
            service.forwarded_headers.step,
            service.fhir.reconciler.step,
            Step("idle connections", database.release_idle, every=READY_SECONDS),
            *((Step("fail-over", database.watch, every=WATCH_SECONDS),) if database.hosts.has_alternatives else ()),
            *housekeeping_steps(database, service.engine.clock),
            *service.engine.services.steps,
            *(() if metrics is None else (metrics.step,)),
        ]
    )
    if metrics is not None:
        from frontdesk.measurements import measure_service

        measure_service(metrics, service, background)
    return background


def build_app(
    service: Service, lifespan: Lifespan[Starlette] | None = None, background: Background | None = None
) -> Gateway:
    """The doors of a service behind its gateway, as one ASGI application."""

    async def check_credentials(
        client_id: str, credential: str | Assertion, address: str | None
    ) -> AuthenticatedClient:
        attempts = service.failed_attempts

        async def check() -> AuthenticatedClient:
            if isinstance(credential, Assertion):
                return await authenticate_assertion(service.database, credential, service.key_sets.at)
            return await authenticate(service.database, service.ring, client_id, credential)

        client = await attempts.guard("token", client_id, address, check)
        await attempts.count_token(client.client_id, client.per_minute)
        return client

    settings = service.settings
    assistants = AssistantDoor(
        service.applications, service.assistant_grants, service.failed_attempts, settings, service.engine.clock
    )
    console = Console(
        settings=settings,
        desk=service.desk,
        staff_sessions=service.staff_sessions,
        passkeys=service.passkeys,
        encrypted_cookies=service.encrypted_cookies,
        desk_lock=service.desk_lock,
        sign_in_mail=service.sign_in_mail,
        failed_attempts=service.failed_attempts,
        clock=service.engine.clock,
        requests=service.requests,
        has_identity_provider=settings.oidc_issuer is not None,
    )
    health = Health(partial(readiness, service.database), background.failing if background else list)
    routes: list[BaseRoute] = [
        *page_routes(settings, service.authenticator, service.invalid_tokens),
        *oauth_routes(check_credentials, assistants.exchange, service.tokens, service.ring, settings, service.requests),
        *assistants.routes(service.requests),
        *(route for feature in features() for route in feature.parts.routes(console)),
        *(_identity_routes(service, console) if console.has_identity_provider else ()),
        *console_routes(console),
        *health.routes,
        *(() if service.metrics is None else (service.metrics.route,)),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(UnexpectedErrors, settings=settings)],
        exception_handlers=exception_handlers(settings),
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    service.requests.observers.append(service.usage.observe)
    if service.metrics is not None:
        service.requests.observers.append(service.metrics.observe)
    rest_door = RestDoor(service.engine, settings, service.requests)
    mcp_door = mcp.McpDoor(service.engine, settings, service.requests)
    fhir_door = None
    if settings.fhir_server:
        identifiers = ExternalIdentifiers(service.database)
        fhir_door = FhirDoor(service.engine, service.limiter, identifiers, settings, service.requests)

    def door_of(path: str) -> ASGIApp | None:
        if path.startswith(f"{PREFIX}/"):
            return None if path.startswith(PROBLEM_PAGES) else rest_door
        if f"{path}/".startswith(f"{FHIR_PREFIX}/"):
            return fhir_door
        return mcp_door if path == mcp.PATH else None

    gateway = Gateway(
        app,
        door_of,
        service.authenticator,
        service.limiter,
        settings,
        service.requests,
        service.invalid_tokens,
        service.forwarded_headers,
    )
    gateway.connection_limit = service.connection_limit
    gateway.on_drain, gateway.on_close = health.drain, service.desk.live.close
    app.state.gateway = gateway  # pages may call the doors through it
    return gateway


def _listened(service: Service) -> Hosts:
    """The hosts to listen at for notifications, which do not pass through a pooler."""
    direct = service.settings.direct_database_url
    return service.database.hosts if direct is None else Hosts(direct)


def _metrics(settings: Settings, database: Database) -> "Metrics | None":
    """Imported only where a metrics token is set: the library is slow to import."""
    if settings.metrics_token is None:
        return None
    from frontdesk.doors.metrics import Metrics, Queues

    queues = Queues({name: queue.about for name, queue in QUEUES.items()}, QueueMeter(database).read)
    return Metrics(database, queues, settings.metrics_token, settings.metrics_folder)


def _sign_in_mail(
    settings: Settings, database: Database, clock: Callable[[], datetime], on_audit: Callable[[int], None]
) -> SignInMail | None:
    if settings.smtp_url is None:
        return None
    return SignInMail(database, Mailer(settings), settings.public_url, clock, on_audit)


def _identity_routes(service: Service, console: Console) -> Sequence[BaseRoute]:
    """Imported only where an identity provider is set: its HTTP client is slow to import."""
    from frontdesk.access.staff.identity_provider import IdentityProvider
    from frontdesk.console.pages.identity import identity_routes

    provider = IdentityProvider(service.settings)
    return identity_routes(console, provider)
