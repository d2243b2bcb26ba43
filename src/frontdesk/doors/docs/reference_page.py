"""/docs: every operation with its parameters, examples and errors, after the way of a first booking."""

from collections.abc import Mapping
from html import escape

from frontdesk.domain.errors import CATALOGUE
from frontdesk.doors.docs.fields import answer_rows, body_rows, parameter_rows
from frontdesk.doors.docs.markup import contents_list, curl, json_markup, mark_of, page, prose, sample, shell
from frontdesk.doors.error_responses import codes_by_status, error_codes, example_challenge
from frontdesk.doors.examples import ANSWERS
from frontdesk.doors.openapi import TAGS, body_example, body_schema, parameters, tag_of
from frontdesk.operations import OPERATIONS, Operation
from frontdesk.operations._schemas import plain_schema
from frontdesk.settings import Settings

# The booking flow of the specification: the operation, what it gives, and what to know there.
STEPS = (
    (
        "match_patient",
        "patientId",
        "By legal name, phone and date of birth. It also tells a new patient from a known one.",
    ),
    ("list_locations", "locationId", "By the name people use, aliases included."),
    ("list_providers", "providerId", "At that location, by name or alias; titles do not matter."),
    ("list_visit_types", "visitTypeId", "For new or for existing patients: it must fit the patient."),
    ("list_procedures", "procedureId", "What can be booked under that visit type, and how long it takes."),
    ("search_slots", "slotId", "All four ids and a window of at most 14 days."),
    ("get_slot", "available", "Read back provider, place and local time; availability is checked live."),
    ("book_appointment", "appointmentId", "Receive 428, read it back, resend with the token, receive 201."),
)

_NOTES = (
    ("Times", "Instants carry the UTC offset of the location’s time zone: say them as they come. Dates are `yyyy-MM-dd` "
     "in that zone."),
    ("Ids", "Use them exactly as an answer gave them, and never show them to people. Another practice’s id is `not_found`."),
    ("Pages", "Lists take `limit` and `cursor`; `nextCursor` is absent on the last page."),
    ("Names", "Parameter and property names are matched without regard to case. An unknown one is refused, so a "
     "misspelt `confirmation_token` cannot pass unnoticed."),
    ("Absent fields", "Null is nothing given, and answers leave empty fields out."),
    ("Tracing", "Send `traceparent` to choose the trace id. `X-SVC-TRACE-ID` carries it on every answer, and `requestId` "
     "in every problem."),
    ("Limits", "`RateLimit` and `RateLimit-Policy` tell what is left. On 429 and 502 wait for `Retry-After` seconds."),
    ("Formats", "Bodies are JSON of at most 64 KiB. Answers are `application/json`, or `text/json` and `text/plain` by "
     "`Accept`; problems are always `application/problem+json`."),
)  # fmt: skip


def reference_page(settings: Settings, assets: Mapping[str, str]) -> str:
    contents = contents_list(
        "Start",
        (("#token", "", "Get a token"), ("#booking", "", "Book in eight steps"), ("#writes", "", "How writes work"),
         ("#notes", "", "Good to know")),
    )  # fmt: skip
    sections = []
    for name, description in TAGS.values():
        operations = [operation for operation in OPERATIONS if tag_of(operation) == name]
        contents += contents_list(name, ((f"#{each.name}", each.method, each.title) for each in operations))
        articles = "".join(_operation(operation, settings) for operation in operations)
        sections.append(
            f'<section class="group" aria-labelledby="{_slug(name)}"><h2 id="{_slug(name)}">{name}</h2>'
            f"<p class=lead>{escape(description)}</p>{articles}</section>"
        )
    main = _introduction(settings) + _booking() + _writes() + _notes() + "".join(sections)
    return page("Practice Scheduling API v1 · frontdesk", "/docs", contents, main, assets)


def _introduction(settings: Settings) -> str:
    url = settings.public_url
    token = (
        f"TOKEN=$(curl -s {url}/oauth/token \\\n  -d grant_type=client_credentials \\\n"
        '  -d "client_id=$CLIENT_ID" -d "client_secret=$CLIENT_SECRET" \\\n'
        "  | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"access_token\"])')"
    )
    call = f'curl {url}/api/capabilities \\\n  -H "Authorization: Bearer $TOKEN"'
    return (
        '<section class="hero"><p class="over">API v1</p><h1>Practice Scheduling API</h1>'
        "<p class=lead>A medical practice’s calendar, safe to hand to integrations and to agents that speak with patients. "
        "One token belongs to one practice; every change is read back before it happens.</p>"
        f"<dl class=facts><div><dt>Base address</dt><dd><code>{escape(url)}/api</code></dd></div>"
        f"<div><dt>Tools for agents</dt><dd><code>{escape(url)}/mcp</code></dd></div>"
        '<div><dt>Machine-readable</dt><dd><a href="/openapi/v1.json">OpenAPI 3.1</a></dd></div></dl></section>'
        '<section aria-labelledby="token"><h2 id="token">Get a token</h2><div class=two><div>'
        "<p>The practice’s operator gives you a client id and a secret. Exchange them for an access token, and send it "
        "with every call. There are no refresh tokens: when <code>expires_in</code> has passed, ask again.</p>"
        "<p>Then ask what the token may do. Every operation below names the scope that it needs.</p></div><div>"
        f"{sample('Token', shell(token))}{sample('First call', shell(call))}</div></div></section>"
    )


