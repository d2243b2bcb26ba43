-- What a client did since a time, taken back by staff. What became of an appointment is read from the audit trail and from the
-- calendar, which may be on a FHIR server, so nothing is referenced.
CREATE TABLE client_undo (
    practice_id bigint NOT NULL REFERENCES practice,
    undo_id     text NOT NULL,
    client_id   text NOT NULL,
    since       timestamptz NOT NULL,
    started_by  text NOT NULL,
    started_at  timestamptz NOT NULL,
    request_id  text NOT NULL,  -- of all changes, whichever requests make them: by it they are told from those of others
    PRIMARY KEY (practice_id, undo_id)
);
CREATE INDEX client_undo_client ON client_undo (practice_id, client_id, started_at);

-- An appointment that the client has changed, and what takes that back.
CREATE TABLE client_undo_appointment (
    practice_id    bigint NOT NULL,
    undo_id        text NOT NULL,
    appointment_id text NOT NULL,
    patient_id     text NOT NULL,
    position       integer NOT NULL,  -- what the client changed last is taken back first
    operations     text[] NOT NULL,  -- of the client
    last_record    bigint NOT NULL,  -- the audit record of its last one
    updated_at     timestamptz,  -- when the calendar says that the appointment was last changed; null: it is gone
    changes        text[] NOT NULL,  -- to make, in this order
    done           integer NOT NULL DEFAULT 0,  -- so many of them are made
    provider_id    integer,  -- this and the next five: where it is afterwards, or was; null: it is gone
    location_id    integer,
    visit_type_id  integer,
    procedure_id   integer,
    starts_at      timestamptz,
    ends_at        timestamptz,
    failure        text,  -- why it was not taken back
    put_off        boolean NOT NULL DEFAULT false,  -- its time was taken: tried again after all others
    PRIMARY KEY (practice_id, undo_id, appointment_id),
    FOREIGN KEY (practice_id, undo_id) REFERENCES client_undo
);

ALTER TABLE client_undo ENABLE ROW LEVEL SECURITY;
ALTER TABLE client_undo FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON client_undo USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT ON client_undo TO frontdesk_service;
ALTER TABLE client_undo_appointment ENABLE ROW LEVEL SECURITY;
ALTER TABLE client_undo_appointment FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON client_undo_appointment USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE ON client_undo_appointment TO frontdesk_service;
