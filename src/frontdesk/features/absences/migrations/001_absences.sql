-- A provider who is away at short notice: the time is blocked, and every appointment in it is moved, cancelled or left.
-- What became of an appointment is read from the calendar, which may be on a FHIR server, so nothing is referenced.
CREATE TABLE provider_absence (
    practice_id bigint NOT NULL REFERENCES practice,
    absence_id  text NOT NULL,
    provider_id integer NOT NULL,
    starts      timestamp NOT NULL,  -- local time, like the block
    ends        timestamp NOT NULL,
    reason      text,
    started_by  text NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz,  -- undone: the provider is available again
    PRIMARY KEY (practice_id, absence_id)
);
CREATE INDEX provider_absence_current ON provider_absence (practice_id, ends) WHERE ended_at IS NULL;

-- An appointment in the time of an absence, as it was before.
CREATE TABLE absence_appointment (
    practice_id    bigint NOT NULL,
    absence_id     text NOT NULL,
    appointment_id text NOT NULL,
    patient_id     text NOT NULL,
    location_id    integer NOT NULL,
    visit_type_id  integer NOT NULL,
    procedure_id   integer NOT NULL,
    starts_at      timestamptz NOT NULL,
    ends_at        timestamptz NOT NULL,
    choice         text CHECK (choice IN ('move', 'cancel', 'back', 'leave')),  -- all but leave: not executed yet
    slot_id        text,  -- where to move it
    request_id     text,  -- of the request that made the choice: audit records carry it, and the idempotency key contains it
    failure        text,  -- why the last choice was not executed
    outcome        text,  -- the place that the last choice gave it
    announced_place text,  -- the place that the patient was told
    called_by      text,
    called_at      timestamptz,
    PRIMARY KEY (practice_id, absence_id, appointment_id),
    FOREIGN KEY (practice_id, absence_id) REFERENCES provider_absence
);

ALTER TABLE provider_absence ENABLE ROW LEVEL SECURITY;
ALTER TABLE provider_absence FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON provider_absence USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE ON provider_absence TO frontdesk_service;
ALTER TABLE absence_appointment ENABLE ROW LEVEL SECURITY;
ALTER TABLE absence_appointment FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON absence_appointment USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE ON absence_appointment TO frontdesk_service;
