-- The audit trail. What the service may only append has no rights to change or delete.

-- Who did what to which record, and the outcome; never the content of the record.
CREATE TABLE audit_record (
    practice_id bigint NOT NULL,
    record_id   bigint GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL,
    actor       text NOT NULL,
    operation   text NOT NULL,
    outcome     text NOT NULL,
    subject_ids text[] NOT NULL,
    request_id  text NOT NULL,
    consent     text,  -- how the agreement to a write was given; null where nobody was asked
    challenge   bytea,  -- digest of the challenge that was agreed to, see agreed_challenge
    PRIMARY KEY (practice_id, record_id)
);

-- The challenges of executed writes: what was read back to the patient whom they are about. The audit record has the SHA-256
-- of the intent's id, which is the hash of the token, followed by the text of the challenge.
CREATE TABLE agreed_challenge (
    practice_id bigint NOT NULL,
    record_id   bigint NOT NULL,
    intent_id   bytea NOT NULL,
    challenge   text NOT NULL,
    patient_id  text,  -- null if the write is about no patient
    PRIMARY KEY (practice_id, record_id)
);
CREATE INDEX agreed_challenge_patient ON agreed_challenge (practice_id, patient_id, record_id);

-- Records that are not sealed yet. They commit with their write and a sealer links them later, so that the writers of a
-- practice do not wait for each other.
CREATE TABLE audit_unsealed (
    practice_id bigint NOT NULL,
    record_id   bigint NOT NULL,
    PRIMARY KEY (practice_id, record_id)
);

CREATE TABLE audit_seal (
    practice_id bigint NOT NULL,
    sequence    bigint NOT NULL,
    record_id   bigint NOT NULL,
    hash        bytea NOT NULL,  -- SHA-256 over the previous hash and the record
    PRIMARY KEY (practice_id, sequence),
    UNIQUE (practice_id, record_id)
);

CREATE TABLE audit_head (
    practice_id bigint PRIMARY KEY REFERENCES practice,
    sequence    bigint NOT NULL,
    hash        bytea NOT NULL
);

-- Heads of the audit trails, signed with a key that the database does not have.
CREATE TABLE audit_signed_head (
    practice_id bigint NOT NULL,
    sequence    bigint NOT NULL,
    hash        bytea NOT NULL,  -- of the seal with this sequence
    signed_at   timestamptz NOT NULL,
    key_id      text NOT NULL,
    signature   bytea NOT NULL,
    PRIMARY KEY (practice_id, sequence)
);

-- The audit records of changes to an appointment, and of attempts. Filled when records are sealed, so that no write
-- waits for it; a reader has to look at the unsealed records, too.
CREATE TABLE appointment_trail (
    practice_id    bigint NOT NULL,
    appointment_id text NOT NULL,
    record_id      bigint NOT NULL,
    PRIMARY KEY (practice_id, appointment_id, record_id)
);

-- The last check of a practice's audit trail, its progress and its report, shared by all nodes.
CREATE TABLE audit_check (
    practice_id bigint PRIMARY KEY REFERENCES practice,
    check_id    text NOT NULL,
    started_by  text NOT NULL,
    started_at  timestamptz NOT NULL,
    heard_at    timestamptz NOT NULL,  -- heartbeat of the node that runs it
    checked     bigint NOT NULL,
    expected    bigint NOT NULL,
    finished_at timestamptz,
    report      jsonb
);

GRANT SELECT, INSERT ON audit_record, agreed_challenge, audit_seal, audit_signed_head, appointment_trail TO frontdesk_service;
GRANT SELECT, INSERT, UPDATE ON audit_head, audit_check TO frontdesk_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON audit_unsealed TO frontdesk_service;
