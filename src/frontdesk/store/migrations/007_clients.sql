-- Clients and what they authenticate with, looked up before the practice is known.

CREATE TABLE client (
    client_id           text PRIMARY KEY,
    practice_id         bigint NOT NULL REFERENCES practice,
    name                text NOT NULL,
    grant_kind          text NOT NULL CHECK (grant_kind IN ('agent', 'integration')),
    scopes              text[] NOT NULL,
    per_minute          integer NOT NULL CHECK (per_minute > 0),
    quota               bigint NOT NULL CHECK (quota > 0),
    patients_per_hour   integer CHECK (patients_per_hour >= 0),  -- this and the next five are null: as the practice says
    patients_per_day    integer CHECK (patients_per_day >= 0),
    match_misses        integer CHECK (match_misses >= 0),
    known_patients_only boolean,
    writes_per_hour     integer CHECK (writes_per_hour >= 0),
    upcoming_per_patient integer CHECK (upcoming_per_patient >= 0),
    trusted_to_ask      boolean NOT NULL DEFAULT false,  -- what its host reports of people counts as their consent
    jwks                jsonb,  -- public keys with which the client signs its requests for tokens (RFC 7523)
    jwks_url            text,
    -- Tokens of a client end for good when it is disabled, its tokens are revoked, its secrets are replaced at once, or its
    -- scopes or grant change. A token carries the value that its client had when it was issued, and is refused when the
    -- client has a later one: comparing values of one row needs no clocks that agree. Null: no token was ended yet.
    tokens_not_before   timestamptz,
    disabled            boolean NOT NULL DEFAULT false,
    staff_id            text,         -- null: not an assistant; kept when the staff member is removed
    application_id      text,
    callback_host       text,         -- where the codes were last sent
    connected_at        timestamptz,  -- the last time the staff member agreed
    revoked_at          timestamptz,  -- disconnected; null and disabled: blocked by an admin
    created_at          timestamptz NOT NULL,
    CHECK (jwks IS NULL OR jwks_url IS NULL),
    -- An assistant is a client of one staff member and one application, without a secret, and always an agent.
    CONSTRAINT client_assistant CHECK (
        CASE WHEN staff_id IS NULL THEN application_id IS NULL AND revoked_at IS NULL
        ELSE grant_kind = 'agent' AND application_id IS NOT NULL AND connected_at IS NOT NULL END
    )
);
CREATE INDEX client_practice ON client (practice_id);
CREATE UNIQUE INDEX client_assistant_of ON client (staff_id, application_id) WHERE staff_id IS NOT NULL;
CREATE INDEX client_application ON client (application_id) WHERE application_id IS NOT NULL;

CREATE TABLE client_secret (
    client_id  text NOT NULL REFERENCES client,
    digest     bytea NOT NULL,  -- keyed hash: useless without the sealed key
    created_at timestamptz NOT NULL,
    retires_at timestamptz,
    PRIMARY KEY (client_id, digest)
);

-- Assertions that were used for a token, by the hash of their client and jti. Housekeeping deletes expired ones.
CREATE TABLE used_assertion (
    subject    bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX used_assertion_expiry ON used_assertion (expires_at);

-- Applications that have registered themselves (RFC 7591). Those known by a client id metadata document are not stored.
CREATE TABLE application (
    application_id text PRIMARY KEY,
    name           text NOT NULL,
    redirect_uris  text[] NOT NULL,
    registered_at  timestamptz NOT NULL
);
CREATE INDEX application_registered ON application (registered_at);

-- Codes and refresh tokens are 256 random bits; only their SHA-256 is stored. All that came from one consent are a family.
CREATE TABLE authorization_code (
    digest       bytea PRIMARY KEY,
    client_id    text NOT NULL REFERENCES client,
    family       bytea NOT NULL,
    redirect_uri text NOT NULL,
    challenge    text NOT NULL,
    expires_at   timestamptz NOT NULL,
    used_at      timestamptz
);
CREATE INDEX authorization_code_client ON authorization_code (client_id);
CREATE INDEX authorization_code_expires ON authorization_code (expires_at);

-- A rotated token stays until it expires, so that its reuse is noticed.
CREATE TABLE refresh_token (
    digest     bytea PRIMARY KEY,
    client_id  text NOT NULL REFERENCES client,
    family     bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    rotated_at timestamptz
);
CREATE INDEX refresh_token_client ON refresh_token (client_id, family);
CREATE INDEX refresh_token_expires ON refresh_token (expires_at);

GRANT SELECT, INSERT, DELETE ON application TO frontdesk_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON client, client_secret, used_assertion, authorization_code, refresh_token
    TO frontdesk_service;
