-- The trace of the write that an event tells of, which its webhooks continue. Written only where calls are traced.
CREATE TABLE event_trace (
    practice_id bigint NOT NULL,
    event_id    bigint NOT NULL,
    traceparent text NOT NULL,
    PRIMARY KEY (practice_id, event_id),
    FOREIGN KEY (practice_id, event_id) REFERENCES outbox ON DELETE CASCADE
);
ALTER TABLE event_trace ENABLE ROW LEVEL SECURITY;
ALTER TABLE event_trace FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON event_trace USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT ON event_trace TO frontdesk_service;
