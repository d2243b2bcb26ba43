from typing import Annotated, Literal

from pydantic import Field

from frontdesk.domain.local_time import iso_utc
from frontdesk.operations._fields import Input
from frontdesk.operations._operation import PRACTICE, Context, Operation, unpublished
from frontdesk.operations._records import Record, UtcTime


class Output(Record):
    id: str
    name: str
    time_zone: str
    phone: str | None = None
    scheduling_system: Literal["native", "fhir"]
    supports: Annotated[list[str], Field(description="Operations that the practice's scheduling system can perform.")]


class Imported(Record):
    imported_at: UtcTime


async def run(context: Context, _given: Input) -> dict[str, object]:
    """Describes the practice that this token belongs to: name, time zone, phone, and the operations that its scheduling
    system supports. Call it to speak in the practice's name, or when an operation answers capability_not_supported.
    There is exactly one practice per token; it is never chosen by the caller."""
    practice = (await context.system.directory()).practice
    body: dict[str, object] = {
        "id": practice.slug,
        "name": practice.name,
        "timeZone": practice.time_zone,
        "schedulingSystem": context.system.kind,
        "supports": sorted(context.supports),
    }
    if practice.phone is not None:
        body["phone"] = practice.phone
    return body


OPERATION = Operation(
    name="get_practice",
    title="Describe the practice",
    group=PRACTICE,
    path="/practice",
    scope="practices:read",
    depends_on="directory",
    input=Input,
    output=Output,
    run=run,
    example_answer={
        "id": "harbor-family",
        "name": "Harbor Family Medicine",
        "timeZone": "America/New_York",
        "phone": "+1 555 0100",
        "schedulingSystem": "native",
        "supports": ["book_appointment", "get_practice", "get_slot", "match_patient", "search_slots"],
    },
)


async def run_imported(context: Context, _given: Input) -> dict[str, object]:
    """Reads when the practice file was last imported."""
    imported_at = (await context.system.directory()).imported_at
    assert imported_at is not None
    return {"importedAt": iso_utc(imported_at)}


# For the FHIR door, whose directory shows when it last changed.
PRACTICE_IMPORTED = unpublished(OPERATION, input=Input, output=Imported, run=run_imported)
