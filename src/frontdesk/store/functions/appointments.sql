-- Reads of the native calendar's appointments.

CREATE OR REPLACE FUNCTION get_appointment(p_practice bigint, p_appointment text) RETURNS SETOF appointment
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY SELECT * FROM appointment a WHERE a.practice_id = p_practice AND a.appointment_id = p_appointment;
END $$;

-- A page of appointments after a position, in order of start. A date filter is one window per location, because each
-- location has its own midnight; without a date filter p_locations is null.
CREATE OR REPLACE FUNCTION list_appointments(
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
