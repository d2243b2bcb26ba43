-- Practices and their directories. Rows of practices are never deleted, so tables that each booking writes to do not refer to
-- them: every check would lock the practice's row.

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
    consent                jsonb NOT NULL DEFAULT '{}',  -- the least consent that the practice demands, by operation
    patients_per_hour      integer NOT NULL DEFAULT 60 CHECK (patients_per_hour >= 0),  -- here and below, 0: unlimited
    patients_per_day       integer NOT NULL DEFAULT 400 CHECK (patients_per_day >= 0),
    match_misses           integer NOT NULL DEFAULT 5 CHECK (match_misses >= 0),
    known_patients_only    boolean NOT NULL DEFAULT false,
    writes_per_hour        integer NOT NULL DEFAULT 200 CHECK (writes_per_hour >= 0),
    upcoming_per_patient   integer NOT NULL DEFAULT 20 CHECK (upcoming_per_patient >= 0),
    phone_match            text NOT NULL DEFAULT 'anywhere',  -- where digits that clients give must stand in a patient's number
    assistants             boolean NOT NULL DEFAULT true,  -- staff may connect them, and those that are connected may call
    trusted_hosts          text[] NOT NULL DEFAULT '{}',  -- assistants whose codes go there are trusted to ask people
    time_format            text NOT NULL DEFAULT '24h',  -- how the console writes times and dates
    date_format            text NOT NULL DEFAULT 'dayFirst',
    features               jsonb NOT NULL DEFAULT '{}',  -- what the practice has set of them, by name
    has_webhooks           boolean NOT NULL DEFAULT false,  -- nodes look for these before they name a practice
    version                bigint NOT NULL DEFAULT 1,  -- counts changes of the directory: caches compare it
    imported_at            timestamptz NOT NULL DEFAULT now(),  -- since then no record of the directory has changed
    created_at             timestamptz NOT NULL
);
CREATE INDEX practice_with_webhooks ON practice (practice_id) WHERE has_webhooks;

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

GRANT SELECT, INSERT, UPDATE ON practice TO frontdesk_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON location, provider, visit_type, procedure TO frontdesk_service;
