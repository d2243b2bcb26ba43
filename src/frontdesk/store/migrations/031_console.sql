-- Staff who sign in to the console, looked up before the practice is known: by a sign-in link, a session or an identity
-- at an OpenID provider. Links and sessions are 256 random bits; only their SHA-256 is stored.

CREATE TABLE operator (
    operator_id   text PRIMARY KEY,
    practice_id   bigint NOT NULL REFERENCES practice,
    name          text NOT NULL,
    role          text NOT NULL CHECK (role IN ('staff', 'admin')),
    email         text UNIQUE CHECK (email = lower(email)),  -- matches an identity at its first sign-in
    oidc_issuer   text,
    oidc_subject  text,
    disabled      boolean NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL,
    signed_in_at  timestamptz,
    UNIQUE (oidc_issuer, oidc_subject),
    CHECK ((oidc_issuer IS NULL) = (oidc_subject IS NULL))
);
CREATE INDEX operator_practice ON operator (practice_id);

-- A used link stays until housekeeping deletes it, so that a second use can be told from a wrong guess.
CREATE TABLE operator_link (
    digest      bytea PRIMARY KEY,
    operator_id text NOT NULL REFERENCES operator,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    used_at     timestamptz
);
CREATE INDEX operator_link_operator ON operator_link (operator_id);
CREATE INDEX operator_link_expires ON operator_link (expires_at);

CREATE TABLE operator_session (
    digest       bytea PRIMARY KEY,
    operator_id  text NOT NULL REFERENCES operator,
    means        text NOT NULL CHECK (means IN ('link', 'oidc')),
    browser      text NOT NULL,  -- such as "Firefox on Windows": enough to recognize one's own
    created_at   timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);
CREATE INDEX operator_session_operator ON operator_session (operator_id);
CREATE INDEX operator_session_last_seen ON operator_session (last_seen_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON operator, operator_link, operator_session TO frontdesk_service;
