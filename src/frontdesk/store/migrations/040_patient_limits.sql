-- How many patients a client may read, which ones, and how often it may fail to match one.

-- 0: unlimited.
ALTER TABLE practice
    ADD COLUMN patients_per_hour   integer NOT NULL DEFAULT 60 CHECK (patients_per_hour >= 0),
    ADD COLUMN patients_per_day    integer NOT NULL DEFAULT 400 CHECK (patients_per_day >= 0),
    ADD COLUMN match_misses        integer NOT NULL DEFAULT 5 CHECK (match_misses >= 0),
    ADD COLUMN known_patients_only boolean NOT NULL DEFAULT false;

-- Null: as the practice says. The practice's budgets are for agents.
ALTER TABLE client
    ADD COLUMN patients_per_hour   integer CHECK (patients_per_hour >= 0),
    ADD COLUMN patients_per_day    integer CHECK (patients_per_day >= 0),
    ADD COLUMN match_misses        integer CHECK (match_misses >= 0),
    ADD COLUMN known_patients_only boolean;

-- One row per client with a budget: the lock under which its reads are counted, and when each budget was last reported
-- as exceeded.
CREATE TABLE patient_budget (
    practice_id   bigint NOT NULL REFERENCES practice,
    client_id     text NOT NULL,
    hour_alarm_at timestamptz,
    day_alarm_at  timestamptz,
    PRIMARY KEY (practice_id, client_id)
);

-- The patients that a client with a budget has read in the last day, and when it read each of them last.
CREATE TABLE patient_read (
    practice_id bigint NOT NULL REFERENCES practice,
    client_id   text NOT NULL,
    patient_id  text NOT NULL,
    read_at     timestamptz NOT NULL,
    PRIMARY KEY (practice_id, client_id, patient_id)
);
CREATE INDEX patient_read_at ON patient_read (practice_id, client_id, read_at);

-- The patients that a client has matched, created or booked.
CREATE TABLE known_patient (
    practice_id bigint NOT NULL REFERENCES practice,
    client_id   text NOT NULL,
    patient_id  text NOT NULL,
    known_since timestamptz NOT NULL,
    PRIMARY KEY (practice_id, client_id, patient_id)
);

-- Failed matches of a client, by the keyed hash of the name and date of birth that it asked for; the empty hash counts
-- all of them.
CREATE TABLE match_miss (
    practice_id  bigint NOT NULL REFERENCES practice,
    client_id    text NOT NULL,
    person       bytea NOT NULL,
    questions    bytea[] NOT NULL,  -- keyed hashes of what was asked, so that a repetition is not counted
    misses       integer NOT NULL,
    began_at     timestamptz NOT NULL,
    last_at      timestamptz NOT NULL,
    paused_until timestamptz,
    PRIMARY KEY (practice_id, client_id, person)
);
CREATE INDEX match_miss_last ON match_miss (practice_id, client_id, last_at);

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['patient_budget', 'patient_read', 'known_patient', 'match_miss'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (practice_id = current_setting(''frontdesk.practice_id'')::bigint)',
            tenant_table
        );
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO frontdesk_service', tenant_table);
    END LOOP;
END $$;
REVOKE DELETE ON patient_budget, known_patient FROM frontdesk_service;
REVOKE UPDATE ON known_patient FROM frontdesk_service;
