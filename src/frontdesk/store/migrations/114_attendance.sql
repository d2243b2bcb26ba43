-- When a patient arrived and was called in. The state of the appointment says whether the patient is still here; undoing
-- the arrival deletes the row. Not columns of appointment: nodes of the previous release read its rows through functions.
CREATE TABLE appointment_attendance (
    practice_id    bigint NOT NULL,
    appointment_id text NOT NULL,
    arrived_at     timestamptz NOT NULL,
    called_at      timestamptz,  -- null: the patient waits
    PRIMARY KEY (practice_id, appointment_id),
    FOREIGN KEY (practice_id, appointment_id) REFERENCES appointment ON DELETE CASCADE
);
ALTER TABLE appointment_attendance ENABLE ROW LEVEL SECURITY;
ALTER TABLE appointment_attendance FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON appointment_attendance USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON appointment_attendance TO frontdesk_service;
