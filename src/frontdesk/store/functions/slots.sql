-- What open slots are computed from. Times are returned as integers: minutes since 1970 in UTC.

-- How long an appointment or a hold may take, by constraints of their tables: what overlaps a time starts at most so long before
-- it. Python has the same number in frontdesk.domain.availability.
CREATE OR REPLACE FUNCTION max_appointment_length() RETURNS interval LANGUAGE sql IMMUTABLE AS $$ SELECT interval '2 days' $$;

-- What takes the time of the given providers, each within its own minutes [p_from, p_to), the number of changes of their
-- calendars with the mark of the last one, and the version of the directory that it was read under. A caller that knows all
-- of [p_from, p_to) as of p_known changes, the last of them marked p_marks, gets only the appointments that start in
-- [since, until), where something has changed since then; any other, or if that is no longer on record, all.
-- Integers are in network byte order: start, end and lane of each appointment; start, end, lane and expiry of each hold that
-- is live at p_now. A generic plan: planning again for the length of each array would cost more than the query.
CREATE OR REPLACE FUNCTION changed_busy_times(
    p_practice bigint, p_providers integer[], p_known bigint[], p_marks bigint[], p_from integer[], p_to integer[],
    p_now timestamptz
)
RETURNS TABLE (
    version bigint, provider_id integer, changes bigint, mark bigint, since integer, until integer, appointments bytea,
    holds bytea
)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    max_minutes CONSTANT integer := extract(epoch FROM max_appointment_length()) / 60;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT p.version, wanted.id, coalesce(c.version, 0), CASE WHEN c.recent[1][1] = c.version THEN c.recent[1][4] END,
           part.since, part.until, busy.appointments, held.holds
    FROM practice p
    CROSS JOIN unnest(p_providers, p_known, p_marks, p_from, p_to) AS wanted (id, known, mark, f, t)
    LEFT JOIN calendar_version c ON c.practice_id = p_practice AND c.provider_id = wanted.id
    CROSS JOIN LATERAL (
        SELECT count(*) = c.version - wanted.known + 1
                   AND bool_or(c.recent[n][1] = wanted.known AND c.recent[n][4] = wanted.mark) AS on_record,
               min(c.recent[n][2]) FILTER (WHERE c.recent[n][1] > wanted.known)::integer AS since,
               max(c.recent[n][3]) FILTER (WHERE c.recent[n][1] > wanted.known)::integer AS until
        FROM generate_subscripts(c.recent, 1) n WHERE c.recent[n][1] >= wanted.known
    ) changed
    CROSS JOIN LATERAL (
        SELECT CASE WHEN changed.on_record THEN greatest(coalesce(changed.since, wanted.t), wanted.f - max_minutes)
                    ELSE wanted.f - max_minutes END AS since,
               CASE WHEN changed.on_record THEN least(coalesce(changed.until, wanted.t), wanted.t)
                    ELSE wanted.t END AS until
    ) part
    CROSS JOIN LATERAL (
        SELECT to_timestamp(part.since * 60.0) AS since, to_timestamp(part.until * 60.0) AS until,
               to_timestamp(wanted.f * 60.0) AS f, to_timestamp(wanted.t * 60.0) AS t
        OFFSET 0  -- computed once, and not again for every appointment
    ) window_of
    CROSS JOIN LATERAL (
        SELECT string_agg(
            int4send(epoch_minutes(o.starts_at)) || int4send(end_minutes(o.busy_until)) || int4send(o.lane), ''
        ) AS appointments
        FROM (
            SELECT a.starts_at, a.busy_until, a.lane
            FROM appointment a
            WHERE a.practice_id = p_practice AND a.provider_id = wanted.id AND a.status <> 'cancelled'
              AND a.starts_at >= window_of.since AND a.starts_at < window_of.until AND a.busy_until > window_of.f
            ORDER BY a.starts_at
        ) o
    ) busy
    CROSS JOIN LATERAL (
        SELECT string_agg(
            int4send(epoch_minutes(h.starts_at)) || int4send(end_minutes(h.busy_until)) || int4send(h.lane)
            || int4send(epoch_minutes(h.held_until)), ''
        ) AS holds
        FROM slot_hold h
        WHERE h.practice_id = p_practice AND h.provider_id = wanted.id AND h.live AND h.held_until > p_now
          AND h.starts_at >= window_of.f - max_appointment_length() AND h.starts_at < window_of.t
          AND h.busy_until > window_of.f
    ) held
    WHERE p.practice_id = p_practice;
END $$;

-- Everything a booking is checked against: the provider's busy times and the number of changes of their calendar, and the
-- patient with their own appointments. The appointment that is being moved, or the hold that is being booked, does not count.
CREATE OR REPLACE FUNCTION booking_state(
    p_practice bigint, p_patient text, p_provider integer, p_from timestamptz, p_to timestamptz, p_except text,
    p_now timestamptz
)
RETURNS TABLE (
    version bigint, calendar bigint, starts integer[], ends integer[], lanes integer[], patient_seen boolean,
    patient_busy boolean
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_patient_busy boolean;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    v_patient_busy := patient_is_busy(p_practice, p_patient, p_from, p_to, p_except);
    RETURN QUERY
    SELECT (SELECT p.version FROM practice p WHERE p.practice_id = p_practice),
           coalesce((SELECT c.version FROM calendar_version c
                     WHERE c.practice_id = p_practice AND c.provider_id = p_provider), 0),
           coalesce(busy.starts, '{}'), coalesce(busy.ends, '{}'), coalesce(busy.lanes, '{}'),
           (SELECT t.seen FROM patient t WHERE t.practice_id = p_practice AND t.patient_id = p_patient),
           v_patient_busy
    FROM (
        SELECT array_agg(epoch_minutes(o.starts_at)) AS starts, array_agg(end_minutes(o.busy_until)) AS ends,
               array_agg(o.lane) AS lanes
        FROM (
            SELECT a.starts_at, a.busy_until, a.lane
            FROM appointment a
            WHERE a.practice_id = p_practice AND a.provider_id = p_provider AND a.status <> 'cancelled'
              AND a.starts_at >= p_from - max_appointment_length() AND a.starts_at < p_to + max_appointment_length()
              AND a.busy_until > p_from AND a.appointment_id IS DISTINCT FROM p_except
            UNION ALL
            SELECT h.starts_at, h.busy_until, h.lane
            FROM slot_hold h
            WHERE h.practice_id = p_practice AND h.provider_id = p_provider AND h.live AND h.held_until > p_now
              AND h.starts_at >= p_from - max_appointment_length() AND h.starts_at < p_to + max_appointment_length()
              AND h.busy_until > p_from AND h.hold_id IS DISTINCT FROM p_except
            ORDER BY starts_at
        ) o
    ) busy;
END $$;

-- Whether the patient has another live appointment that overlaps [p_from, p_to).
CREATE OR REPLACE FUNCTION patient_is_busy(
    p_practice bigint, p_patient text, p_from timestamptz, p_to timestamptz, p_moved text
)
RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM FROM appointment a
    WHERE a.practice_id = p_practice AND a.patient_id = p_patient AND a.status <> 'cancelled'
      AND a.starts_at >= p_from - max_appointment_length() AND a.starts_at < p_to AND a.ends_at > p_from
      AND a.appointment_id IS DISTINCT FROM p_moved;
    RETURN FOUND;
END $$;
