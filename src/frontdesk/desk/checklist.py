"""The set-up checklist: which steps from an empty practice to its first booking are done."""

from collections.abc import Mapping
from dataclasses import dataclass

from frontdesk.desk.context import ActionContext
from frontdesk.domain.directory import Directory
from frontdesk.store.database import Database
from frontdesk.store.directories import load_directory

# Request counts expire, audit records do not. A client that has booked has also searched.
_STATE = """
SELECT (SELECT count(*) FROM client WHERE practice_id = $1 AND NOT disabled) AS clients,
       (SELECT min(client_id) FROM client WHERE practice_id = $1 AND NOT disabled) AS client_id,
       EXISTS (SELECT FROM client_usage WHERE practice_id = $1) AS called,
       EXISTS (SELECT FROM request_count WHERE practice_id = $1 AND minutes = 60 AND status = 200
               AND operation IN ('search_slots', 'find_first_available')) AS searched,
       EXISTS (SELECT FROM appointment_trail t
               JOIN audit_record r ON r.practice_id = t.practice_id AND r.record_id = t.record_id
               WHERE t.practice_id = $1 AND r.operation = 'book_appointment' AND r.outcome = 'executed')
       OR EXISTS (SELECT FROM request_count WHERE practice_id = $1 AND minutes = 60
                  AND operation = 'book_appointment' AND status = 201) AS booked
"""


@dataclass(frozen=True, slots=True)
class Progress:
    system: str
    locations: int
    providers: int
    visit_types: int
    providers_with_hours: int
    clients: int
    client_id: str | None  # of an enabled client
    called: bool  # with a valid token
    searched: bool
    booked: bool
    example: Mapping[str, int] | None  # ids for a search

    @property
    def has_directory(self) -> bool:
        return bool(self.locations and self.providers and self.visit_types)

    @property
    def has_hours(self) -> bool:
        """Whether a provider has hours. Always true with a FHIR server, which keeps them itself."""
        return self.system == "fhir" or self.providers_with_hours > 0

    @property
    def done(self) -> tuple[bool, ...]:
        """Whether each step is done, in order."""
        called, searched = self.called or self.booked, self.searched or self.booked
        return (self.has_directory, self.has_hours, self.clients > 0, called, searched, self.booked)


@dataclass(frozen=True, slots=True)
class Checklist:
    database: Database

    async def progress(self, context: ActionContext) -> Progress:
        context.require("admin")
        directory = (await load_directory(self.database, context.practice_id)).directory
        async with self.database.transaction(context.practice_id) as connection:
            row = await connection.fetchrow(_STATE, context.practice_id)
        assert row is not None
        providers = [provider for provider in directory.providers.values() if provider.active]
        return Progress(
            system=directory.practice.scheduling_system["kind"],
            locations=sum(location.active for location in directory.locations.values()),
            providers=len(providers),
            visit_types=sum(visit_type.active for visit_type in directory.visit_types.values()),
            providers_with_hours=sum(bool(provider.hours) for provider in providers),
            example=_example(directory),
            **row,
        )


def _example(directory: Directory) -> dict[str, int] | None:
    for provider in directory.providers.values():
        for visit_type in directory.visit_types.values():
            for procedure in visit_type.procedures:
                offered = provider.active and visit_type.active and procedure.active
                if offered and provider.hours and provider.performs(procedure.id):
                    return {
                        "providerId": provider.id,
                        "locationId": provider.hours[0].location_id,
                        "visitTypeId": visit_type.id,
                        "procedureId": procedure.id,
                    }
    return None
