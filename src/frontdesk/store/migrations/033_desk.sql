-- The history of an appointment, and the search for patients.

-- The audit records of changes to an appointment, and of attempts. Filled when records are sealed, so that no write
-- waits for it; a reader has to look at the unsealed records, too.
CREATE TABLE appointment_trail (
    practice_id    bigint NOT NULL,
    appointment_id text NOT NULL,
    record_id      bigint NOT NULL,
    PRIMARY KEY (practice_id, appointment_id, record_id)
);
ALTER TABLE appointment_trail ENABLE ROW LEVEL SECURITY;
ALTER TABLE appointment_trail FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON appointment_trail USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT ON appointment_trail TO frontdesk_service;

-- Generated columns, because under a row-level policy only comparisons of plain columns can use an index.
ALTER TABLE patient ADD COLUMN last_key text GENERATED ALWAYS AS (split_part(name_key, '|', 2)) STORED;
ALTER TABLE patient ADD COLUMN phone_tail text GENERATED ALWAYS AS (reverse(phone_digits)) STORED;
CREATE INDEX patient_first_name ON patient (practice_id, name_key COLLATE "C");
CREATE INDEX patient_last_name ON patient (practice_id, last_key COLLATE "C");
CREATE INDEX patient_phone ON patient (practice_id, phone_tail COLLATE "C");
