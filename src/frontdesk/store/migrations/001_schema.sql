-- The tables. practice_id stands in every key, constraint and index, so that the schema can be distributed by practice.
-- Looked up without a practice, and therefore small reference tables: practice, client, client_secret, sealed_key.

CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE TABLE practice (
    practice_id            bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    slug                   text NOT NULL UNIQUE,
    name                   text NOT NULL,
    time_zone              text NOT NULL,
    phone                  text,
    minimum_notice_minutes integer NOT NULL,
    booking_horizon_days   integer NOT NULL,
    slot_interval_minutes  integer NOT NULL CHECK (slot_interval_minutes > 0),
    scheduling_system      jsonb NOT NULL,
    sandbox                boolean NOT NULL,
    suspended              boolean NOT NULL DEFAULT false,
    version                bigint NOT NULL DEFAULT 1,  -- counts changes of the directory: caches compare it
    created_at             timestamptz NOT NULL
);

CREATE TABLE location (
    practice_id bigint NOT NULL REFERENCES practice,
    location_id integer NOT NULL CHECK (location_id > 0),
    name        text NOT NULL,
    aliases     text[] NOT NULL,
    time_zone   text NOT NULL,
    phone       text,
    address     jsonb,
    closures    jsonb NOT NULL,
    active      boolean NOT NULL DEFAULT true,
    PRIMARY KEY (practice_id, location_id)
);

CREATE TABLE provider (
    practice_id          bigint NOT NULL REFERENCES practice,
    provider_id          integer NOT NULL CHECK (provider_id > 0),
    name                 text NOT NULL,
    aliases              text[] NOT NULL,
    specialty            text,
    accepts_new_patients boolean NOT NULL,
    capacity             integer NOT NULL CHECK (capacity > 0),
    procedure_ids        integer[],  -- null: all
    hours                jsonb NOT NULL,
    time_off             jsonb NOT NULL,
    active               boolean NOT NULL DEFAULT true,
    PRIMARY KEY (practice_id, provider_id)
);

CREATE TABLE visit_type (
    practice_id   bigint NOT NULL REFERENCES practice,
    visit_type_id integer NOT NULL CHECK (visit_type_id > 0),
    name          text NOT NULL,
    aliases       text[] NOT NULL,
    description   text,
    patient_kind  text NOT NULL CHECK (patient_kind IN ('new', 'existing', 'any')),
    active        boolean NOT NULL DEFAULT true,
    PRIMARY KEY (practice_id, visit_type_id)
);

CREATE TABLE procedure (
    practice_id          bigint NOT NULL,
    visit_type_id        integer NOT NULL,
    procedure_id         integer NOT NULL CHECK (procedure_id > 0),
    name                 text NOT NULL,
    aliases              text[] NOT NULL,
    description          text,
    duration_minutes     integer NOT NULL CHECK (duration_minutes > 0),
    buffer_after_minutes integer NOT NULL CHECK (buffer_after_minutes >= 0),
    active               boolean NOT NULL DEFAULT true,
    PRIMARY KEY (practice_id, visit_type_id, procedure_id),
    FOREIGN KEY (practice_id, visit_type_id) REFERENCES visit_type
);

-- One row per practice: the source of patient numbers, and the lock that keeps two callers from creating one patient
-- twice.
CREATE TABLE patient_counter (
    practice_id bigint PRIMARY KEY REFERENCES practice,
    last_number integer NOT NULL
);

CREATE TABLE patient (
    practice_id  bigint NOT NULL REFERENCES practice,
    patient_id   text NOT NULL,
    number       integer NOT NULL CHECK (number > 0),
    first_name   text NOT NULL,
    last_name    text NOT NULL,
    name_key     text NOT NULL,
    dob          date NOT NULL,
    phone        text NOT NULL,
    phone_digits text NOT NULL,
    email        text,
    seen         boolean NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (practice_id, patient_id),
    UNIQUE (practice_id, number)
);
CREATE INDEX patient_match ON patient (practice_id, dob, name_key);

