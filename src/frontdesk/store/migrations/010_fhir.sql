-- Practices whose calendar lives in another system. Their patients and appointments stay there; stored here are the ids
-- that we gave them, and every write that is not settled yet.

-- The id that we gave to a record of the other system; it never changes. For an appointment also what only we know.
CREATE TABLE upstream_record (
    practice_id             bigint NOT NULL REFERENCES practice,
    local_id                text NOT NULL,  -- pat_... or apt_...
    reference               text NOT NULL,  -- such as Patient/123
    number                  integer CHECK (number > 0),  -- of a patient
    attendance_confirmed_at timestamptz,
    cancelled_at            timestamptz,
    rescheduled_from        timestamptz,
    booked_by               text,  -- this and the next two: of an appointment that a client with a limit has booked
    booked_for              text,  -- our id of the patient
    starts_at               timestamptz,  -- as we last set it
    PRIMARY KEY (practice_id, local_id),
    UNIQUE (practice_id, reference),
    UNIQUE (practice_id, number)
);
CREATE INDEX upstream_record_booked ON upstream_record (practice_id, booked_for) WHERE booked_for IS NOT NULL;

-- Which id of the directory a record of the other system stands for. A reference keeps its id; an id may get further
-- references, for example after a correction.
CREATE TABLE upstream_directory (
    practice_id bigint NOT NULL REFERENCES practice,
    kind        text NOT NULL CHECK (kind IN ('location', 'provider', 'visitType', 'procedure')),
    reference   text NOT NULL,
    local_id    integer NOT NULL CHECK (local_id > 0),
    PRIMARY KEY (practice_id, kind, reference)
);

-- A write to the other system, stored from before its first request until its outcome is known and everything it held
-- is released. Ids, references and times only; what it says about a patient is not stored.
CREATE TABLE upstream_write (
    practice_id bigint NOT NULL REFERENCES practice,
    write_id    text NOT NULL,
    intent_id   bytea NOT NULL,
    phase       text NOT NULL CHECK (phase IN ('executing', 'releasing')),
    change      text NOT NULL,
    data        jsonb NOT NULL,
    subject     text NOT NULL,  -- the patient or appointment: two writes of one subject never run at once
    kept_intent boolean NOT NULL,  -- if the write does not execute: a token's stays, a key's goes
    actor       text NOT NULL,
    operation   text NOT NULL,
    request_id  text NOT NULL,
    began_at    timestamptz NOT NULL,
    holder      text NOT NULL,  -- of the lease; empty: none
    due_at      timestamptz NOT NULL,  -- when the lease ends, or the next attempt is due
    attempts    integer NOT NULL,
    PRIMARY KEY (practice_id, write_id)
);
CREATE INDEX upstream_write_due ON upstream_write (practice_id, due_at);

-- What an operator has to correct about a practice's own system, by the kind of request that was refused.
CREATE TABLE upstream_misconfiguration (
    practice_id bigint NOT NULL REFERENCES practice,
    request     text NOT NULL,
    reason      text NOT NULL,
    since       timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    PRIMARY KEY (practice_id, request)
);

GRANT SELECT, INSERT, UPDATE ON upstream_record, upstream_directory TO frontdesk_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON upstream_write, upstream_misconfiguration TO frontdesk_service;
