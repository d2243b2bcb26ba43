-- Links that a practice sends to patients, one per appointment; a new one replaces the one before. They work until the
-- appointment starts. Appointments may be on a FHIR server, so nothing is referenced.
CREATE TABLE patient_link (
    practice_id    bigint NOT NULL REFERENCES practice,
    appointment_id text NOT NULL,
    link_id        text NOT NULL,     -- the actor in audit records
    digest         bytea NOT NULL,    -- SHA-256 of the secret in the link
    made_by        text NOT NULL,
    made_at        timestamptz NOT NULL,
    wrong_dates    integer NOT NULL DEFAULT 0,  -- of birth; too many end the link
    PRIMARY KEY (practice_id, appointment_id),
    UNIQUE (practice_id, digest)
);
ALTER TABLE patient_link ENABLE ROW LEVEL SECURITY;
ALTER TABLE patient_link FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON patient_link USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON patient_link TO frontdesk_service;
