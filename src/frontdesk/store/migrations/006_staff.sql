-- Staff who sign in to the console, looked up before the practice is known: by a sign-in link, a session, a passkey or an
-- identity at an OpenID provider. Links and sessions are 256 random bits; only their SHA-256 is stored.

-- An e-mail address, and an identity at the provider, belong to one staff member of each practice, not of the whole
-- installation: otherwise an admin of one practice could claim the address of another practice's staff.
CREATE TABLE staff (
    staff_id     text PRIMARY KEY,
    practice_id  bigint NOT NULL REFERENCES practice,
    name         text NOT NULL,
    role         text NOT NULL CHECK (role IN ('staff', 'admin')),
    email        text CHECK (email = lower(email)),  -- matches an identity at its first sign-in
    oidc_issuer  text,
    oidc_subject text,
    disabled     boolean NOT NULL DEFAULT false,
    language     text CHECK (length(language) <= 35),  -- of the console; null: as the browser prefers
    calendar     jsonb,  -- density, colours, and the providers and visit types shown; null: the defaults
    created_at   timestamptz NOT NULL,
    signed_in_at timestamptz,
    UNIQUE (practice_id, email),
    UNIQUE (practice_id, oidc_issuer, oidc_subject),
    CHECK ((oidc_issuer IS NULL) = (oidc_subject IS NULL))
);
CREATE INDEX staff_practice ON staff (practice_id);
CREATE INDEX staff_email ON staff (email);
CREATE INDEX staff_identity ON staff (oidc_issuer, oidc_subject);

-- A used link stays until housekeeping deletes it, so that a second use can be told from a wrong guess.
CREATE TABLE staff_link (
    digest     bytea PRIMARY KEY,
    staff_id   text NOT NULL REFERENCES staff,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX staff_link_staff ON staff_link (staff_id);
CREATE INDEX staff_link_expires ON staff_link (expires_at);

CREATE TABLE staff_session (
    digest       bytea PRIMARY KEY,
    staff_id     text NOT NULL REFERENCES staff,
    means        text NOT NULL CHECK (means IN ('link', 'oidc', 'passkey')),
    browser      text NOT NULL,  -- such as "Firefox on Windows": enough to recognize one's own
    created_at   timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    desk         bytea,  -- SHA-256 of a random token in the browser that the session was opened in
    locked_at    timestamptz,
    wrong_pins   integer NOT NULL DEFAULT 0
);
CREATE INDEX staff_session_staff ON staff_session (staff_id);
CREATE INDEX staff_session_last_seen ON staff_session (last_seen_at);
CREATE INDEX staff_session_desk ON staff_session (desk) WHERE desk IS NOT NULL;

-- A short PIN unlocks a session that its owner has opened in the same browser; it is never a first factor.
CREATE TABLE staff_pin (
    staff_id           text PRIMARY KEY REFERENCES staff,
    sealed             bytea NOT NULL,  -- salt and scrypt hash, encrypted with the operator's secret key
    lock_after_minutes integer NOT NULL CHECK (lock_after_minutes BETWEEN 2 AND 30),
    chosen_at          timestamptz NOT NULL  -- when the first was set of those that were changed with the present one
);

-- Passkeys of staff (WebAuthn), looked up by their credential id.
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

-- Challenges of passkeys that have been answered. Only the SHA-256 is stored, until the challenge has expired.
CREATE TABLE used_challenge (
    digest     bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX used_challenge_expires ON used_challenge (expires_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON staff, staff_link, staff_session, staff_pin, staff_passkey, used_challenge
    TO frontdesk_service;
