-- Passkeys of staff (WebAuthn), looked up by their credential id before the practice is known.
CREATE TABLE staff_passkey (
    passkey_id    text PRIMARY KEY,
    staff_id      text NOT NULL REFERENCES staff,
    credential_id bytea NOT NULL UNIQUE,
    public_key    bytea NOT NULL,   -- COSE
    sign_count    bigint NOT NULL,  -- 0: the authenticator does not count
    name          text NOT NULL,
    created_at    timestamptz NOT NULL,
    last_used_at  timestamptz
);
CREATE INDEX staff_passkey_staff ON staff_passkey (staff_id);

-- Challenges that have been answered. Only the SHA-256 is stored, until the challenge has expired.
CREATE TABLE used_challenge (
    digest     bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX used_challenge_expires ON used_challenge (expires_at);

ALTER TABLE staff_session DROP CONSTRAINT operator_session_means_check;
ALTER TABLE staff_session ADD CONSTRAINT staff_session_means CHECK (means IN ('link', 'oidc', 'passkey'));

GRANT SELECT, INSERT, UPDATE, DELETE ON staff_passkey, used_challenge TO frontdesk_service;
