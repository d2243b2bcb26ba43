-- The role of the service, and the tables that belong to no practice.
--
-- Tenant isolation: the role owns nothing, and sees only the rows of the practice that its transaction named. A statement
-- that names no practice is refused: the setting does not exist. practice_id stands in every key, constraint and index, so
-- that the schema can be distributed by practice. What is looked up without a practice is in small reference tables.

CREATE EXTENSION IF NOT EXISTS btree_gist;

DO $$
BEGIN
    IF to_regrole('frontdesk_service') IS NULL THEN  -- a login without CREATEROLE needs the role made beforehand
        CREATE ROLE frontdesk_service LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- roles belong to the whole cluster: another database made it
END $$;

DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'frontdesk_service', 'USAGE') THEN
        EXECUTE format('GRANT frontdesk_service TO %I', current_user);
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    NULL;  -- the service has a login of its own, and this one need not be a member
END $$;

DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO frontdesk_service', current_schema());
END $$;

-- Which text of each file in functions/ the database has, and the version of frontdesk that applied it.
CREATE TABLE function_file (
    name       text PRIMARY KEY,
    checksum   text NOT NULL,
    version    text NOT NULL,
    applied_at timestamptz NOT NULL
);

-- Keys of the service itself, encrypted under the operator's secret key.
CREATE TABLE sealed_key (
    key_id     text PRIMARY KEY,
    purpose    text NOT NULL,
    sealed     bytea NOT NULL,
    created_at timestamptz NOT NULL,
    retired_at timestamptz
);

-- What workers have noticed of their surroundings, for `frontdesk doctor`: the latest of each kind.
CREATE TABLE observation (
    name    text PRIMARY KEY,
    detail  text NOT NULL,
    seen_at timestamptz NOT NULL
);

GRANT SELECT ON migration, function_file TO frontdesk_service;
GRANT SELECT, INSERT, UPDATE ON observation TO frontdesk_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON sealed_key TO frontdesk_service;
