"""The set-up checklist, with the commands for each step."""

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from starlette.responses import Response

from frontdesk.console.guard import PREFIX, ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.language import ngettext
from frontdesk.desk.checklist import Progress


@dataclass(frozen=True, slots=True)
class SetupStep:
    title: str
    done: bool
    text: str
    links: tuple[tuple[str, str], ...] = ()  # URL and text
    commands: tuple[str, ...] = ()


async def _setup(request: ConsoleRequest) -> Response:
    progress = await request.desk.checklist.progress(request.context)
    steps = _steps(progress, request)
    following = next((number for number, step in enumerate(steps) if not step.done), None)
    return request.render("setup.html", title=_("Set-up"), steps=steps, following=following)


def _steps(progress: Progress, request: ConsoleRequest) -> list[SetupStep]:
    url = request.console.settings.public_url
    slug = request.staff.practice_slug
    imported, hours, client, called, searched, booked = progress.done
    today = request.context.now.astimezone(request.zone).date()
    token = (
        "read -rs SECRET",
        f"TOKEN=$(curl -s {url}/oauth/token -d grant_type=client_credentials -d client_id={progress.client_id or 'ID'} "
        '--data-urlencode "client_secret=$SECRET" '
        "| python3 -c \"import json, sys; print(json.load(sys.stdin)['access_token'])\")",
        f'curl -s {url}/api/capabilities -H "Authorization: Bearer $TOKEN"',
    )
    search: tuple[str, ...] = ()
    if progress.example is not None:
        query = urlencode({**progress.example, "from": today, "to": today + timedelta(days=7)})
        search = (f'curl -s "{url}/api/slots?{query}" -H "Authorization: Bearer $TOKEN"',)
    return [
        SetupStep(
            _("Describe the practice"),
            imported,
            _(
                "There are %(locations)s, %(providers)s and %(visit_types)s. Enter them under Practice, or upload the "
                "practice file.",
                locations=_locations(progress.locations),
                providers=_providers(progress.providers),
                visit_types=_visit_types(progress.visit_types),
            ),
            _directory_links(progress),
            () if imported else (f"frontdesk practice import {slug}.yaml",),
        ),
        _hours(progress, hours),
        SetupStep(
            _("Add a client"),
            client,
            _(
                "There are %(clients)s. A client is an agent or an integration, with its own scopes and limits.",
                clients=_clients(progress.clients),
            ),
            (("/console/clients", _("Clients")) if client else ("/console/clients/new", _("Add a client")),),
            ()
            if client
            else (f'frontdesk client add --practice {slug} --name "Phone agent" --grant agent --scope all',),
        ),
        SetupStep(
            _("Fetch a token and use it"),
            called,
            _("A client has called.") if called else _("The client exchanges its id and secret for an access token."),
            (("/docs/guides/quick-start", _("The quick start")),),
            () if called or not client else token,
        ),
        SetupStep(
            _("Search for a free time"),
            searched,
            _("A client has searched.") if searched else _("A search reserves nothing."),
            tuple(
                (PREFIX + path, _(title)) for feature in request.features for path, title in feature.parts.search_links
            ),
            () if searched else search,
        ),
        SetupStep(
            _("Book the first appointment"),
            booked,
            _("The first booking is in the calendar.")
            if booked
            else _("An agent's booking is proposed, read back, and executed with the token of its confirmation."),
            (
                ("/console/calendar", _("The calendar"))
                if booked
                else ("/docs/guides/booking-over-rest", _("How to book")),
            ),
        ),
    ]


def _directory_links(progress: Progress) -> tuple[tuple[str, str], ...]:
    """To the forms, first to what is missing, and to the practice file."""
    upload = ("/console/practice", _("Upload the practice file"))
    if progress.system == "fhir":  # records are added there with their references to the server
        return (upload,)
    forms = [
        (progress.locations, ("/console/practice/locations", _("Enter locations"))),
        (progress.visit_types, ("/console/practice/visit-types", _("Enter visit types"))),
        (progress.providers, ("/console/practice/providers", _("Enter providers"))),
    ]
    return (*(link for _count, link in sorted(forms, key=lambda form: form[0] > 0)), upload)


def _hours(progress: Progress, done: bool) -> SetupStep:
    if progress.system == "fhir":
        return SetupStep(
            _("Reach the scheduling system"),
            done,
            _("Free times come from the practice's own FHIR server."),
            (("/console/practice/system", _("Check the scheduling system")),),
        )
    return SetupStep(
        _("Set weekly hours"),
        done,
        _(
            "Hours are set for %(providers)s. Without hours there is no free time.",
            providers=_providers(progress.providers_with_hours),
        ),
        (("/console/practice/providers", _("Set the hours of providers")),),
    )


def _locations(number: int) -> str:
    return ngettext("%(count)s location", "%(count)s locations", number) if number else _("no locations")


def _providers(number: int) -> str:
    return ngettext("%(count)s provider", "%(count)s providers", number) if number else _("no providers")


def _visit_types(number: int) -> str:
    return ngettext("%(count)s visit type", "%(count)s visit types", number) if number else _("no visit types")


def _clients(number: int) -> str:
    return ngettext("%(count)s client", "%(count)s clients", number) if number else _("no clients")


PAGES = (Page("GET", "/setup", _setup, role="admin"),)