-- A lane (1..capacity) is one of the appointments that a provider can have at the same time. The exclusion constraint
-- refuses a double booking by any writer; reads use the b-tree.
CREATE TABLE appointment (
    practice_id             bigint NOT NULL,
    appointment_id          text NOT NULL,
    patient_id              text NOT NULL,
    provider_id             integer NOT NULL,
    location_id             integer NOT NULL,
    visit_type_id           integer NOT NULL,
    procedure_id            integer NOT NULL,
    lane                    integer NOT NULL CHECK (lane > 0),
    starts_at               timestamptz NOT NULL,
    ends_at                 timestamptz NOT NULL,
    busy_until              timestamptz NOT NULL,  -- ends_at plus the procedure's buffer
    status                  text NOT NULL
        CHECK (status IN ('booked', 'confirmed', 'cancelled', 'arrived', 'completed', 'noShow')),
    booked_by               text NOT NULL,  -- the client, or the staff member at the console
    created_at              timestamptz NOT NULL,
    updated_at              timestamptz NOT NULL,
    attendance_confirmed_at timestamptz,
    cancelled_at            timestamptz,
    cancellation_reason     text,
    rescheduled_from        timestamptz,
    PRIMARY KEY (practice_id, appointment_id),
    FOREIGN KEY (practice_id, patient_id) REFERENCES patient,
    FOREIGN KEY (practice_id, provider_id) REFERENCES provider,
    FOREIGN KEY (practice_id, location_id) REFERENCES location,
    FOREIGN KEY (practice_id, visit_type_id, procedure_id) REFERENCES procedure,
    CHECK (starts_at < ends_at AND ends_at <= busy_until),
    CHECK (busy_until <= starts_at + interval '2 days'),  -- bounds how far back a reader of busy times must look
    EXCLUDE USING gist (
        practice_id WITH =, provider_id WITH =, lane WITH =, tstzrange(starts_at, busy_until) WITH &&
    ) WHERE (status <> 'cancelled')
);
CREATE INDEX appointment_busy ON appointment (practice_id, provider_id, starts_at) INCLUDE (busy_until, lane)
    WHERE status <> 'cancelled';
CREATE INDEX appointment_by_start ON appointment (practice_id, starts_at, appointment_id);
CREATE INDEX appointment_by_patient ON appointment (practice_id, patient_id, starts_at);

-- A write that must execute exactly once: an agent's challenge, or an integration's Idempotency-Key. The id is the
-- SHA-256 of the token or key, which are not stored.
CREATE TABLE intent (
    practice_id bigint NOT NULL REFERENCES practice,
    intent_id   bytea NOT NULL,
    client_id   text NOT NULL,
    operation   text NOT NULL,
    fingerprint bytea NOT NULL,
    state       text NOT NULL CHECK (state IN ('challenged', 'executing', 'consumed')),
    result      jsonb,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,  -- after this a challenge can no longer be confirmed
    keep_until  timestamptz NOT NULL,  -- after this the row may be removed
    PRIMARY KEY (practice_id, intent_id),
    CHECK ((state = 'consumed') = (result IS NOT NULL))
);
CREATE INDEX intent_keep_until ON intent (practice_id, keep_until);

-- Who did what to which record, and the outcome; never the content of the record. Append-only for the service.
CREATE TABLE audit_record (
    practice_id bigint NOT NULL REFERENCES practice,
    record_id   bigint GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL,
    actor       text NOT NULL,
    operation   text NOT NULL,
    outcome     text NOT NULL,
    subject_ids text[] NOT NULL,
    request_id  text NOT NULL,
    PRIMARY KEY (practice_id, record_id)
);

-- Records that are not sealed yet. They commit with their write and a sealer links them later, so that the writers of a
-- practice do not wait for each other.
CREATE TABLE audit_unsealed (
    practice_id bigint NOT NULL,
    record_id   bigint NOT NULL,
    PRIMARY KEY (practice_id, record_id)
);

CREATE TABLE audit_seal (
    practice_id bigint NOT NULL,
    sequence    bigint NOT NULL,
    record_id   bigint NOT NULL,
    hash        bytea NOT NULL,  -- SHA-256 over the previous hash and the record
    PRIMARY KEY (practice_id, sequence),
    UNIQUE (practice_id, record_id)
);

CREATE TABLE audit_head (
    practice_id bigint PRIMARY KEY REFERENCES practice,
    sequence    bigint NOT NULL,
    hash        bytea NOT NULL
);

CREATE TABLE outbox (
    practice_id bigint NOT NULL REFERENCES practice,
    event_id    bigint GENERATED ALWAYS AS IDENTITY,
    type        text NOT NULL,
    subject     jsonb NOT NULL,  -- ids and times only
    occurred_at timestamptz NOT NULL,
    PRIMARY KEY (practice_id, event_id)
);

CREATE TABLE client (
    client_id   text PRIMARY KEY,
    practice_id bigint NOT NULL REFERENCES practice,
    name        text NOT NULL,
    grant_kind  text NOT NULL CHECK (grant_kind IN ('agent', 'integration')),
    scopes      text[] NOT NULL,
    per_minute  integer NOT NULL CHECK (per_minute > 0),
    quota       bigint NOT NULL CHECK (quota > 0),
    disabled    boolean NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL
);
CREATE INDEX client_practice ON client (practice_id);

CREATE TABLE client_secret (
    client_id  text NOT NULL REFERENCES client,
    digest     bytea NOT NULL,  -- keyed hash: useless without the sealed key
    created_at timestamptz NOT NULL,
    retires_at timestamptz,
    PRIMARY KEY (client_id, digest)
);

-- Keys of the service itself, encrypted under the operator's secret key.
CREATE TABLE sealed_key (
    key_id     text PRIMARY KEY,
    purpose    text NOT NULL,
    sealed     bytea NOT NULL,
    created_at timestamptz NOT NULL,
    retired_at timestamptz
);
