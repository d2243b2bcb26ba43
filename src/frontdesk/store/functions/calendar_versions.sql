-- Reads the numbers of changes that triggers.sql counts.

-- The versions that everything computed from a practice's directory and appointments depends on: that of the directory,
-- and the provider and the number of changes of each calendar as integers in network byte order. The directory's is null
-- for an unknown practice.
CREATE OR REPLACE FUNCTION calendar_versions(p_practice bigint, OUT version bigint, OUT calendars bytea)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT p.version,
           (SELECT string_agg(int8send(c.provider_id) || int8send(c.version), '')
            FROM calendar_version c WHERE c.practice_id = p_practice)
    INTO version, calendars
    FROM practice p WHERE p.practice_id = p_practice;
END $$;

-- Used by the previous release: the sum over all calendars; nulls for an unknown practice.
CREATE OR REPLACE FUNCTION calendar_state(p_practice bigint, OUT version bigint, OUT calendar bigint)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT p.version,
           (SELECT coalesce(sum(c.version), 0)::bigint FROM calendar_version c WHERE c.practice_id = p_practice)
    INTO version, calendar
    FROM practice p WHERE p.practice_id = p_practice;
END $$;
