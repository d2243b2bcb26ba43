-- What clients have used of their limits: calls, failed token calls, patients read and failed matches.

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

-- Failed token calls in the current minute, by the hash of a client id or of an address. Without a practice, because
-- the caller has not shown one yet; housekeeping deletes old rows.
CREATE TABLE token_failure (
    subject    bytea PRIMARY KEY,
    started_at timestamptz NOT NULL,
    failures   integer NOT NULL
);
CREATE INDEX token_failure_started ON token_failure (started_at);

-- One row per client with a budget of patients: the lock under which its reads are counted, and when each budget was last
-- reported as exceeded.
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

-- One row per client with limits on its writes: the lock under which they are counted, and when each limit was last reported
-- as reached.
CREATE TABLE write_limit (
    practice_id       bigint NOT NULL REFERENCES practice,
    client_id         text NOT NULL,
    hour_alarm_at     timestamptz,
    upcoming_alarm_at timestamptz,
    PRIMARY KEY (practice_id, client_id)
);

-- The writes that a client with a limit has executed, by kind and minute. Rows older than an hour are deleted with the next one.
CREATE TABLE write_count (
    practice_id bigint NOT NULL REFERENCES practice,
    client_id   text NOT NULL,
    operation   text NOT NULL,
    minute      timestamptz NOT NULL,
    writes      integer NOT NULL,
    PRIMARY KEY (practice_id, client_id, operation, minute)
);

-- Requests of a practice's clients by outcome. Each is counted in two periods: five minutes for the last days, and an
-- hour for the month before them. No row says anything about a patient.
CREATE TABLE request_count (
    practice_id bigint NOT NULL REFERENCES practice,
    minutes     integer NOT NULL CHECK (minutes IN (5, 60)),  -- the length of the period
    began_at    timestamptz NOT NULL,
    client_id   text NOT NULL,
    operation   text NOT NULL,  -- empty: unknown operation
    door        text NOT NULL,
    status      integer NOT NULL,
    code        text NOT NULL,  -- of the error; empty: none
    requests    bigint NOT NULL,
    PRIMARY KEY (practice_id, minutes, began_at, client_id, operation, door, status, code)
) WITH (fillfactor = 80);

GRANT SELECT, INSERT, UPDATE ON client_usage, patient_budget, write_limit TO frontdesk_service;
GRANT SELECT, INSERT ON known_patient TO frontdesk_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON token_failure, patient_read, match_miss, write_count, request_count
    TO frontdesk_service;