def _booking() -> str:
    titles = {operation.name: operation for operation in OPERATIONS}
    steps = "".join(
        f'<li><a href="#{name}"><span class=step><strong>{escape(titles[name].title)}</strong>'
        f"<code>{titles[name].method} /api{escape(titles[name].path)}</code>"
        f"<span>{escape(note)}</span></span><code class=gives>{gives}</code></a></li>"
        for name, gives, note in STEPS
    )
    return (
        '<section aria-labelledby="booking"><h2 id="booking">Book in eight steps</h2><p class=lead>Each step gives what the '
        'next one needs. When any provider will do, <a href="#find_first_available"><code>find_first_available</code></a> '
        f'takes the place of the search.</p><ol class="steps">{steps}</ol></section>'
    )


def _writes() -> str:
    return (
        '<section aria-labelledby="writes"><h2 id="writes">How writes work</h2><p class=lead>An agent’s write takes two '
        "calls. Nothing happens on the first one, and the second one happens once, however often it is sent.</p>"
        '<ol class="phases">'
        "<li><strong>Ask</strong><p>Send the request. Everything is checked as if it were executed.</p></li>"
        "<li><strong>428, nothing changed</strong><p>The answer holds a <code>confirmationToken</code>, when it expires, "
        "and a <code>readBack</code>. Read it aloud and wait for a clear yes.</p></li>"
        "<li><strong>Ask again, with the token</strong><p>The identical request plus <code>confirmationToken</code> is "
        "executed. Sent again, it gets the stored result.</p></li></ol>"
        '<p>A changed request is <a href="/errors.html#confirmation_mismatch"><code>confirmation_mismatch</code></a>; an '
        "expired token gets a new challenge. The token proves that the request is the same, not that a person agreed: "
        "asking is the agent’s duty. Tokens of the integration grant write at once, and may send an "
        "<code>Idempotency-Key</code> to make a resend safe.</p></section>"
    )


def _notes() -> str:
    notes = "".join(f"<div><dt>{escape(term)}</dt><dd>{prose(text)}</dd></div>" for term, text in _NOTES)
    return f'<section aria-labelledby="notes"><h2 id="notes">Good to know</h2><dl class="notes">{notes}</dl></section>'


def _operation(operation: Operation, settings: Settings) -> str:
    scope = "any valid token" if operation.scope is None else f"<code>{operation.scope}</code>"
    kind = "<span class=write>write, two calls for agents</span>" if operation.kind == "write" else "<span>read</span>"
    return (
        f'<article class="op" data-find="{escape(_words(operation))}" aria-labelledby="{operation.name}">'
        f'<header><h3 id="{operation.name}"><a href="#{operation.name}">{escape(operation.title)}</a></h3>'
        f"<p class=call>{mark_of(operation.method)}<code>/api{escape(operation.path)}</code></p>"
        f"<p class=needs><span>needs {scope}</span>{kind}<span>tool <code>{operation.name}</code></span></p></header>"
        f"<div class=two><div><p>{_linked(operation)}</p>{_inputs(operation)}{_outputs(operation)}{_errors(operation)}</div>"
        f"<div>{_samples(operation, settings)}</div></div></article>"
    )


def _words(operation: Operation) -> str:
    return f"{operation.title} {operation.name} {operation.method} {operation.path} {operation.scope or ''}".lower()


def _linked(operation: Operation) -> str:
    """The description, with the names of other operations leading to them."""
    words = []
    for word in escape(operation.description).split(" "):
        name = word.rstrip(".,;:")
        if any(other.name == name for other in OPERATIONS):
            word = f'<a href="#{name}"><code>{name}</code></a>{word[len(name) :]}'
        words.append(word)
    return " ".join(words)


def _inputs(operation: Operation) -> str:
    given = [each for each in parameters(operation) if each["in"] != "header"]
    headers = [each for each in parameters(operation) if each["in"] == "header"]
    body = body_schema(operation)
    rows = parameter_rows(given) + ("" if body is None else body_rows(body)) + parameter_rows(headers)
    if not rows:
        return ""
    heading = "Parameters" if body is None else "Fields"
    return f"<h4>{heading}</h4><table class=fields><tbody>{rows}</tbody></table>"


def _outputs(operation: Operation) -> str:
    rows = answer_rows(plain_schema(operation.output))
    return (
        f"<details><summary>Fields of the answer</summary><table class=fields><tbody>{rows}</tbody></table></details>"
    )


def _errors(operation: Operation) -> str:
    items = "".join(
        f'<li><a href="/errors.html#{code}" title="{escape(CATALOGUE[code].title)}">{mark_of(str(status))}{code}</a></li>'
        for status, codes in codes_by_status(error_codes(operation)).items()
        for code in codes
    )
    return f"<h4>Errors</h4><ul class=codes>{items}</ul>"


def _samples(operation: Operation, settings: Settings) -> str:
    body = None if operation.method == "GET" else body_example(operation)
    shown = [sample("Request", curl(operation, settings, body))]
    if operation.kind == "write":
        challenge = json_markup(example_challenge(operation, settings.documentation_url))
        shown.append(sample("428, nothing changed yet", challenge))
        shown.append(sample(f"{operation.success}, after the second call", json_markup(ANSWERS[operation.name])))
    else:
        shown.append(sample(f"{operation.success}", json_markup(ANSWERS[operation.name])))
    return "".join(shown)


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")
