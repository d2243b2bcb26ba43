-- Reads and changes of the native calendar's patients, the changes by the rules that writes.sql has for every change_*
-- function.

CREATE OR REPLACE FUNCTION get_patient(p_practice bigint, p_patient text, p_number integer) RETURNS SETOF patient
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF p_patient IS NOT NULL THEN
        RETURN QUERY SELECT * FROM patient p WHERE p.practice_id = p_practice AND p.patient_id = p_patient;
    ELSE
        RETURN QUERY SELECT * FROM patient p WHERE p.practice_id = p_practice AND p.number = p_number;
    END IF;
END $$;

-- Patients with this key of their names, this date of birth and a phone number whose digits contain the given ones or, with
-- seven or more digits, are contained in them; with p_ending, fewer than seven digits must end it. The same rule as
-- frontdesk.domain.patients.same_phone. The key has no marks, so
-- callers compare the names (frontdesk.domain.patients.spelling_key).
CREATE OR REPLACE FUNCTION match_patients(
    p_practice bigint, p_name_key text, p_dob date, p_digits text, p_ending boolean
)
RETURNS SETOF patient
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT * FROM patient p
    WHERE p.practice_id = p_practice AND p.dob = p_dob AND p.name_key = p_name_key AND p_digits <> ''
      AND (strpos(p.phone_digits, p_digits) > 0
           OR (length(p.phone_digits) >= 7 AND strpos(p_digits, p.phone_digits) > 0))
      AND (NOT p_ending OR length(p_digits) >= 7 OR right(p.phone_digits, length(p_digits)) = p_digits)
    ORDER BY p.number;
END $$;

-- With a generic plan: PostgreSQL takes a practice that is new in a large database for empty, and would read all its patients.
CREATE OR REPLACE FUNCTION patient_contacts(p_practice bigint, p_patients text[])
RETURNS TABLE (patient_id text, first_name text, last_name text, dob date, phone text)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT p.patient_id, p.first_name, p.last_name, p.dob, p.phone FROM patient p
    WHERE p.practice_id = p_practice AND p.patient_id = ANY (p_patients);
END $$;

-- Patients by what is known of them: how the first and the last name begin (one pair per reading of the typed text,
-- either may be empty), the last digits of the phone number, the date of birth. Null: not known. A reading with a last
-- name is looked up by it. At most p_limit rows are sorted or returned.
CREATE OR REPLACE FUNCTION search_patients(
    p_practice bigint, p_firsts text[], p_lasts text[], p_tail text, p_dob date, p_limit integer
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
             LIMIT p_limit)
            UNION ALL
            (SELECT * FROM patient p
             WHERE w.l = '' AND p.practice_id = p_practice
               AND p.name_key COLLATE "C" >= w.f AND p.name_key COLLATE "C" < w.f || v_past
             LIMIT p_limit)
        ) p LIMIT p_limit;
    ELSIF p_dob IS NOT NULL THEN
        RETURN QUERY
        SELECT * FROM patient p
        WHERE p.practice_id = p_practice AND p.dob = p_dob
          AND (p_tail IS NULL OR left(p.phone_tail, length(p_tail)) = p_tail)
          AND (p_firsts = '{}' OR EXISTS (
              SELECT FROM unnest(p_firsts, p_lasts) AS w (f, l)
              WHERE left(p.name_key, length(w.f)) = w.f AND left(p.last_key, length(w.l)) = w.l
          ))
        LIMIT p_limit;
    ELSE
        RETURN QUERY
        SELECT * FROM patient p
        WHERE p.practice_id = p_practice
          AND p.phone_tail COLLATE "C" >= p_tail AND p.phone_tail COLLATE "C" < p_tail || v_past
          AND (p_firsts = '{}' OR EXISTS (
              SELECT FROM unnest(p_firsts, p_lasts) AS w (f, l)
              WHERE left(p.name_key, length(w.f)) = w.f AND left(p.last_key, length(w.l)) = w.l
          ))
        LIMIT p_limit;
    END IF;
