"""Scenarios of the agent's view: calls in the order in which an agent makes them, with suggested values.

Suggested patients exist in the demo practice only; elsewhere the fields are left empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

from frontdesk.console.language import gettext as _
from frontdesk.demo.practice import ADA
from frontdesk.features.agent_view.state import Value
from frontdesk.texts import N_

_ADA = {"firstName": ADA.first_name, "lastName": ADA.last_name, "phone": ADA.phone, "dob": ADA.dob.isoformat()}
_UNKNOWN = {"firstName": "Mary", "lastName": "Somerville", "phone": "+1 555 010 0180", "dob": "1980-12-26"}


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    operation: str
    heading: str
    given: Mapping[str, Value | timedelta] = field(default_factory=dict)  # a timedelta is a date relative to today
    of_demo: Mapping[str, Value | timedelta] = field(default_factory=dict)  # like `given`, for the demo practice only
    phase: Literal["call", "confirm"] = "call"
    refused: bool = False  # the step is meant to fail
    simulate: str | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    key: str
    name: str
    description: str
    steps: tuple[ScenarioStep, ...]


_WHO = ScenarioStep("match_patient", N_("Who is calling?"), of_demo=_ADA)
_VISIT_TYPE = ScenarioStep("list_visit_types", N_("What for?"), of_demo={"name": "follow-up"})
_PROCEDURE = ScenarioStep("list_procedures", N_("What exactly?"))
_READ = ScenarioStep("get_appointment", N_("Read what was booked"))
_CANCELLING = (
    ScenarioStep("cancel_appointment", N_("Propose to cancel it again"), {"reason": "Shown in the agent's view"}),
    ScenarioStep("cancel_appointment", N_("Cancel it, after a clear yes"), phase="confirm"),
)
_BOOKING = (
    ScenarioStep("get_slot", N_("Is that time still free?")),
    ScenarioStep("book_appointment", N_("Propose the booking")),
    ScenarioStep("book_appointment", N_("Book it, after a clear yes"), phase="confirm"),
    _READ,
    *_CANCELLING,
)

SCENARIOS: Mapping[str, Scenario] = {
    scenario.key: scenario
    for scenario in (
        Scenario(
            "book",
            N_("Book with a certain doctor"),
            N_(
                "The whole call in the order agents are taught: who, where, with whom, what for, when, read back, book."
            ),
            (
                ScenarioStep("get_capabilities", N_("What may I do here?")),
                _WHO,
                ScenarioStep("list_locations", N_("Where?"), of_demo={"name": "Downtown"}),
                ScenarioStep("list_providers", N_("With whom?"), of_demo={"name": "Bob Chen"}),
                _VISIT_TYPE,
                _PROCEDURE,
                ScenarioStep(
                    "search_slots", N_("When?"), {"from": timedelta(days=1), "to": timedelta(days=14), "limit": 5}
                ),
                *_BOOKING,
            ),
        ),
        Scenario(
            "soonest",
            N_("Book as soon as possible"),
            N_("Any doctor, any place, the earliest time: one search over everything."),
            (
                _WHO,
                _VISIT_TYPE,
                _PROCEDURE,
                ScenarioStep("find_first_available", N_("The earliest times")),
                *_BOOKING,
            ),
        ),
        Scenario(
            "change",
            N_("Move or cancel an appointment"),
            N_("Finds what the caller has booked, moves it to another time, then cancels it. Book one first."),
            (
                _WHO,
                ScenarioStep("list_appointments", N_("What has the caller booked?"), {"from": timedelta(days=0)}),
                _READ,
                ScenarioStep("find_first_available", N_("Other times"), {"from": timedelta(days=3)}),
                ScenarioStep("reschedule_appointment", N_("Propose to move it")),
                ScenarioStep("reschedule_appointment", N_("Move it, after a clear yes"), phase="confirm"),
                *_CANCELLING,
            ),
        ),
        Scenario(
            "new",
            N_("A caller who is not on file"),
            N_("No patient matches, so the caller is asked for the spelling and then put on file."),
            (
                ScenarioStep("match_patient", N_("Who is calling?"), _UNKNOWN, refused=True),
                ScenarioStep("create_patient", N_("Propose a new patient"), _UNKNOWN),
                ScenarioStep("create_patient", N_("Put them on file, after a clear yes"), phase="confirm"),
                ScenarioStep("get_patient", N_("Read the new record")),
            ),
        ),
        Scenario(
            "errors",
            N_("When something is wrong"),
            N_("Error codes for invalid input, unknown records and a taken slot. They are the same at every door."),
            (
                ScenarioStep(
                    "match_patient",
                    N_("Fields that cannot be right"),
                    {"firstName": "4da", "lastName": " ", "phone": "12", "dob": "10/12/1985"},
                    refused=True,
                ),
                ScenarioStep("get_provider", N_("Unknown record"), {"providerId": 999999}, refused=True),
                ScenarioStep("get_practice", N_("System unavailable"), simulate="upstream_unavailable", refused=True),
                ScenarioStep("get_practice", N_("Rate limit exceeded"), simulate="rate_limited", refused=True),
            ),
        ),
    )
}


def scenarios() -> dict[str, Scenario]:
    """All scenarios by key, in the language of the request."""
    return {
        key: replace(
            scenario,
            name=_(scenario.name),
            description=_(scenario.description),
            steps=tuple(replace(step, heading=_(step.heading)) for step in scenario.steps),
        )
        for key, scenario in SCENARIOS.items()
    }
