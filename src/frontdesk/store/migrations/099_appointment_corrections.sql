-- Why staff took back a state or a cancellation. Who and when is in the audit trail, under the same time.
CREATE TABLE appointment_correction (
    practice_id    bigint NOT NULL REFERENCES practice,
    appointment_id text NOT NULL,
    at             timestamptz NOT NULL,
    reason         text NOT NULL,
    PRIMARY KEY (practice_id, appointment_id, at)
);
ALTER TABLE appointment_correction ENABLE ROW LEVEL SECURITY;
ALTER TABLE appointment_correction FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON appointment_correction USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT ON appointment_correction TO frontdesk_service;
