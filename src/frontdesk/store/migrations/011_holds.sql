-- Times that clients hold for a few minutes before they book them. A row outlives its hold by an hour, because a client may
-- hold a bounded number of times an hour. `live` says that the hold was neither booked nor released nor found expired: it
-- holds the time while held_until is in the future.
CREATE TABLE slot_hold (
    practice_id   bigint NOT NULL REFERENCES practice,
    hold_id       text NOT NULL,
    client_id     text NOT NULL,
    provider_id   integer NOT NULL,
    location_id   integer NOT NULL,
    visit_type_id integer NOT NULL,
    procedure_id  integer NOT NULL,
    lane          integer NOT NULL CHECK (lane > 0),
    starts_at     timestamptz NOT NULL,
    ends_at       timestamptz NOT NULL,
    busy_until    timestamptz NOT NULL,
    held_at       timestamptz NOT NULL,
    held_until    timestamptz NOT NULL,
    live          boolean NOT NULL,
    PRIMARY KEY (practice_id, hold_id),
    CHECK (starts_at < ends_at AND ends_at <= busy_until),
    CHECK (busy_until <= starts_at + interval '2 days'),
    CHECK (held_until <= held_at + interval '20 minutes'),
    EXCLUDE USING gist (
        practice_id WITH =, provider_id WITH =, lane WITH =, tstzrange(starts_at, busy_until) WITH &&
    ) WHERE (live)
);
CREATE INDEX slot_hold_busy ON slot_hold (practice_id, provider_id, starts_at) WHERE live;
CREATE INDEX slot_hold_by_client ON slot_hold (practice_id, client_id, held_at);
CREATE INDEX slot_hold_by_age ON slot_hold (practice_id, held_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON slot_hold TO frontdesk_service;
