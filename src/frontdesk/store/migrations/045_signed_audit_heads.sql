-- Heads of the audit trails, signed with a key that the database does not have. Append-only for the service.
CREATE TABLE audit_signed_head (
    practice_id bigint NOT NULL,
    sequence    bigint NOT NULL,
    hash        bytea NOT NULL,  -- of the seal with this sequence
    signed_at   timestamptz NOT NULL,
    key_id      text NOT NULL,
    signature   bytea NOT NULL,
    PRIMARY KEY (practice_id, sequence)
);
ALTER TABLE audit_signed_head ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_signed_head FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit_signed_head USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT ON audit_signed_head TO frontdesk_service;
