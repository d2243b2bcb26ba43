-- Reads that cost one round trip: each function names its practice to the row-level policies, then answers.
-- Times leave as integers where Python computes with them: minutes since 1970 in UTC.

-- STABLE like date_part itself: anything stricter keeps the planner from inlining it.
CREATE FUNCTION epoch_minutes(moment timestamptz) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT (date_part('epoch', moment) / 60)::integer $$;

-- The appointments of those of the given providers whose count of changes is not the known one, each in the minutes
-- [p_from, p_to) of its own, and the versions of directory and calendar they were read under; where nothing has changed,
-- the versions alone. Start, end and lane of each appointment come as integers in network byte order, which cost a
-- fraction of arrays to read. Planned once: PostgreSQL would plan anew for the length of each array, which costs more than
-- the answer.
CREATE FUNCTION changed_calendars(
    p_practice bigint, p_providers integer[], p_known integer[], p_from integer[], p_to integer[]
)
RETURNS TABLE (version bigint, calendar bigint, provider_id integer, changes bigint, appointments bytea)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT p.version,
           (SELECT coalesce(sum(c.version), 0)::bigint FROM calendar_version c WHERE c.practice_id = p_practice),
           changed.id, changed.changes, changed.appointments
    FROM practice p
    LEFT JOIN LATERAL (
        SELECT wanted.id, coalesce(c.version, 0) AS changes, busy.appointments
        FROM unnest(p_providers, p_known, p_from, p_to) AS wanted (id, known, f, t)
        LEFT JOIN calendar_version c ON c.practice_id = p_practice AND c.provider_id = wanted.id
        CROSS JOIN LATERAL (SELECT to_timestamp(wanted.f * 60.0) AS f, to_timestamp(wanted.t * 60.0) AS t) window_of
        CROSS JOIN LATERAL (
            SELECT string_agg(
                int4send(epoch_minutes(o.starts_at)) || int4send(epoch_minutes(o.busy_until)) || int4send(o.lane), ''
            ) AS appointments
            FROM (
                SELECT a.starts_at, a.busy_until, a.lane
                FROM appointment a
                WHERE a.practice_id = p_practice AND a.provider_id = wanted.id AND a.status <> 'cancelled'
                  AND a.starts_at >= window_of.f - interval '2 days' AND a.starts_at < window_of.t
                  AND a.busy_until > window_of.f
                ORDER BY a.starts_at
            ) o
        ) busy
        WHERE coalesce(c.version, 0) <> wanted.known
    ) changed ON true
    WHERE p.practice_id = p_practice;
END $$;

-- Everything a booking is judged by: the provider's busy times, and the patient with their own appointments.
-- An appointment that is being moved does not stand in its own way.
CREATE FUNCTION booking_context(
    p_practice bigint, p_patient text, p_provider integer, p_from timestamptz, p_to timestamptz, p_moved text
)
RETURNS TABLE (
    version bigint, calendar bigint, starts integer[], ends integer[], lanes integer[], patient_seen boolean,
    patient_busy boolean
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT (SELECT p.version FROM practice p WHERE p.practice_id = p_practice),
           (SELECT coalesce(sum(c.version), 0)::bigint FROM calendar_version c WHERE c.practice_id = p_practice),
           coalesce(busy.starts, '{}'), coalesce(busy.ends, '{}'), coalesce(busy.lanes, '{}'),
           (SELECT t.seen FROM patient t WHERE t.practice_id = p_practice AND t.patient_id = p_patient),
           patient_is_busy(p_practice, p_patient, p_from, p_to, p_moved)
    FROM (
        SELECT array_agg(epoch_minutes(o.starts_at)) AS starts, array_agg(epoch_minutes(o.busy_until)) AS ends,
               array_agg(o.lane) AS lanes
        FROM (
            SELECT a.starts_at, a.busy_until, a.lane
            FROM appointment a
            WHERE a.practice_id = p_practice AND a.provider_id = p_provider AND a.status <> 'cancelled'
              AND a.starts_at >= p_from - interval '2 days' AND a.starts_at < p_to + interval '2 days'
              AND a.busy_until > p_from AND a.appointment_id IS DISTINCT FROM p_moved
            ORDER BY a.starts_at
        ) o
    ) busy;
END $$;

-- Whether the patient has another live appointment that overlaps [p_from, p_to).
CREATE FUNCTION patient_is_busy(p_practice bigint, p_patient text, p_from timestamptz, p_to timestamptz, p_moved text)
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM appointment a
        WHERE a.practice_id = p_practice AND a.patient_id = p_patient AND a.status <> 'cancelled'
          AND a.starts_at >= p_from - interval '2 days' AND a.starts_at < p_to AND a.ends_at > p_from
          AND a.appointment_id IS DISTINCT FROM p_moved
    )
