from tests.support.audited_features import Audited

AUDITED = Audited(
    quiet_actions={
        "AbsenceStore.covering",
        "AbsenceStore.current",
        "AbsenceStore.find",
        "AbsenceStore.finish",
        "AbsenceStore.pending",
        "Absences.current",
        "ProposedTimes.of",
    },
    recorded_by={
        "Absences.choose": "store.choose",
        "Absences.record_call": "store.record_call",
        "Absences.start": "store.start",
        "Absences.take_back": "store.take_back",
        "Absences.work": "_execute",
    },
    forms={
        "/away": {"who": "provider-10", "from": "2026-12-01", "do": "start"},
        "/away/{absence_id}/apply": {"choice-apt": "leave"},
        "/away/{absence_id}/calls": {"appointment": "apt", "place": "cancelled", "called": "yes"},
        "/away/{absence_id}/undo": {"all": "yes"},
    },
)
