-- Writes that must execute exactly once, and the identifiers that clients give to what they write.

-- An agent's challenge, or an integration's Idempotency-Key. The id is the SHA-256 of the token or key, which are not stored.
CREATE TABLE intent (
    practice_id     bigint NOT NULL,
    intent_id       bytea NOT NULL,
    client_id       text NOT NULL,
    operation       text NOT NULL,
    fingerprint     bytea NOT NULL,
    state           text NOT NULL CHECK (state IN ('challenged', 'executing', 'consumed')),
    agreed          boolean NOT NULL DEFAULT false,  -- the user of the host said yes while their call waits
    challenge       text,  -- what is read back and when, as JSON, until it is consumed; null for an Idempotency-Key
    approval        text CHECK (approval IN ('pending', 'approved', 'refused')),  -- null: staff need not approve it
    decided_by      text,  -- the staff member who approved or refused it
    proposal        jsonb,  -- what they see of it, until they have decided
    executing_until timestamptz,  -- when the lease ends; null while executing: only the other system knows the outcome
    result          jsonb,
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,  -- after this a challenge can no longer be confirmed
    keep_until      timestamptz NOT NULL,  -- after this the row may be removed
    PRIMARY KEY (practice_id, intent_id),
    CHECK ((state = 'consumed') = (result IS NOT NULL))
);
CREATE INDEX intent_keep_until ON intent (practice_id, keep_until);
CREATE INDEX intent_pending ON intent (practice_id, client_id) WHERE approval = 'pending';

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
CREATE INDEX external_identifier_unsettled ON external_identifier (practice_id, created_at) WHERE NOT settled;

GRANT SELECT, INSERT, UPDATE, DELETE ON intent, external_identifier TO frontdesk_service;
