-- Identifiers that a client gave to an appointment or a patient over FHIR. One that belongs to a write in progress counts
-- once the write's intent is consumed; a settled one counts always.
CREATE TABLE external_identifier (
    practice_id bigint NOT NULL REFERENCES practice,
    client_id   text NOT NULL,
    kind        text NOT NULL,
    system      text NOT NULL,
    value       text NOT NULL,
    intent_id   bytea,
    subject     text,  -- null until a new record has its id
    settled     boolean NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (practice_id, client_id, kind, system, value)
);
CREATE INDEX external_identifier_subject ON external_identifier (practice_id, subject);
CREATE INDEX external_identifier_unsettled ON external_identifier (practice_id, client_id, created_at) WHERE NOT settled;
ALTER TABLE external_identifier ENABLE ROW LEVEL SECURITY;
ALTER TABLE external_identifier FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON external_identifier USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON external_identifier TO frontdesk_service;
