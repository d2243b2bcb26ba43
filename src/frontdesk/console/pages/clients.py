"""Clients: list, add, change, rotate secrets, revoke tokens, disable.

A secret is shown once, in the answer to the form that made it.
"""

import hashlib
from datetime import timedelta

import orjson
from starlette.responses import Response

from frontdesk.access.clients.records import (
    DEFAULT_PER_MINUTE,
    DEFAULT_QUOTA,
    DEFAULT_RETIREMENT,
    AccessLimits,
    ClientRecord,
)
from frontdesk.console.charts import requests_chart, share
from frontdesk.console.forms import Form, errors_of, whole_number
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.panels import client_panels
from frontdesk.desk.clients import ClientFields, check_client
from frontdesk.desk.form_uses import SecretShown
from frontdesk.desk.usage import SPANS
from frontdesk.domain.errors import Problem
from frontdesk.feature import features
from frontdesk.texts import N_

_CHANGED = N_("Somebody else has changed this client meanwhile. Nothing was saved: open the page again.")
_KNOWN_ONLY = (
    ("", N_("As the practice says")),
    ("no", N_("All patients")),
    ("yes", N_("Patients that it matched, created or booked")),
)
_OVERLAPS = {
    "0": (N_("At once"), timedelta(0)),
    "1": (N_("After an hour"), timedelta(hours=1)),
    "24": (N_("After a day"), DEFAULT_RETIREMENT),
    "168": (N_("After a week"), timedelta(days=7)),
}
_SCOPE_MEANINGS = {
    "practices:read": N_("the practice, its locations, providers and visit types"),
    "slots:read": N_("free times"),
    "patients:read": N_("patients, found by name and date of birth"),
    "patients:write": N_("new patients, and changes to known ones"),
    "appointments:read": N_("appointments"),
    "appointments:book": N_("booking and rescheduling"),
    "appointments:cancel": N_("cancelling"),
    "appointments:confirm": N_("confirming that a patient comes"),
}


def scope_meanings() -> dict[str, str]:
    of_features = {scope: meaning for feature in features() for scope, meaning in feature.scopes.items()}
    return {scope: _(meaning) for scope, meaning in (_SCOPE_MEANINGS | of_features).items()}


async def _list(request: ConsoleRequest) -> Response:
    uses = [use for use in await request.desk.usage.of_clients(request.context) if use.client.staff_id is None]
    reads = await request.desk.patient_reads.of_clients(request.context)
    return request.render(
        "clients.html", title=_("Clients"), uses=uses, reads=reads, share=share, now=request.context.now
    )


async def _new(request: ConsoleRequest) -> Response:
    typed = Form(
        {
            "name": [""],
            "grant": ["agent"],
            "per_minute": [str(DEFAULT_PER_MINUTE)],
            "quota": [str(DEFAULT_QUOTA)],
        }
    )
    return _new_form(request, typed, {})


def _new_form(request: ConsoleRequest, typed: Form, errors: dict[str, str]) -> Response:
    return request.render(
        "client_new.html",
        title=_("Add a client"),
        status=422 if errors else 200,
        typed=typed,
        errors=errors,
        scopes=scope_meanings(),
        known_only=[(key, _(label)) for key, label in _KNOWN_ONLY],
    )


async def _add(request: ConsoleRequest) -> Response:
    fields, errors = _read(request.form, request.form.get("grant"))
    if errors:
        return _new_form(request, request.form, errors)
    try:
        client, secret = await request.desk.clients.add(request.context, fields, once=request.form.get("once"))
    except SecretShown as shown:
        return request.redirect(f"/clients/{shown.made_id}", notice="secret_shown")
    return _secret(request, client, secret, _("%(client)s can call now", client=client.name))


def _read(form: Form, grant: str, client: ClientRecord | None = None) -> tuple[ClientFields, dict[str, str]]:
    """The fields, and every error in their order."""
    unreadable: dict[str, str] = {}
    per_minute = whole_number(form, "per_minute", _("The rate limit"), unreadable)
    quota = whole_number(form, "quota", _("The quota"), unreadable)
    access = _read_access(form, unreadable, is_assistant=client is not None and client.staff_id is not None)
    fields = ClientFields(form.get("name"), grant, form.all("scopes"), per_minute, quota, access)
    try:
        check_client(fields, client)
    except Problem as problem:
        return fields, {**errors_of(problem), **unreadable}
    return fields, unreadable


def _read_access(form: Form, unreadable: dict[str, str], *, is_assistant: bool) -> AccessLimits:
    """An empty field follows the practice, but an assistant sees known patients only."""

    def limit(name: str, label: str) -> int | None:
        return whole_number(form, name, label, unreadable) if form.get(name) else None

    known_only = form.get("known_patients_only") or ("yes" if is_assistant else "")
    if known_only not in dict(_KNOWN_ONLY):
        unreadable["known_patients_only"] = _("Choose which patients the client sees.")
    return AccessLimits(
        limit("patients_per_hour", _("The patient limit")),
        limit("patients_per_day", _("The patient limit")),
        limit("match_misses", _("The number of failed matches")),
        {"yes": True, "no": False}.get(known_only),
        limit("writes_per_hour", _("The limit on writes")),
        limit("upcoming_per_patient", _("The limit on upcoming appointments")),
    )


async def _show(request: ConsoleRequest) -> Response:
    client = await request.desk.clients.one(request.context, request.param("client_id"))
    return await _client_page(request, client, _as_typed(client), {})


