-- Calendar feeds: secret addresses at which a provider's calendar can be read.
CREATE TABLE calendar_feed (
    practice_id bigint NOT NULL,
    feed_id     text NOT NULL,
    provider_id integer NOT NULL,
    digest      bytea NOT NULL,  -- SHA-256 of the secret in its address
    with_names  boolean NOT NULL,
    created_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    PRIMARY KEY (practice_id, feed_id),
    UNIQUE (practice_id, digest),
    FOREIGN KEY (practice_id, provider_id) REFERENCES provider
);
ALTER TABLE calendar_feed ENABLE ROW LEVEL SECURITY;
ALTER TABLE calendar_feed FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON calendar_feed USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE ON calendar_feed TO frontdesk_service;
