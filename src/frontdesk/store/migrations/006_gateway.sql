-- Rate limits: calls of a client in its current minute and its current 30 days, and failed token calls.

-- A minute begins with the first call after the previous one ended. Workers lease calls of it and report how many were
-- made; leases end with their minute. The limit is checked against leased calls, the quota against calls that were
-- made: a worker that dies costs the client nothing.
CREATE TABLE client_usage (
    practice_id       bigint NOT NULL REFERENCES practice,
    client_id         text NOT NULL,
    minute_started_at timestamptz NOT NULL,
    minute_leased     bigint NOT NULL,
    minute_used       bigint NOT NULL,
    late              bigint NOT NULL,  -- leased in the minute before, and not reported when that ended
    quota_started_at  timestamptz NOT NULL,
    quota_used        bigint NOT NULL,
    PRIMARY KEY (practice_id, client_id)
) WITH (fillfactor = 50);

ALTER TABLE client_usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE client_usage FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON client_usage USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE ON client_usage TO frontdesk_service;

-- Failed token calls in the current minute, by the hash of a client id or of an address. Without a practice, because
-- the caller has not shown one yet; housekeeping deletes old rows.
CREATE TABLE token_failure (
    subject    bytea PRIMARY KEY,
    started_at timestamptz NOT NULL,
    failures   integer NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON token_failure TO frontdesk_service;