async def _client_page(request: ConsoleRequest, client: ClientRecord, typed: Form, errors: dict[str, str]) -> Response:
    counted = await request.desk.usage.over_time(request.context, SPANS["24h"], request.zone, client.client_id)
    uses = await request.desk.usage.of_clients(request.context)
    return request.render(
        "client.html",
        title=client.name,
        status=422 if errors else 200,
        client=client,
        shown=_state(client),
        typed=typed,
        errors=errors,
        scopes=scope_meanings(),
        known_only=[] if client.staff_id else [(key, _(label)) for key, label in _KNOWN_ONLY],
        reads=await request.desk.patient_reads.of_client(request.context, client.client_id),
        connection=await request.desk.assistants.one(request.context, client.client_id),
        panels=await client_panels(request, client),
        overlaps=[(key, _(label)) for key, (label, _after) in _OVERLAPS.items()],
        use=next(use for use in uses if use.client.client_id == client.client_id),
        chart=requests_chart(counted, request.zone, request.formats),
        share=share,
        now=request.context.now,
    )


def _as_typed(client: ClientRecord) -> Form:
    access = client.access_limits
    known_only = access.known_patients_only
    return Form(
        {
            "name": [client.name],
            "grant": [client.grant],
            "scopes": list(client.scopes),
            "per_minute": [str(client.per_minute)],
            "quota": [str(client.quota)],
            "patients_per_hour": [_as_text(access.patients_per_hour)],
            "patients_per_day": [_as_text(access.patients_per_day)],
            "match_misses": [_as_text(access.match_misses)],
            "writes_per_hour": [_as_text(access.writes_per_hour)],
            "upcoming_per_patient": [_as_text(access.upcoming_per_patient)],
            "known_patients_only": ["" if known_only is None else "yes" if known_only else "no"],
        }
    )


def _state(client: ClientRecord) -> str:
    """By which a form recognizes that the client has been changed since it was opened."""
    return hashlib.sha256(orjson.dumps(_as_typed(client).fields)).hexdigest()


def _as_text(limit: int | None) -> str:
    return "" if limit is None else str(limit)


async def _change(request: ConsoleRequest) -> Response:
    client = await request.desk.clients.one(request.context, request.param("client_id"))
    if request.form.get("shown") not in ("", _state(client)):
        raise Problem("conflict", _CHANGED)  # saving the form would give back what another admin has taken away
    fields, errors = _read(request.form, request.form.get("grant") or client.grant, client)
    if errors:
        return await _client_page(request, client, request.form, errors)
    await request.desk.clients.change(request.context, client.client_id, fields)
    return request.redirect(f"/clients/{client.client_id}", notice="client_changed")


async def _rotate(request: ConsoleRequest) -> Response:
    client_id, form = request.param("client_id"), request.form
    if form.get("overlap") not in _OVERLAPS:
        raise Problem("validation", "Choose when the old secret stops.")
    overlap = _OVERLAPS[form.get("overlap")][1]
    try:
        client, secret = await request.desk.clients.rotate(
            request.context, client_id, retire_old_after=overlap, once=form.get("once")
        )
    except SecretShown:
        return request.redirect(f"/clients/{client_id}", notice="secret_shown")
    return _secret(request, client, secret, _("A new secret for %(client)s", client=client.name))


async def _disable_or_enable(request: ConsoleRequest) -> Response:
    client_id, disabled = request.param("client_id"), request.page.path.endswith("/disable")
    await request.desk.clients.set_disabled(request.context, client_id, disabled=disabled)
    return request.redirect(f"/clients/{client_id}", notice="client_disabled" if disabled else "client_enabled")


async def _trust_or_distrust(request: ConsoleRequest) -> Response:
    client_id, trusted = request.param("client_id"), request.page.path.endswith("/trust")
    await request.desk.clients.set_trusted(request.context, client_id, trusted=trusted)
    return request.redirect(f"/clients/{client_id}", notice="client_trusted" if trusted else "client_distrusted")


async def _revoke_tokens(request: ConsoleRequest) -> Response:
    client_id = request.param("client_id")
    await request.desk.clients.revoke_tokens(request.context, client_id)
    return request.redirect(f"/clients/{client_id}", notice="tokens_revoked")


async def _forget_misses(request: ConsoleRequest) -> Response:
    client = await request.desk.clients.one(request.context, request.param("client_id"))
    await request.desk.patient_reads.forget_misses(request.context, client.client_id)
    return request.redirect(f"/clients/{client.client_id}", notice="misses_forgotten")


def _secret(request: ConsoleRequest, client: ClientRecord, secret: str, title: str) -> Response:
    retiring = [record.retires_at for record in client.secrets if record.retires_at is not None]
    return request.render(
        "client_secret.html",
        title=title,
        client=client,
        secret=secret,
        retiring=retiring[0] if retiring else None,
        now=request.context.now,
        public_url=request.console.settings.public_url,
    )


PAGES = (
    Page("GET", "/clients", _list, role="admin"),
    Page("POST", "/clients", _add, role="admin"),
    Page("GET", "/clients/new", _new, role="admin"),
    Page("GET", "/clients/{client_id}", _show, role="admin"),
    Page("POST", "/clients/{client_id}", _change, role="admin"),
    Page("POST", "/clients/{client_id}/rotate", _rotate, role="admin"),
    Page("POST", "/clients/{client_id}/revoke-tokens", _revoke_tokens, role="admin"),
    Page("POST", "/clients/{client_id}/forget-misses", _forget_misses, role="admin"),
    Page("POST", "/clients/{client_id}/trust", _trust_or_distrust, role="admin"),
    Page("POST", "/clients/{client_id}/distrust", _trust_or_distrust, role="admin"),
    Page("POST", "/clients/{client_id}/disable", _disable_or_enable, role="admin"),
    Page("POST", "/clients/{client_id}/enable", _disable_or_enable, role="admin"),
)