END $$;

-- Whether another patient is the same person. `namesakes`: names with the same key that the caller found to be different.
-- Not the ids of their patients, who may get other names meanwhile.
CREATE OR REPLACE FUNCTION patient_is_on_file(p_practice bigint, c jsonb) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM match_patients(p_practice, c ->> 'nameKey', (c ->> 'dob')::date, c ->> 'phoneDigits', false) m
    WHERE m.patient_id <> c ->> 'patientId' AND NOT c -> 'namesakes' @> jsonb_build_array(
        jsonb_build_object('firstName', m.first_name, 'lastName', m.last_name));
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION change_create_patient(p_practice bigint, c jsonb, p_actor text, p_now timestamptz)
RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    v_id     text := c ->> 'patientId';
    v_number integer;
BEGIN
    INSERT INTO patient_counter (practice_id, last_number) VALUES (p_practice, 1)
    ON CONFLICT (practice_id) DO UPDATE SET last_number = patient_counter.last_number + 1
    RETURNING last_number INTO v_number;
    IF patient_is_on_file(p_practice, c) THEN
        RETURN ('conflict', 'patient_exists', NULL, '{}', NULL, NULL)::change_outcome;
    END IF;
    INSERT INTO patient (
        practice_id, patient_id, number, first_name, last_name, name_key, dob, phone, phone_digits, email, seen,
        created_at, updated_at
    ) VALUES (
        p_practice, v_id, v_number, c ->> 'firstName', c ->> 'lastName', c ->> 'nameKey', (c ->> 'dob')::date,
        c ->> 'phone', c ->> 'phoneDigits', c ->> 'email', false, p_now, p_now
    );
    RETURN ('executed', NULL, jsonb_build_object('patientId', v_id), ARRAY[v_id], 'patient.created',
            jsonb_build_object('patientId', v_id))::change_outcome;
END $$;

CREATE OR REPLACE FUNCTION change_update_patient(p_practice bigint, c jsonb, p_actor text, p_now timestamptz)
RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    p    patient;
    v_id text := c ->> 'patientId';
BEGIN
    PERFORM FROM patient_counter WHERE practice_id = p_practice FOR NO KEY UPDATE;
    SELECT * INTO p FROM patient t WHERE t.practice_id = p_practice AND t.patient_id = v_id FOR NO KEY UPDATE;
    IF (p.first_name, p.last_name, p.dob, p.phone, p.email) IS DISTINCT FROM (
        c -> 'before' ->> 'first_name', c -> 'before' ->> 'last_name', (c -> 'before' ->> 'dob')::date,
        c -> 'before' ->> 'phone', c -> 'before' ->> 'email'
    ) THEN
        RETURN ('stale', NULL, NULL, '{}', NULL, NULL)::change_outcome;
    END IF;
    -- Duplicates on file do not matter to other changes.
    IF (p.first_name, p.last_name, p.dob, p.phone) IS DISTINCT FROM (
        c ->> 'firstName', c ->> 'lastName', (c ->> 'dob')::date, c ->> 'phone'
    ) AND patient_is_on_file(p_practice, c) THEN
        RETURN ('conflict', 'patient_exists', NULL, ARRAY[v_id], NULL, NULL)::change_outcome;
    END IF;
    UPDATE patient SET
        first_name = c ->> 'firstName', last_name = c ->> 'lastName', name_key = c ->> 'nameKey',
        dob = (c ->> 'dob')::date, phone = c ->> 'phone', phone_digits = c ->> 'phoneDigits', email = c ->> 'email',
        updated_at = p_now
    WHERE practice_id = p_practice AND patient_id = v_id;
    RETURN ('executed', NULL, jsonb_build_object('patientId', v_id), ARRAY[v_id], 'patient.updated',
            jsonb_build_object('patientId', v_id))::change_outcome;
END $$;
