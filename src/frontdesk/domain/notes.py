"""Notes of the desk on a patient or an appointment, as they are given to clients."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

NoteKind = Literal["interpreter", "mobility", "reason", "other"]


@dataclass(frozen=True, slots=True)
class SharedNote:
    """A note that staff have marked for agents."""

    kind: NoteKind
    text: str
    appointment_id: str | None  # None: about the patient
    written_at: datetime
