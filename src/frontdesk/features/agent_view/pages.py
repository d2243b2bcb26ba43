"""The agent's view: one call at a time, sent to both doors, with the raw messages side by side.

Every step is a POST, so that no URL holds anything about a patient.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from starlette.responses import Response

from frontdesk.access.clients.records import ClientRecord
from frontdesk.console.forms import Form
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.navigation import NavItem
from frontdesk.domain.errors import Problem
from frontdesk.engine.sandbox import SCENARIOS as SIMULATED
from frontdesk.features.agent_view import narration
from frontdesk.features.agent_view.agent_view import AgentView, commits
from frontdesk.features.agent_view.exchange import Exchange, SentMessage, exchange, mcp_request, rest_request
from frontdesk.features.agent_view.messages import panes
from frontdesk.features.agent_view.scenarios import Scenario, ScenarioStep, scenarios
from frontdesk.features.agent_view.state import Choice, ScenarioState, Value, load_state
from frontdesk.operations import BY_NAME, OPERATIONS, Operation
from frontdesk.operations._schemas import Schema, plain_schema
from frontdesk.texts import N_

PATH = "/agent"

_TOKEN = "confirmationToken"  # noqa: S105 - a field's name
_DEMO = "demo"
_MAX_NUMBER_LENGTH = 18
_ONLY_SANDBOX = N_(
    "The next call would change data. The agent's view executes writes in sandbox practices only, "
    "so it ends with the challenge here."
)
_BOTH_DOORS = ("", "")
_TWICE = (N_("Sent first: executes the write."), N_("The same token again: the stored answer, nothing is executed."))
_TWICE_BY_KEY = (
    N_("An integration's write executes at once. With an Idempotency-Key it does so once."),
    N_("The identical request again: the stored answer, nothing is executed."),
)


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    value: str
    choices: list[Choice]
    required: bool
    hint: str


@dataclass(frozen=True, slots=True)
class StepResult:
    """A step that was run, with both exchanges."""

    operation: Operation
    arguments: Mapping[str, Value]
    simulate: str | None
    left: Exchange
    right: Exchange
    titles: tuple[str, str]
    abouts: tuple[str, str]

    @property
    def answer(self) -> object:
        """The answer that counts: the second one, if a write was sent twice."""
        return self.right.answer if self.abouts != _BOTH_DOORS else self.left.answer

    @property
    def refused(self) -> bool:
        answer = self.answer
        return not isinstance(answer, dict) or answer.get("code", "confirmation_required") != "confirmation_required"


@dataclass(slots=True)
class ScenarioProgress:
    """The position in the view: the client, the scenario and step or a chosen operation, and what is known."""

    client: ClientRecord
    scenario: Scenario | None
    position: int
    chosen: Operation  # where no step names one
    state: ScenarioState

    @property
    def step(self) -> ScenarioStep | None:
        steps = () if self.scenario is None else self.scenario.steps
        return steps[self.position] if self.position < len(steps) else None

    @property
    def operation(self) -> Operation:
        return self.chosen if self.step is None else BY_NAME[self.step.operation]


async def _step_page(request: ConsoleRequest) -> Response:
    form = request.form
    walk = await _walk(request, form)
    ran, typed = None, None
    match form.get("do"):
        case "run":
            typed = _arguments(walk.operation, form)
            ran = await _run(request, walk, typed, form.get("simulate"))
            if _advance(walk, ran):
                typed = None
        case "skip":
            walk.position += 1
        case "choose":
            walk.scenario = None
            walk.chosen = BY_NAME.get(form.get("choice"), OPERATIONS[0])
    return await _render(request, walk, ran, typed)


async def _walk(request: ConsoleRequest, form: Form) -> ScenarioProgress:
    clients = await request.desk.clients.all(request.context)
    client = next((each for each in clients if each.client_id == form.get("client")), None)
    if client is None:
        raise Problem("not_found", "There is no such client.")
    scenario = scenarios().get(form.get("scenario"))
    position = form.get("position")
    return ScenarioProgress(
        client,
        scenario,
        int(position) if position.isdecimal() and len(position) <= 3 else 0,
        BY_NAME.get(form.get("operation"), OPERATIONS[0]),
        load_state(form.get("state")),
    )


def _arguments(operation: Operation, form: Form) -> dict[str, Value]:
    """The typed arguments by name. Empty fields are not sent; the doors validate the rest."""
    arguments: dict[str, Value] = {}
    for name, schema in sorted(_properties(operation).items(), key=lambda each: each[0] == _TOKEN):
        text = form.get(f"arg.{name}")
        if text:
            number = schema.get("type") == "integer" and text.isdecimal() and len(text) <= _MAX_NUMBER_LENGTH
            arguments[name] = int(text) if number else text
    return arguments


async def _run(
    request: ConsoleRequest, walk: ScenarioProgress, arguments: dict[str, Value], simulate: str
) -> StepResult:
    operation, view = walk.operation, request.services[AgentView]
    code = simulate if simulate in SIMULATED else None
    trace = f"00-{request.context.request_id}-{secrets.token_hex(8)}-01"
    token = await view.admit(request.context, walk.client, operation, arguments)

    async def send(sent: SentMessage) -> Exchange:
        return await exchange(request.http.app.state.gateway, view.public_url, token, sent)

    titles, number = ("REST", "MCP"), walk.position + 1
    committing = commits(walk.client, operation, arguments)
    if not committing or walk.client.grant == "agent":
        abouts, again = (_TWICE, None) if committing else (_BOTH_DOORS, code)
        left = await send(rest_request(operation, arguments, trace=trace, simulate=code))
        right = await send(mcp_request(operation, arguments, trace=trace, number=number, simulate=again))
    else:
        titles, abouts = ("REST", N_("REST, sent again")), _TWICE_BY_KEY
        key = secrets.token_hex(16)
        left = await send(rest_request(operation, arguments, trace=trace, simulate=code, key=key))
        right = await send(rest_request(operation, arguments, trace=trace, key=key))
    return StepResult(operation, arguments, code, left, right, titles, abouts)


def _advance(walk: ScenarioProgress, ran: StepResult) -> bool:
    """Stores what the answer tells and moves to the next step. A failed step is repeated."""
    walk.state.learn(ran.operation, ran.arguments, ran.answer)
    step = walk.step
    if step is None:
        return not ran.refused
    walk.state.outcomes[walk.position] = ran.left.status
    if ran.refused != (step.refused and ran.simulate == step.simulate):
        return False
    walk.position += 1
    if ran.abouts == _TWICE_BY_KEY and walk.step is not None and walk.step.phase == "confirm":
        walk.position += 1  # executed without a challenge: nothing to confirm
    return True


async def _render(
    request: ConsoleRequest,
    walk: ScenarioProgress | None = None,
    ran: StepResult | None = None,
    typed: dict[str, Value] | None = None,
) -> Response:
    view = request.services[AgentView]
    sandbox = await view.is_sandbox(request.context)
    shown: dict[str, Any] = {  # values of the template
        "clients": await request.desk.clients.all(request.context),
        "scenarios": scenarios().values(),
        "operations": OPERATIONS,
        "sandbox": sandbox,
        "simulated": SIMULATED if sandbox else {},
        "walk": walk,
        "ran": None,
        "next": None,
    }
    if ran is not None:
        resent = ran.abouts != _BOTH_DOORS
        shown["ran"] = {
            "operation": ran.operation,
            "simulate": ran.simulate,
            "panes": panes(ran.left, ran.right, view.public_url, _both(ran.titles), _both(ran.abouts)),
            "narration": narration.after(ran.operation, ran.answer, resent=resent),
        }
    if walk is not None and (walk.scenario is None or walk.step is not None):
        today = request.context.now.date()
        values = _suggested(walk, request.staff.practice_slug == _DEMO, today) if typed is None else typed
        kind = "commit" if commits(walk.client, walk.operation, values) else walk.operation.kind
        shown["next"] = {
            "kind": kind,
            "again": typed is not None,
            "confirming": _TOKEN in values,
            "known": narration.before(walk.operation, confirming=_TOKEN in values),
            "fields": _fields(walk, values, sandbox=sandbox),
            "simulate": walk.step.simulate if walk.step is not None else None,
            "blocked": _(_ONLY_SANDBOX) if kind == "commit" and not sandbox else None,
        }
    return request.render("agent_view/page.html", title=_("Agent's view"), **shown)


def _suggested(walk: ScenarioProgress, demo: bool, today: date) -> dict[str, Value]:
    """The initial values: the challenged ones for a confirmation, else the step's own and known ones."""
    step, state = walk.step, walk.state
    confirming = step is None or step.phase == "confirm"
    if confirming and state.pending is not None and state.pending[0] == walk.operation.name:
        return dict(state.pending[1])
    values: dict[str, Value] = {
        name: state.known[name][0].value for name in _properties(walk.operation) if state.known.get(name)
    }
    if step is not None:
        given = {**step.given, **(step.of_demo if demo else {})}
        values |= {n: (today + v).isoformat() if isinstance(v, timedelta) else v for n, v in given.items()}
    return values


def _fields(walk: ScenarioProgress, values: Mapping[str, Value], *, sandbox: bool) -> list[Field]:
    """The fields that a step needs, or all fields of an operation chosen freely."""
    required = plain_schema(walk.operation.input).get("required", [])
    fields = []
    for name, schema in _properties(walk.operation).items():
        wanted = name in required or name in values if walk.scenario is not None else name != _TOKEN or sandbox
        if wanted:
            value = str(values.get(name, ""))
            choices = walk.state.known.get(name, [])
            offered = len(choices) > 1 and value in {str(choice.value) for choice in choices}
            hint = schema.get("description", "")
            fields.append(Field(name, value, choices if offered else [], name in required, hint))
    return fields


def _both(texts: tuple[str, str]) -> tuple[str, str]:
    return _(texts[0]), _(texts[1])


def _properties(operation: Operation) -> Mapping[str, Schema]:
    return plain_schema(operation.input).get("properties", {})


NAVIGATION = {"Agents": (NavItem(PATH, N_("Agent's view"), "agent", "admin"),)}
SEARCH_LINKS = ((PATH, N_("See what an agent sees")),)
PAGES = (
    Page("GET", PATH, _render, role="admin"),
    Page("POST", PATH, _step_page, role="admin"),
)
