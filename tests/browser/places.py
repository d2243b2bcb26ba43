"""Every page of the console that has an address, and how to get to one of each kind."""

from datetime import timedelta
from urllib.parse import urlencode

from tests.browser.callers import CHEN, CONSULTATION, DOWNTOWN, FIRST_VISIT, Agent

PLACES = (
    "account",
    "agent's view",
    "appointment",
    "arrivals",
    "assistants",
    "audit",
    "away",
    "blocked time",
    "booking: at a time",
    "booking: confirm",
    "booking: when",
    "booking: who",
    "calendar of a day",
    "calendar of a week",
    "calendar of another zone",
    "client",
    "clients",
    "confirmations",
    "consent",
    "day sheet",
    "move: at a time",
    "move: confirm",
    "move: when",
    "new client",
    "new patient",
    "patient",
    "patient: change",
    "patients",
    "pin",
    "practice file",
    "practice: closures",
    "practice: holidays",
    "practice: location",
    "practice: locations",
    "practice: procedure",
    "practice: provider",
    "practice: providers",
    "practice: rules",
    "practice: visit types",
    "reports",
    "scheduling system",
    "set-up",
    "staff",
    "usage",
    "walk-in",
    "webhooks",
)


def addresses(agent: Agent) -> dict[str, str]:
    """Paths below /console, by name. Books one appointment, so that there is one to look at."""
    patient = agent.patient("Gallery")
    slots = agent.slots()
    appointment = agent.book(patient, slots[0])
    free = {"slot": slots[-1].id}
    wanted = {"visit": f"{FIRST_VISIT}-{CONSULTATION}", "provider": CHEN, "location": DOWNTOWN}
    day = {"date": slots[0].day, "location": DOWNTOWN}
    tuesday = slots[0].start.date() + timedelta(days=(1 - slots[0].start.weekday()) % 7)
    return {
        "account": "/account",
        "agent's view": "/agent",
        "appointment": f"/appointments/{appointment}",
        "arrivals": "/arrivals",
        "assistants": "/assistants",
        "audit": "/audit?operation=create_patient",
        "away": f"/away?{urlencode({'provider': CHEN, 'date': slots[0].day})}",
        "blocked time": "/blocks",
        "booking: at a time": f"/book/at?{urlencode({**day, 'provider': CHEN, 'time': slots[-1].time})}",
        "booking: confirm": f"/book/{patient}/confirm?{urlencode(free)}",
        "booking: when": f"/book/{patient}?{urlencode(wanted)}",
        "booking: who": "/book",
        "calendar of a day": f"/calendar?{urlencode(day)}",
        "calendar of a week": f"/calendar?{urlencode({**day, 'view': 'week'})}",
        "calendar of another zone": f"/calendar?date={tuesday}&location=3",
        "client": f"/clients/{agent.client_id}",
        "clients": "/clients",
        "confirmations": "/confirmations",
        "consent": agent.consent(),
        "day sheet": f"/day-sheet?{urlencode(day)}",
        "move: at a time": f"/appointments/{appointment}/move/at?time={slots[3].time}",
        "move: confirm": f"/appointments/{appointment}/move/confirm?{urlencode(free)}",
        "move: when": f"/appointments/{appointment}/move",
        "new client": "/clients/new",
        "new patient": "/patients/new",
        "patient": f"/patients/{patient}",
        "patient: change": f"/patients/{patient}/edit",
        "patients": "/patients",
        "pin": "/pin",
        "practice file": "/practice",
        "practice: closures": "/practice/closures",
        "practice: holidays": "/practice/closures/holidays?country=US&region=MA",
        "practice: location": f"/practice/locations/edit?id={DOWNTOWN}",
        "practice: locations": "/practice/locations",
        "practice: procedure": f"/practice/visit-types/procedure?visit_type={FIRST_VISIT}&id={CONSULTATION}",
        "practice: provider": f"/practice/providers/edit?id={CHEN}",
        "practice: providers": "/practice/providers",
        "practice: rules": "/practice/rules",
        "practice: visit types": "/practice/visit-types",
        "reports": "/reports",
        "scheduling system": "/practice/system",
        "set-up": "/setup",
        "staff": "/staff",
        "usage": "/usage",
        "walk-in": "/walk-in",
        "webhooks": "/practice/webhooks",
    }
