-- Assistants that staff connect by the authorization code flow. Each is a client of one staff member and one
-- application, without a secret, and always an agent.
ALTER TABLE client
    ADD COLUMN staff_id       text,         -- null: not an assistant; kept when the staff member is removed
    ADD COLUMN application_id text,
    ADD COLUMN callback_host  text,         -- where the codes were last sent
    ADD COLUMN connected_at   timestamptz,  -- the last time the staff member agreed
    ADD COLUMN revoked_at     timestamptz;  -- disconnected; null and disabled: blocked by an admin
ALTER TABLE client ADD CONSTRAINT client_assistant CHECK (
    CASE WHEN staff_id IS NULL THEN application_id IS NULL AND revoked_at IS NULL
    ELSE grant_kind = 'agent' AND application_id IS NOT NULL AND connected_at IS NOT NULL END
);
CREATE UNIQUE INDEX client_assistant_of ON client (staff_id, application_id) WHERE staff_id IS NOT NULL;
CREATE INDEX client_application ON client (application_id) WHERE application_id IS NOT NULL;

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
GRANT SELECT, INSERT, UPDATE, DELETE ON authorization_code, refresh_token TO frontdesk_service;
