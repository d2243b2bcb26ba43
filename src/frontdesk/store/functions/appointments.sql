-- Reads of the native calendar's appointments.

CREATE OR REPLACE FUNCTION get_appointment(p_practice bigint, p_appointment text) RETURNS SETOF appointment
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY SELECT * FROM appointment a WHERE a.practice_id = p_practice AND a.appointment_id = p_appointment;
END $$;

-- Changes with what a calendar shows of a provider's and a location's appointments on the dates of the filter of appointment_page,
-- of their patients, and of the holds of those dates. It does not return to an earlier value when they do: the times of updates and ended holds count, too. Patients
-- are looked up one by one and with a generic plan: PostgreSQL takes a practice that is new in a large database for empty, and
-- would read all its patients, for each appointment again.
CREATE OR REPLACE FUNCTION calendar_checksum(p_practice bigint, p_filter jsonb, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_provider integer := p_filter ->> 'providerId';
    v_location integer := p_filter ->> 'locationId';
    v_earliest timestamptz := p_filter ->> 'earliest';
    v_latest   timestamptz := p_filter ->> 'latest';
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN coalesce((
        SELECT bit_xor(hash_record_extended(ROW(
            a.appointment_id, a.provider_id, a.location_id, a.visit_type_id, a.procedure_id, a.lane, a.starts_at, a.ends_at,
            a.status, a.booked_by, a.rescheduled_from, a.updated_at, a.patient_id, (
                SELECT hash_record_extended(ROW(p.first_name, p.last_name, p.dob, p.phone, p.updated_at), 0)
                FROM patient p
                WHERE p.practice_id = p_practice AND p.patient_id = a.patient_id
            )
        ), 0))
        FROM appointment a
        WHERE a.practice_id = p_practice AND a.starts_at >= v_earliest AND a.starts_at < v_latest
          AND (v_provider IS NULL OR a.provider_id = v_provider)
          AND (v_location IS NULL OR a.location_id = v_location)
    ), 0) # coalesce((
        SELECT bit_xor(hash_record_extended(ROW(
            h.hold_id, h.provider_id, h.location_id, h.visit_type_id, h.procedure_id, h.starts_at, h.ends_at, h.client_id,
            h.held_until, h.live AND h.held_until > p_now
        ), 0))
        FROM slot_hold h
        WHERE h.practice_id = p_practice AND h.starts_at >= v_earliest AND h.starts_at < v_latest
    ), 0);
END $$;

-- Stores the start and the place that an appointment is moved from. The caller has locked the appointment.
CREATE OR REPLACE FUNCTION record_appointment_move(
    p_practice bigint, p_appointment text, p_starts_at timestamptz, p_place jsonb
)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_moves bigint;
BEGIN
    SELECT count(*) INTO v_moves FROM appointment_move m
    WHERE m.practice_id = p_practice AND m.appointment_id = p_appointment;
    INSERT INTO appointment_move (practice_id, appointment_id, move, starts_at, place)
    VALUES (p_practice, p_appointment, v_moves + 1, p_starts_at, p_place);
END $$;

