-- What an operator has to correct about a practice's own system, by the kind of request that was refused.
CREATE TABLE upstream_fault (
    practice_id bigint NOT NULL REFERENCES practice,
    request     text NOT NULL,
    reason      text NOT NULL,
    since       timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    PRIMARY KEY (practice_id, request)
);
ALTER TABLE upstream_fault ENABLE ROW LEVEL SECURITY;
ALTER TABLE upstream_fault FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON upstream_fault USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON upstream_fault TO frontdesk_service;
