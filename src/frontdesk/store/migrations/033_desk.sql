-- What people at the desk need: the history of an appointment, patients found by little, and blocked time.

-- Which records of the audit trail tell of a change to an appointment, or of an attempt. Filled when they are sealed, so
-- that no write waits for it; whoever reads it looks at the unsealed ones, too.
CREATE TABLE appointment_trail (
    practice_id    bigint NOT NULL,
    appointment_id text NOT NULL,
    record_id      bigint NOT NULL,
    PRIMARY KEY (practice_id, appointment_id, record_id)
);
ALTER TABLE appointment_trail ENABLE ROW LEVEL SECURITY;
ALTER TABLE appointment_trail FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON appointment_trail USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT ON appointment_trail TO frontdesk_service;

-- Whether a record of this operation belongs to an appointment's history. Reads do not.
CREATE FUNCTION is_appointment_change(p_operation text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_operation IN (
        'book_appointment', 'cancel_appointment', 'confirm_attendance', 'reschedule_appointment',
        'console.record_arrived', 'console.record_completed', 'console.record_no_show'
    )
$$;

CREATE FUNCTION appointment_history(p_practice bigint, p_appointments text[], p_operation text)
RETURNS TABLE (
    appointment_id text, record_id bigint, at timestamptz, actor text, operation text, outcome text, request_id text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT t.appointment_id, r.record_id, r.at, r.actor, r.operation, r.outcome, r.request_id
    FROM appointment_trail t JOIN audit_record r ON r.practice_id = t.practice_id AND r.record_id = t.record_id
    WHERE t.practice_id = p_practice AND t.appointment_id = ANY (p_appointments)
      AND (p_operation IS NULL OR r.operation = p_operation)
    UNION ALL
    SELECT s.id, r.record_id, r.at, r.actor, r.operation, r.outcome, r.request_id
    FROM audit_unsealed u JOIN audit_record r ON r.practice_id = u.practice_id AND r.record_id = u.record_id
    CROSS JOIN unnest(r.subject_ids) AS s (id)
    WHERE u.practice_id = p_practice AND s.id = ANY (p_appointments) AND is_appointment_change(r.operation)
      AND (p_operation IS NULL OR r.operation = p_operation)
    ORDER BY 2;
END $$;

CREATE FUNCTION patient_contacts(p_practice bigint, p_patients text[])
RETURNS TABLE (patient_id text, first_name text, last_name text, dob date, phone text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT p.patient_id, p.first_name, p.last_name, p.dob, p.phone FROM patient p
    WHERE p.practice_id = p_practice AND p.patient_id = ANY (p_patients);
END $$;

CREATE FUNCTION upstream_records_of(p_practice bigint, p_local_ids text[]) RETURNS SETOF upstream_record
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY SELECT * FROM upstream_record r WHERE r.practice_id = p_practice AND r.local_id = ANY (p_local_ids);
END $$;

-- Plain columns, because under a policy only comparisons of plain columns may use an index.
ALTER TABLE patient ADD COLUMN last_key text GENERATED ALWAYS AS (split_part(name_key, '|', 2)) STORED;
ALTER TABLE patient ADD COLUMN phone_tail text GENERATED ALWAYS AS (reverse(phone_digits)) STORED;
CREATE INDEX patient_first_name ON patient (practice_id, name_key COLLATE "C");
CREATE INDEX patient_last_name ON patient (practice_id, last_key COLLATE "C");
CREATE INDEX patient_phone ON patient (practice_id, phone_tail COLLATE "C");

-- People by what the desk knows of them: how the first and the last name begin (one of several readings of what was
-- typed, either of the two may be empty), the last digits of the phone number, the date of birth. Null: not known. A
-- reading is looked up by its last name where it has one. Never more than p_most rows are sorted or returned.
CREATE FUNCTION search_patients(
    p_practice bigint, p_firsts text[], p_lasts text[], p_tail text, p_dob date, p_most integer
)
RETURNS SETOF patient
LANGUAGE plpgsql AS $$
DECLARE
    v_past text := chr(1114111);  -- sorts behind every other character
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF p_dob IS NULL AND p_tail IS NULL THEN
        RETURN QUERY
        SELECT DISTINCT p.* FROM unnest(p_firsts, p_lasts) AS w (f, l) CROSS JOIN LATERAL (
            (SELECT * FROM patient p
             WHERE w.l <> '' AND p.practice_id = p_practice
               AND p.last_key COLLATE "C" >= w.l AND p.last_key COLLATE "C" < w.l || v_past
               AND left(p.name_key, length(w.f)) = w.f
             LIMIT p_most)
            UNION ALL
            (SELECT * FROM patient p
             WHERE w.l = '' AND p.practice_id = p_practice
               AND p.name_key COLLATE "C" >= w.f AND p.name_key COLLATE "C" < w.f || v_past
             LIMIT p_most)
        ) p LIMIT p_most;
    ELSIF p_dob IS NOT NULL THEN
        RETURN QUERY
        SELECT * FROM patient p
        WHERE p.practice_id = p_practice AND p.dob = p_dob
          AND (p_tail IS NULL OR left(p.phone_tail, length(p_tail)) = p_tail)
          AND (p_firsts = '{}' OR EXISTS (
              SELECT FROM unnest(p_firsts, p_lasts) AS w (f, l)
              WHERE left(p.name_key, length(w.f)) = w.f AND left(p.last_key, length(w.l)) = w.l
          ))
        LIMIT p_most;
    ELSE
        RETURN QUERY
        SELECT * FROM patient p
        WHERE p.practice_id = p_practice
          AND p.phone_tail COLLATE "C" >= p_tail AND p.phone_tail COLLATE "C" < p_tail || v_past
          AND (p_firsts = '{}' OR EXISTS (
              SELECT FROM unnest(p_firsts, p_lasts) AS w (f, l)
              WHERE left(p.name_key, length(w.f)) = w.f AND left(p.last_key, length(w.l)) = w.l
          ))
        LIMIT p_most;
    END IF;
END $$;

-- Blocks a provider's time or closes a location, or takes that back, for rows with the same beginning and end. The
-- directory's version moves on with it, so that a booking judged before is judged again. Outcomes: 'executed',
-- 'unchanged' (it was blocked, or free, already), 'not_found'.
CREATE FUNCTION change_block(
    p_practice bigint, p_provider integer, p_location integer, p_block jsonb, p_remove boolean, p_actor text,
    p_operation text, p_subject text, p_now timestamptz, p_request_id text
)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_rows    jsonb;
    v_kept    jsonb;
    v_outcome text := 'unchanged';
    v_from    text := CASE WHEN p_provider IS NULL THEN 'first' ELSE 'starts' END;
    v_to      text := CASE WHEN p_provider IS NULL THEN 'last' ELSE 'ends' END;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF p_provider IS NOT NULL THEN
        SELECT v.time_off INTO v_rows FROM provider v
        WHERE v.practice_id = p_practice AND v.provider_id = p_provider AND v.active FOR NO KEY UPDATE;
    ELSE
        SELECT l.closures INTO v_rows FROM location l
        WHERE l.practice_id = p_practice AND l.location_id = p_location AND l.active FOR NO KEY UPDATE;
    END IF;
    IF v_rows IS NULL THEN
        RETURN 'not_found';
    END IF;
    SELECT coalesce(jsonb_agg(o.block ORDER BY o.place), '[]') INTO v_kept
    FROM jsonb_array_elements(v_rows) WITH ORDINALITY AS o (block, place)
    WHERE o.block ->> v_from <> p_block ->> v_from OR o.block ->> v_to <> p_block ->> v_to;
    IF p_remove = (jsonb_array_length(v_kept) < jsonb_array_length(v_rows)) THEN
        v_outcome := 'executed';
        v_kept := CASE WHEN p_remove THEN v_kept ELSE v_rows || jsonb_build_array(p_block) END;
        IF p_provider IS NOT NULL THEN
            UPDATE provider v SET time_off = v_kept WHERE v.practice_id = p_practice AND v.provider_id = p_provider;
        ELSE
            UPDATE location l SET closures = v_kept WHERE l.practice_id = p_practice AND l.location_id = p_location;
        END IF;
        UPDATE practice p SET version = p.version + 1 WHERE p.practice_id = p_practice;
    END IF;
    PERFORM append_audit(p_practice, p_now, p_actor, p_operation, v_outcome, ARRAY[p_subject], p_request_id);
    RETURN v_outcome;
END $$;

-- What an import leaves of time that was blocked at the desk: all of it. A row of the file that says the same, such as
-- an export's, adds nothing.
CREATE FUNCTION with_blocks(p_stored jsonb, p_given jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_agg(o.block ORDER BY o.place), '[]') FROM (
        SELECT g.block, g.place FROM jsonb_array_elements(p_given) WITH ORDINALITY AS g (block, place)
        WHERE NOT EXISTS (
            SELECT FROM jsonb_array_elements(p_stored) AS s (block)
            WHERE s.block ->> 'by' IS NOT NULL AND s.block - 'by' = g.block - 'by'
        )
        UNION ALL
        SELECT s.block, jsonb_array_length(p_given) + s.place
        FROM jsonb_array_elements(p_stored) WITH ORDINALITY AS s (block, place) WHERE s.block ->> 'by' IS NOT NULL
    ) o
$$;
