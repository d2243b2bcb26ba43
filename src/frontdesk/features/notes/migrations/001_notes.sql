-- What the desk should know of a patient or an appointment. No event, feed or export has it, and
-- doors only what is for agents. Patients and appointments may be on a FHIR server, so nothing is referenced.
CREATE TABLE desk_note (
    practice_id    bigint NOT NULL REFERENCES practice,
    patient_id     text NOT NULL,
    note_id        text NOT NULL,
    appointment_id text,  -- null: about the patient
    kind           text NOT NULL CHECK (kind IN ('interpreter', 'mobility', 'reason', 'other')),
    text           text NOT NULL CHECK (length(text) <= 500),
    for_agents     boolean NOT NULL DEFAULT false,  -- whether clients with the scope notes:read may read it
    written_by     text NOT NULL,
    written_at     timestamptz NOT NULL,
    PRIMARY KEY (practice_id, patient_id, note_id)
);
ALTER TABLE desk_note ENABLE ROW LEVEL SECURITY;
ALTER TABLE desk_note FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON desk_note USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, DELETE ON desk_note TO frontdesk_service;
