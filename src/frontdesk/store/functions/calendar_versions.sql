-- Numbers of changes of providers' calendars, which triggers.sql counts, and what the last changes touched.

-- Whole minutes since 1970, of a start. STABLE like date_part itself: anything stricter keeps the planner from inlining it.
CREATE OR REPLACE FUNCTION epoch_minutes(moment timestamptz) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT floor(date_part('epoch', moment) / 60)::integer $$;

-- The same of an end: a minute that has begun is taken.
CREATE OR REPLACE FUNCTION end_minutes(moment timestamptz) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT ceil(date_part('epoch', moment) / 60)::integer $$;

-- A change, numbered as if it were the first of its calendar: version, first start, last end, a random number that tells it
-- from another one of the same version, which there may be after a fail-over that lost the first, and the lane of a new
-- appointment, null for any other change.
CREATE OR REPLACE FUNCTION changed_range(first_start timestamptz, last_end timestamptz, new_lane integer) RETURNS bigint[]
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT ARRAY[ARRAY[
        1, frontdesk.epoch_minutes(first_start), frontdesk.end_minutes(last_end), (random() * 1e15)::bigint, new_lane
    ]]
$$;

-- The newest change in front of those before it. The oldest are forgotten: a cache that lacks them reads a whole calendar.
-- Not (ARRAY[...] || before)[1:9]: Citus crashes where the value of a SET is a subscript, also that of an inlined function.
CREATE OR REPLACE FUNCTION newest_changes(version bigint, newest bigint[], before bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ARRAY[ARRAY[version, newest[1][2], newest[1][3], newest[1][4], newest[1][5]]] || before[1:8]
$$;

-- The versions that everything computed from a practice's directory and appointments depends on: that of the directory,
-- and the provider and the number of changes of each calendar as integers in network byte order. The directory's is null
-- for an unknown practice. `bookings` has the last new appointment of each calendar: a cache that lacks no other change adds
-- it, without reading the calendar.
CREATE OR REPLACE FUNCTION current_versions(
    p_practice bigint, OUT version bigint, OUT calendars bytea, OUT bookings bytea
)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT p.version, counted.calendars, counted.bookings INTO version, calendars, bookings
    FROM practice p
    CROSS JOIN (
        SELECT string_agg(int8send(c.provider_id) || int8send(c.version), '') AS calendars,
               string_agg(c.last_booking, '') AS bookings
        FROM calendar_version c WHERE c.practice_id = p_practice
    ) counted
    WHERE p.practice_id = p_practice;
END $$;
