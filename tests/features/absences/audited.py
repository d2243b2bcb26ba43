"""Actions that leave no audit record of their own, and those of which another one, which they call, leaves it."""

QUIET_ACTIONS = {
    "AbsenceStore.covering",
    "AbsenceStore.current",
    "AbsenceStore.find",
    "AbsenceStore.finish",
    "AbsenceStore.pending",
    "Absences.current",
    "ProposedTimes.of",
}
RECORDED_BY = {
    "Absences.choose": "store.choose",
    "Absences.record_call": "store.record_call",
    "Absences.start": "store.start",
    "Absences.take_back": "store.take_back",
    "Absences.work": "_execute",
}
