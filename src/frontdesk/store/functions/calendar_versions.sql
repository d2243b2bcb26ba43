-- Reads the numbers of changes that triggers.sql counts.

-- Whole minutes since 1970. STABLE like date_part itself: anything stricter keeps the planner from inlining it.
CREATE OR REPLACE FUNCTION epoch_minutes(moment timestamptz) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT floor(date_part('epoch', moment) / 60)::integer $$;

-- The two functions below make what triggers.sql writes down of a change: its version, first start and last end.

-- The first change of a calendar. One minute more than it took: seconds are dropped.
CREATE OR REPLACE FUNCTION touched(first_start timestamptz, last_end timestamptz) RETURNS bigint[]
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT ARRAY[ARRAY[1::bigint, frontdesk.epoch_minutes(first_start), frontdesk.epoch_minutes(last_end) + 1]]
$$;

-- The newest change in front of those before it. The oldest are forgotten: a cache that lacks them reads a whole calendar.
CREATE OR REPLACE FUNCTION newest_changes(version bigint, newest bigint[], before bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (ARRAY[ARRAY[version, newest[1][2], newest[1][3]]] || before)[1:8]
$$;

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
