-- Public keys with which a client signs its requests for tokens (RFC 7523): a key set, or the URL of one.
ALTER TABLE client ADD COLUMN jwks jsonb, ADD COLUMN jwks_url text, ADD CHECK (jwks IS NULL OR jwks_url IS NULL);

-- Assertions that were used for a token, by the hash of their client and jti. Housekeeping deletes expired ones.
CREATE TABLE used_assertion (
    subject    bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX used_assertion_expiry ON used_assertion (expires_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON used_assertion TO frontdesk_service;
