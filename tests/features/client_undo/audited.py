from tests.support.audited_features import Audited

AUDITED = Audited(
    quiet_actions={
        "ClientUndoStore.find",
        "ClientUndoStore.finish",
        "ClientUndoStore.of_client",
        "ClientUndoStore.one",
        "ClientUndoStore.pending",
        "ClientUndos.of_client",
        "FreeTimes.obstacle",
    },
    recorded_by={"ClientUndos.start": "store.start", "ClientUndos.work": "_execute"},
    forms={
        "/clients/{client_id}/undo": {"from": "2026-11-15", "do": "start"},
        "/clients/{client_id}/undo/{undo_id}": {},
    },
)
