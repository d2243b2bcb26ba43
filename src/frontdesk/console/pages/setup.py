"""The set-up checklist, with the commands for each step."""

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from starlette.responses import Response

from frontdesk.console.actions.checklist import Progress
from frontdesk.console.guard import ConsoleRequest, Page


@dataclass(frozen=True, slots=True)
class SetupStep:
    title: str
    done: bool
    text: str
    link: tuple[str, str] | None = None  # URL and text
    commands: tuple[str, ...] = ()


async def _setup(request: ConsoleRequest) -> Response:
    progress = await request.desk.checklist.progress(request.context)
    steps = _steps(progress, request)
    following = next((number for number, step in enumerate(steps) if not step.done), None)
    return request.render("setup.html", title="Set-up", steps=steps, following=following)


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
            "Describe the practice",
            imported,
            f"There are {_count(progress.locations, 'location')}, {_count(progress.providers, 'provider')} and "
            f"{_count(progress.visit_types, 'visit type')}. Enter them under Practice, or upload the practice file.",
            ("/console/practice", "Upload the practice file"),
            () if imported else (f"frontdesk practice import {slug}.yaml",),
        ),
        _hours(progress, hours),
        SetupStep(
            "Add a client",
            client,
            f"There are {_count(progress.clients, 'client')}. A client is an agent or an integration, with its own "
            "scopes and limits.",
            ("/console/clients" if client else "/console/clients/new", "Clients" if client else "Add a client"),
            ()
            if client
            else (f'frontdesk client add --practice {slug} --name "Phone agent" --grant agent --scope all',),
        ),
        SetupStep(
            "Fetch a token and use it",
            called,
            "A client has called." if called else "The client exchanges its id and secret for an access token.",
            ("/docs/guides/quick-start", "The quick start"),
            () if called or not client else token,
        ),
        SetupStep(
            "Search for a free time",
            searched,
            "A client has searched." if searched else "A search reserves nothing.",
            ("/console/agent", "See what an agent sees"),
            () if searched else search,
        ),
        SetupStep(
            "Book the first appointment",
            booked,
            "The first booking is in the calendar."
            if booked
            else "An agent's booking is proposed, read back, and executed with the token of its confirmation.",
            ("/console/calendar", "The calendar") if booked else ("/docs/guides/booking-over-rest", "How to book"),
        ),
    ]


def _hours(progress: Progress, done: bool) -> SetupStep:
    if progress.system == "fhir":
        return SetupStep(
            "Reach the scheduling system",
            done,
            "Free times come from the practice's own FHIR server.",
            ("/console/practice/system", "Check the scheduling system"),
        )
    return SetupStep(
        "Set weekly hours",
        done,
        f"Hours are set for {_count(progress.providers_with_hours, 'provider')}. Without hours there is no free time.",
        ("/console/practice/providers", "Set the hours of providers"),
    )


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


PAGES = (Page("GET", "/setup", _setup, role="admin"),)