-- What the pages of a listing need to know of its beginning.
CREATE OR REPLACE FUNCTION begin_listing(p_practice bigint, OUT snapshot text, OUT began_at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
    snapshot := pg_current_snapshot()::text;
    began_at := now();
END $$;

-- The appointments moved since a listing began, with the starts that they had then. The time only narrows the search,
-- with room for long transactions: what the listing's snapshot could not see decides.
CREATE OR REPLACE FUNCTION appointment_moves_since(p_practice bigint, p_snapshot text, p_began_at timestamptz)
RETURNS TABLE (appointment_id text, starts_at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT DISTINCT ON (m.appointment_id) m.appointment_id, m.starts_at FROM appointment_move m
    WHERE m.practice_id = p_practice AND m.moved_at > p_began_at - interval '10 minutes'
      AND NOT pg_visible_in_snapshot(m.moved_by, p_snapshot::pg_snapshot)
    ORDER BY m.appointment_id, m.move;
END $$;

-- A page of appointments after a position, in the order of the starts that they had when the listing began. The first
-- page has neither position nor snapshot; its own snapshot is the one for the pages that follow. Members of the filter may be
-- null. Its dates are a window per location, because each location has its own midnight, and the bounds of all windows; these
-- are variables, because under row security the planner uses no index for an expression that may fail.
CREATE OR REPLACE FUNCTION appointment_page(p_practice bigint, p_filter jsonb, p_after jsonb, p_limit integer)
RETURNS TABLE (found appointment, listed_under timestamptz, snapshot text, began_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    v_patient    text := p_filter ->> 'patientId';
    v_known_to   text := p_filter ->> 'knownTo';
    v_provider   integer := p_filter ->> 'providerId';
    v_location   integer := p_filter ->> 'locationId';
    v_visit_type integer := p_filter ->> 'visitTypeId';
    v_procedure  integer := p_filter ->> 'procedureId';
    v_windows    jsonb := p_filter -> 'windows';
    v_earliest   timestamptz := coalesce(p_filter ->> 'earliest', '-infinity');
    v_latest     timestamptz := coalesce(p_filter ->> 'latest', 'infinity');
    v_after      timestamptz := p_after ->> 'startsAt';
    v_after_id   text := p_after ->> 'id';
    v_snapshot   text := p_after ->> 'snapshot';
    v_began_at   timestamptz := p_after ->> 'beganAt';
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    WITH wanted AS NOT MATERIALIZED (
        SELECT a AS found, a.starts_at, a.appointment_id FROM appointment a
        WHERE a.practice_id = p_practice AND a.starts_at >= v_earliest AND a.starts_at < v_latest
          AND (v_windows IS NULL
               OR a.starts_at >= (v_windows -> a.location_id::text ->> 0)::timestamptz
               AND a.starts_at < (v_windows -> a.location_id::text ->> 1)::timestamptz)
          AND (v_patient IS NULL OR a.patient_id = v_patient)
          AND (v_known_to IS NULL OR EXISTS (
              SELECT FROM known_patient k
              WHERE k.practice_id = p_practice AND k.client_id = v_known_to AND k.patient_id = a.patient_id
          ))
          AND (v_provider IS NULL OR a.provider_id = v_provider)
          AND (v_location IS NULL OR a.location_id = v_location)
          AND (v_visit_type IS NULL OR a.visit_type_id = v_visit_type)
          AND (v_procedure IS NULL OR a.procedure_id = v_procedure)
    ), moved AS MATERIALIZED (  -- as in appointment_moves_since
        SELECT DISTINCT ON (m.appointment_id) m.appointment_id, m.starts_at FROM appointment_move m
        WHERE m.practice_id = p_practice AND m.moved_at > v_began_at - interval '10 minutes'
          AND NOT pg_visible_in_snapshot(m.moved_by, v_snapshot::pg_snapshot)
        ORDER BY m.appointment_id, m.move
    )
    SELECT listed.found, listed.starts_at, coalesce(v_snapshot, pg_current_snapshot()::text),
           coalesce(v_began_at, now())
    FROM (
        (SELECT w.found, w.starts_at, w.appointment_id FROM wanted w
         WHERE w.starts_at >= coalesce(v_after, '-infinity')
           AND (v_after IS NULL OR (w.starts_at, w.appointment_id) > (v_after, v_after_id))
           AND w.appointment_id NOT IN (SELECT m.appointment_id FROM moved m)
         ORDER BY w.starts_at, w.appointment_id
         LIMIT p_limit)
        UNION ALL
        (SELECT w.found, m.starts_at, m.appointment_id FROM moved m
         JOIN wanted w ON w.appointment_id = m.appointment_id
         WHERE (m.starts_at, m.appointment_id) > (v_after, v_after_id))
    ) AS listed
    ORDER BY listed.starts_at, listed.appointment_id
    LIMIT p_limit;
END $$;
