"""Renders the API reference at /docs."""

from collections.abc import Mapping
from html import escape

from frontdesk.domain.errors import CATALOGUE
from frontdesk.doors.docs.fields import answer_rows, body_rows, parameter_rows, table
from frontdesk.doors.docs.markup import contents_list, curl, fill, json_markup, linked, mark_of, page, sample
from frontdesk.doors.openapi import body_example, body_schema, parameters
from frontdesk.doors.openapi_errors import codes_by_status, error_codes, example_challenge
from frontdesk.operations import BY_NAME, GROUPS, OPERATIONS, Operation
from frontdesk.operations._schemas import plain_schema
from frontdesk.settings import Settings

# The booking flow: the operation, the field it returns, and a note.
STEPS = (
    ("match_patient", "patientId", "By legal name, phone and date of birth. Returns whether the patient is new."),
    ("list_locations", "locationId", "By name or alias."),
    ("list_providers", "providerId", "At that location, by name or alias; titles are ignored."),
    ("list_visit_types", "visitTypeId", "For new or existing patients; it must fit the patient."),
    ("list_procedures", "procedureId", "The procedures of that visit type, with their durations."),
    ("search_slots", "slotId", "All four ids and a window of at most 14 days."),
    ("get_slot", "available", "Read back provider, location and local time. Availability is checked live."),
    ("book_appointment", "appointmentId", "Receive 428, read it back, resend with the token, receive 201."),
)

_START = (
    ("#token", "", "Get a token"),
    ("#booking", "", "Book in eight steps"),
    ("#writes", "", "How writes work"),
    ("#notes", "", "Conventions"),
)


def reference_page(settings: Settings, assets: Mapping[str, str]) -> str:
    contents, main = contents_list("Start", _START), _introduction(settings)
    for name, description in GROUPS:
        operations = [operation for operation in OPERATIONS if operation.group == (name, description)]
        contents += contents_list(name, ((f"#{each.name}", each.method, each.title) for each in operations))
        anchor = name.lower().replace(" ", "-")
        articles = "\n".join(_operation(operation, settings) for operation in operations)
        main += (
            f'<section class="group" aria-labelledby="{anchor}"><h2 id="{anchor}">{name}</h2>'
            f'<p class="lead">{escape(description)}</p>{articles}</section>\n'
        )
    return page("Practice Scheduling API v1 · frontdesk", "/docs", contents, main, assets)


def _introduction(settings: Settings) -> str:
    url = settings.public_url
    token = (
        f"TOKEN=$(curl -s {url}/oauth/token \\\n  -d grant_type=client_credentials \\\n"
        '  -d "client_id=$CLIENT_ID" \\\n  -d "client_secret=$CLIENT_SECRET" |\n'
        "  python3 -c 'import json, sys; print(json.load(sys.stdin)[\"access_token\"])')"
    )
    return fill(
        "introduction.html",
        url=escape(url),
        token_sample=sample("Token", escape(token, quote=False)),
        first_sample=sample("First call", curl(BY_NAME["get_capabilities"], settings, None)),
        steps="\n".join(_step(BY_NAME[name], gives, note) for name, gives, note in STEPS),
    )


def _step(operation: Operation, gives: str, note: str) -> str:
    return (
        f'<li><a href="#{operation.name}"><span class="step"><strong>{escape(operation.title)}</strong>'
        f'<span class="path">{operation.method} /api{escape(operation.path)}</span><span>{escape(note)}</span></span>'
        f'<code class="gives">{gives}</code></a></li>'
    )


def _operation(operation: Operation, settings: Settings) -> str:
    scope = "any valid token" if operation.scope is None else f"<code>{operation.scope}</code>"
    kind = '<span class="write">write</span>' if operation.kind == "write" else "<span>read</span>"
    words = f"{operation.title} {operation.name} {operation.method} {operation.path} {operation.scope or ''}"
    return (
        f'<article class="op" data-find="{escape(words.lower())}" aria-labelledby="{operation.name}"><header>'
        f'<h3 id="{operation.name}"><a href="#{operation.name}">{escape(operation.title)}</a></h3>'
        f'<p class="call">{mark_of(operation.method)}<code>/api{escape(operation.path)}</code></p>'
        f'<p class="needs">{kind}<span>needs {scope}</span><span>tool <code>{operation.name}</code></span></p>'
        f'</header><div class="two"><div><p>{linked(operation.description)}</p>'
        f"{_inputs(operation)}{_outputs(operation)}{_errors(operation)}</div>"
        f"<div>{_samples(operation, settings)}</div></div></article>"
    )


def _inputs(operation: Operation) -> str:
    given, body = parameters(operation), body_schema(operation)
    rows = parameter_rows([each for each in given if each["in"] != "header"])
    rows += "" if body is None else body_rows(body)
    rows += parameter_rows([each for each in given if each["in"] == "header"])
    heading = "Parameters" if body is None else "Fields"
    return f"<h4>{heading}</h4>{table(heading, rows)}" if rows else ""


def _outputs(operation: Operation) -> str:
    rows = answer_rows(plain_schema(operation.output))
    return f"<details><summary>Response fields</summary>{table('Response fields', rows)}</details>"


def _errors(operation: Operation) -> str:
    items = "".join(
        f'<li><a href="/errors.html#{code}" title="{escape(CATALOGUE[code].title)}">{mark_of(str(status))}{code}</a>'
        "</li>"
        for status, codes in codes_by_status(error_codes(operation)).items()
        for code in codes
    )
    return f'<h4>Errors</h4><ul class="codes">{items}</ul>'


def _samples(operation: Operation, settings: Settings) -> str:
    body = None if operation.method == "GET" else body_example(operation)
    answer = json_markup(operation.example_answer)
    shown = [sample("Request", curl(operation, settings, body))]
    if operation.kind == "write":
        challenge = json_markup(example_challenge(operation, settings.documentation_url))
        shown.append(sample("428, nothing has changed yet", challenge))
        shown.append(sample(f"{operation.success}, after the second call", answer))
    else:
        shown.append(sample(f"{operation.success}", answer))
    return "".join(shown)
