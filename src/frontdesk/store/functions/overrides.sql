-- Appointments that staff book against the rules. Each is in a lane of its own, from first_override_lane() on: the exclusion
-- constraint holds for these lanes, too, and no booking of another caller ever gets one.

-- Python has the same number in frontdesk.domain.availability. A provider's capacity is far below it.
CREATE OR REPLACE FUNCTION first_override_lane() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 1001 $$;

-- Whether overrides leave no place in [p_from, p_to), where there is at least one: the lanes of appointments, live holds and
-- overrides together reach the capacity at some moment. The appointment or the hold p_except does not count. A lane counts
-- once: a caller whose clock is behind may find an expired hold together with the appointment that has its lane now.
CREATE OR REPLACE FUNCTION is_full_by_override(
    p_practice bigint, p_provider integer, p_capacity integer, p_from timestamptz, p_to timestamptz, p_except text,
    p_now timestamptz
)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (
        WITH taken AS (
            SELECT a.lane, greatest(a.starts_at, p_from) AS since, a.busy_until AS until FROM appointment a
            WHERE a.practice_id = p_practice AND a.provider_id = p_provider
              AND (a.lane <= p_capacity OR a.lane >= first_override_lane())
              AND a.status <> 'cancelled' AND a.starts_at >= p_from - max_appointment_length() AND a.starts_at < p_to
              AND a.busy_until > p_from AND a.appointment_id IS DISTINCT FROM p_except
            UNION ALL
            SELECT h.lane, greatest(h.starts_at, p_from), h.busy_until FROM slot_hold h
            WHERE h.practice_id = p_practice AND h.provider_id = p_provider AND h.lane <= p_capacity
              AND h.live AND h.held_until > p_now AND h.starts_at >= p_from - max_appointment_length() AND h.starts_at < p_to
              AND h.busy_until > p_from AND h.hold_id IS DISTINCT FROM p_except
        )
        -- The number only grows where one begins.
        SELECT FROM taken began
        WHERE (SELECT count(DISTINCT t.lane) FROM taken t WHERE t.since <= began.since AND t.until > began.since)
              >= p_capacity
    );
END $$;

-- The smallest lane of an override that is free for the whole of [p_from, p_to). The caller has locked the provider's row.
CREATE OR REPLACE FUNCTION override_lane(
    p_practice bigint, p_provider integer, p_from timestamptz, p_to timestamptz, p_except text
)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_lane integer := first_override_lane();
BEGIN
    WHILE EXISTS (
        SELECT FROM appointment a
        WHERE a.practice_id = p_practice AND a.provider_id = p_provider AND a.lane = v_lane
          AND a.status <> 'cancelled' AND a.starts_at >= p_from - max_appointment_length() AND a.starts_at < p_to
          AND a.busy_until > p_from AND a.appointment_id IS DISTINCT FROM p_except
    ) LOOP
        v_lane := v_lane + 1;
    END LOOP;
    RETURN v_lane;
END $$;

-- The rules that a change still breaks: a time counts as full only if it has no lane now..
CREATE OR REPLACE FUNCTION rules_broken(c jsonb, p_open_lane integer) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF c ->> 'override' IS NULL THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(
        SELECT r.rule FROM jsonb_array_elements_text(c -> 'override' -> 'rules') AS r (rule)
        WHERE r.rule <> 'full' OR p_open_lane IS NULL
    );
END $$;

CREATE OR REPLACE FUNCTION record_override(
    p_practice bigint, p_appointment text, p_staff text, p_rules text[], c jsonb, p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO appointment_override (practice_id, appointment_id, at, staff_id, rules, reason)
    VALUES (p_practice, p_appointment, p_now, p_staff, p_rules, c -> 'override' ->> 'reason')
    ON CONFLICT (practice_id, appointment_id, at) DO UPDATE SET
        staff_id = excluded.staff_id, rules = excluded.rules, reason = excluded.reason;
END $$;

-- Whether the last override of the appointment was for a full time.
CREATE OR REPLACE FUNCTION is_overbooked(p_practice bigint, p_appointment text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((
        SELECT 'full' = ANY (o.rules) FROM appointment_override o
        WHERE o.practice_id = p_practice AND o.appointment_id = p_appointment ORDER BY o.at DESC LIMIT 1
    ), false);
END $$;

-- The overrides of these appointments, oldest first, and whether each is the one that the appointment stands by now. Without
-- a join and with a generic plan: PostgreSQL takes a practice that is new in a large database for empty, would begin with all
-- its appointments, and would look through the array for each of them.
CREATE OR REPLACE FUNCTION list_overrides(p_practice bigint, p_appointments text[])
RETURNS TABLE (appointment_id text, at timestamptz, staff_id text, rules text[], reason text, stands boolean)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT o.appointment_id, o.at, o.staff_id, o.rules, o.reason,
           row_number() OVER (PARTITION BY o.appointment_id ORDER BY o.at DESC) = 1 AND (
               SELECT a.lane >= first_override_lane() FROM appointment a
               WHERE a.practice_id = p_practice AND a.appointment_id = o.appointment_id
           )
    FROM appointment_override o
    WHERE o.practice_id = p_practice AND o.appointment_id = ANY (p_appointments)
    ORDER BY o.appointment_id, o.at;
END $$;
