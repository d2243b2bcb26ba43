"""What is left in a FHIR server that should not be is found."""

import asyncio
from typing import Any

from tests.proof.gate import Gate
from tests.proof.upstream import StoredUpstream


def appointment(number: int, status: str = "booked", **changes: Any) -> dict[str, Any]:
    actors = (f"Patient/{number}", "Practitioner/p10", "Location/house")
    return {
        "id": str(number),
        "status": status,
        "start": f"2026-11-20T09:{15 * number:02}:00Z",
        "end": f"2026-11-20T09:{15 * number + 15:02}:00Z",
        "slot": [{"reference": f"Slot/{number}"}],
        "serviceType": [{"coding": [{"system": "urn:frontdesk:procedure", "code": "101"}]}],
        "participant": [{"actor": {"reference": each}, "status": "needs-action"} for each in actors],
        **changes,
    }


def faults(*appointments: dict[str, Any], taken: tuple[str, ...], open_writes: int = 0) -> list[str]:
    ids = {f"Patient/{number}": f"pat_{number}" for number in range(5)}
    return list(StoredUpstream(ids, open_writes, list(appointments), [], dict.fromkeys(taken)).faults())


def test_what_is_left_over_or_taken_twice_is_found() -> None:
    one, two = appointment(1), appointment(2)
    assert faults(one, two, appointment(3, "cancelled"), taken=("Slot/1", "Slot/2")) == []
    assert faults(one, taken=("Slot/1", "Slot/2")) == ["Slot/2 is taken by nobody"]
    assert faults(one, two, taken=("Slot/1",)) == ["Slot/2 is free and booked"]
    assert faults(one, {**one, "id": "2"}, taken=("Slot/1",)) == [
        "two appointments have one slot",
        "Practitioner/p10 has two appointments at 2026-11-20T09:15:00Z",
        "Patient/1 has two appointments at 2026-11-20T09:15:00Z",
    ]
    assert faults(open_writes=1, taken=()) == ["1 writes are not settled"]


def test_appointments_are_read_as_rows() -> None:
    [row] = StoredUpstream({"Patient/1": "pat_1", "Appointment/1": "apt_1"}, 0, [appointment(1)], [], {}).appointments()
    assert (row["appointment_id"], row["patient_id"], row["provider_id"]) == ("apt_1", "pat_1", 10)
    assert (row["procedure_id"], row["status"]) == (101, "booked")


async def test_a_gate_closes_when_nobody_passes_any_more() -> None:
    gate, inside, leave = Gate(), asyncio.Event(), asyncio.Event()

    async def pass_through() -> None:
        async with gate.passing():
            inside.set()
            await leave.wait()

    async def close() -> str:
        async with gate.closed():
            return "closed"

    passing = asyncio.create_task(pass_through())
    await inside.wait()
    closing = asyncio.create_task(close())
    done, _ = await asyncio.wait({closing}, timeout=0)
    assert not done
    leave.set()
    assert await closing == "closed"
    await passing
    await pass_through()