$$;

CREATE FUNCTION get_patient(p_practice bigint, p_patient text, p_number integer) RETURNS SETOF patient
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF p_patient IS NOT NULL THEN
        RETURN QUERY SELECT * FROM patient p WHERE p.practice_id = p_practice AND p.patient_id = p_patient;
    ELSE
        RETURN QUERY SELECT * FROM patient p WHERE p.practice_id = p_practice AND p.number = p_number;
    END IF;
END $$;

-- People with these names, this birth date and a phone number whose digits contain the given ones, or, seven digits or
-- longer, are contained in them (frontdesk.domain.patients.same_phone asks the same).
CREATE FUNCTION match_patients(p_practice bigint, p_name_key text, p_dob date, p_digits text) RETURNS SETOF patient
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT * FROM patient p
    WHERE p.practice_id = p_practice AND p.dob = p_dob AND p.name_key = p_name_key
      AND (strpos(p.phone_digits, p_digits) > 0
           OR (length(p.phone_digits) >= 7 AND strpos(p_digits, p.phone_digits) > 0))
    ORDER BY p.number;
END $$;

CREATE FUNCTION get_appointment(p_practice bigint, p_appointment text) RETURNS SETOF appointment
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY SELECT * FROM appointment a WHERE a.practice_id = p_practice AND a.appointment_id = p_appointment;
END $$;

-- A page of appointments after a position, in order of start. A date filter is a window per location, since a day
-- begins when the location's own midnight strikes; without one p_locations is null.
CREATE FUNCTION list_appointments(
    p_practice bigint, p_patient text, p_provider integer, p_location integer, p_visit_type integer,
    p_procedure integer, p_locations integer[], p_froms timestamptz[], p_tos timestamptz[],
    p_after timestamptz, p_after_id text, p_limit integer
)
RETURNS SETOF appointment
LANGUAGE plpgsql AS $$
DECLARE
    earliest timestamptz := (SELECT min(f) FROM unnest(p_froms) f);
    latest   timestamptz := (SELECT max(t) FROM unnest(p_tos) t);
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT a.* FROM appointment a
    WHERE a.practice_id = p_practice
      AND a.starts_at >= greatest(coalesce(p_after, '-infinity'), coalesce(earliest, '-infinity'))
      AND a.starts_at < coalesce(latest, 'infinity')
      AND (p_after IS NULL OR (a.starts_at, a.appointment_id) > (p_after, p_after_id))
      AND (p_patient IS NULL OR a.patient_id = p_patient)
      AND (p_provider IS NULL OR a.provider_id = p_provider)
      AND (p_location IS NULL OR a.location_id = p_location)
      AND (p_visit_type IS NULL OR a.visit_type_id = p_visit_type)
      AND (p_procedure IS NULL OR a.procedure_id = p_procedure)
      AND (p_locations IS NULL OR EXISTS (
          SELECT FROM unnest(p_locations, p_froms, p_tos) AS day (location_id, f, t)
          WHERE day.location_id = a.location_id AND a.starts_at >= day.f AND a.starts_at < day.t
      ))
    ORDER BY a.starts_at, a.appointment_id
    LIMIT p_limit;
END $$;

-- A practice's whole directory with the version it has, read in one statement and so in one snapshot.
CREATE FUNCTION load_directory(p_practice bigint) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN (
        SELECT jsonb_build_object(
            'practice', to_jsonb(p),
            'locations', (SELECT jsonb_agg(to_jsonb(l) ORDER BY l.location_id)
                          FROM location l WHERE l.practice_id = p_practice),
            'providers', (SELECT jsonb_agg(to_jsonb(v) ORDER BY v.provider_id)
                          FROM provider v WHERE v.practice_id = p_practice),
            'visit_types', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.visit_type_id)
                            FROM visit_type t WHERE t.practice_id = p_practice),
            'procedures', (SELECT jsonb_agg(to_jsonb(r) ORDER BY r.visit_type_id, r.procedure_id)
                           FROM procedure r WHERE r.practice_id = p_practice)
        ) FROM practice p WHERE p.practice_id = p_practice
    );
END $$;
