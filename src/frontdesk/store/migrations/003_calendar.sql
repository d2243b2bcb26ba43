-- The native calendar: patients and their appointments.

-- One row per practice: the source of patient numbers, and the lock that keeps two callers from creating one patient
-- twice.
CREATE TABLE patient_counter (
    practice_id bigint PRIMARY KEY REFERENCES practice,
    last_number integer NOT NULL
);

-- The generated columns are searched: under a row-level policy only comparisons of plain columns can use an index.
CREATE TABLE patient (
    practice_id  bigint NOT NULL REFERENCES practice,
    patient_id   text NOT NULL,
    number       integer NOT NULL CHECK (number > 0),
    first_name   text NOT NULL,
    last_name    text NOT NULL,
    name_key     text NOT NULL,
    last_key     text GENERATED ALWAYS AS (split_part(name_key, '|', 2)) STORED,
    dob          date NOT NULL,
    phone        text NOT NULL,
    phone_digits text NOT NULL,
    phone_tail   text GENERATED ALWAYS AS (reverse(phone_digits)) STORED,
    email        text,
    seen         boolean NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (practice_id, patient_id),
    UNIQUE (practice_id, number)
);
CREATE INDEX patient_match ON patient (practice_id, dob, name_key);
CREATE INDEX patient_first_name ON patient (practice_id, name_key COLLATE "C");
CREATE INDEX patient_last_name ON patient (practice_id, last_key COLLATE "C");
CREATE INDEX patient_phone ON patient (practice_id, phone_tail COLLATE "C");

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

-- What every function that changes the native calendar returns.
CREATE TYPE change_outcome AS (outcome text, reason text, result jsonb, subjects text[], event text, subject jsonb);

-- Counts the changes of a provider's calendar. While the sum over a practice's providers and the version of its
-- directory are unchanged, everything computed from them is fresh.
--
-- One row per provider, because its lock is held until the change commits: bookings of one provider wait for each other
-- anyway, those of different providers do not.
CREATE TABLE calendar_version (
    practice_id  bigint NOT NULL REFERENCES practice,
    provider_id  integer NOT NULL,
    version      bigint NOT NULL,
    -- What the last changes touched, so that a cache reads no more than that again. A row for each change, the newest first:
    -- its version, the minutes from the first start to the last end of its appointments or holds, a random number, and the
    -- lane of a single new appointment.
    recent       bigint[] NOT NULL DEFAULT '{}',
    -- The last change if it was one new appointment, as a search reads it (the fields of LastBooking in eight bytes each): a
    -- cache that lacks no other change adds it, without reading the calendar.
    last_booking bytea GENERATED ALWAYS AS (
        CASE WHEN recent[1][1] = version THEN
            int8send(provider_id) || int8send(version) || int8send(recent[2][4]) || int8send(recent[1][4])
            || int8send(recent[1][2]) || int8send(recent[1][3]) || int8send(recent[1][5])
        END
    ) STORED,
    PRIMARY KEY (practice_id, provider_id)
) WITH (fillfactor = 50);

-- The starts that rescheduled appointments had before. A listing orders appointments by the starts they had when it
-- began, so that a move between two of its pages neither skips nor repeats an appointment. The rest of the place is kept so that
-- staff can move an appointment back.
CREATE TABLE appointment_move (
    practice_id    bigint NOT NULL REFERENCES practice,
    appointment_id text NOT NULL,
    move           integer NOT NULL,  -- 1 for the first of the appointment
    starts_at      timestamptz NOT NULL,  -- before the move
    place          jsonb,  -- {providerId, locationId, visitTypeId, procedureId, endsAt} before the move; null: not known
    moved_at       timestamptz NOT NULL DEFAULT now(),  -- by the database's clock
    moved_by       xid8 NOT NULL DEFAULT pg_current_xact_id(),  -- the transaction, to compare with a snapshot
    PRIMARY KEY (practice_id, appointment_id, move)
);
CREATE INDEX appointment_move_recent ON appointment_move (practice_id, moved_at);

-- When a patient arrived and was called in. The state of the appointment says whether the patient is still here; undoing
-- the arrival deletes the row.
CREATE TABLE appointment_attendance (
    practice_id    bigint NOT NULL,
    appointment_id text NOT NULL,
    arrived_at     timestamptz NOT NULL,
    called_at      timestamptz,  -- null: the patient waits
    PRIMARY KEY (practice_id, appointment_id),
    FOREIGN KEY (practice_id, appointment_id) REFERENCES appointment ON DELETE CASCADE
);

-- Why staff took back a state or a cancellation. Who and when is in the audit trail, under the same time.
CREATE TABLE appointment_correction (
    practice_id    bigint NOT NULL REFERENCES practice,
    appointment_id text NOT NULL,
    at             timestamptz NOT NULL,
    reason         text NOT NULL,
    PRIMARY KEY (practice_id, appointment_id, at)
);

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

GRANT SELECT, INSERT, UPDATE, DELETE ON patient_counter, appointment_attendance TO frontdesk_service;
GRANT SELECT, INSERT, UPDATE ON patient, appointment, calendar_version, appointment_override TO frontdesk_service;
GRANT SELECT, INSERT ON appointment_move, appointment_correction TO frontdesk_service;
