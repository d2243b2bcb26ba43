-- Why staff booked or moved an appointment against the booking rules, and which rules. Who did so is also in the audit trail,
-- under the same time. An appointment whose lane is that of an override still stands against the rules, and its latest row
-- says why; one that was moved to an open time keeps its rows as history.
CREATE TABLE appointment_override (
    practice_id    bigint NOT NULL,
    appointment_id text NOT NULL,
    at             timestamptz NOT NULL,
    staff_id       text NOT NULL,
    rules          text[] NOT NULL CHECK (cardinality(rules) > 0),
    reason         text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    PRIMARY KEY (practice_id, appointment_id, at),
    FOREIGN KEY (practice_id, appointment_id) REFERENCES appointment ON DELETE CASCADE
);
ALTER TABLE appointment_override ENABLE ROW LEVEL SECURITY;
ALTER TABLE appointment_override FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON appointment_override USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE ON appointment_override TO frontdesk_service;
