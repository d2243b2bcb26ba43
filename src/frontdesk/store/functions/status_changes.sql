-- Changes of an appointment's status in the native calendar, by the rules that writes.sql has for every change_* function.

-- Cancel, confirm attendance, and what the practice itself records or takes back: a step from one of the given states
-- to another. A cancelled appointment gets its time back only if that is still free, or was overbooked before.
CREATE OR REPLACE FUNCTION change_status(p_practice bigint, c jsonb, p_actor text, p_now timestamptz)
RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    a        appointment;
    v_id     text := c ->> 'appointmentId';
    v_status text := c ->> 'status';
    v_seen   boolean := v_status IN ('arrived', 'completed');
    v_back   boolean := c -> 'fromStates' ? 'cancelled';
    v_lane   integer;
    v_capacity integer;
BEGIN
    IF v_back THEN
        SELECT p.capacity INTO v_capacity FROM provider p WHERE p.practice_id = p_practice AND p.provider_id = (
            SELECT t.provider_id FROM appointment t WHERE t.practice_id = p_practice AND t.appointment_id = v_id
        ) FOR NO KEY UPDATE;
    END IF;
    IF v_seen OR v_back THEN
        PERFORM FROM patient p WHERE p.practice_id = p_practice AND p.patient_id = (
            SELECT t.patient_id FROM appointment t WHERE t.practice_id = p_practice AND t.appointment_id = v_id
        ) FOR NO KEY UPDATE;
    END IF;
    SELECT * INTO a FROM appointment WHERE practice_id = p_practice AND appointment_id = v_id FOR UPDATE;
    IF a.updated_at <> (c ->> 'unchangedSince')::timestamptz THEN
        RETURN ('conflict', 'changed', NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
    END IF;
    -- It was moved since it was read, or what is to stay as it is has changed.
    IF a.starts_at <> (c ->> 'startsAt')::timestamptz
       OR (a.status <> v_status AND c -> 'fromStates' = jsonb_build_array(v_status)) THEN
        RETURN ('stale', NULL, NULL, '{}', NULL, NULL)::change_outcome;
    END IF;
    IF a.status NOT IN (SELECT jsonb_array_elements_text(c -> 'fromStates'))
       OR ((c ->> 'onlyUpcoming')::boolean AND a.starts_at <= p_now) THEN
        RETURN ('conflict', a.status, NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
    END IF;
    IF a.status = v_status THEN
        RETURN ('unchanged', NULL, jsonb_build_object('appointmentId', v_id, 'status', v_status),
                ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
    END IF;
    v_lane := a.lane;
    IF v_back THEN
        IF patient_is_busy(p_practice, a.patient_id, a.starts_at, a.ends_at, v_id) THEN
            RETURN ('declined', 'patient_overlap', NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
        END IF;
        v_lane := open_lane(p_practice, a.provider_id, v_capacity, a.starts_at, a.busy_until, v_id, p_now);
        IF a.lane >= first_override_lane() AND (v_lane IS NOT NULL OR is_overbooked(p_practice, v_id)) THEN
            v_lane := override_lane(p_practice, a.provider_id, a.starts_at, a.busy_until, v_id);
        END IF;
        IF v_lane IS NULL THEN
            RETURN ('slot_unavailable', NULL, NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
        END IF;
    END IF;
    UPDATE appointment SET
        status = v_status, updated_at = p_now, lane = v_lane,
        attendance_confirmed_at = CASE
            WHEN v_status = 'booked' THEN NULL
            WHEN v_status = 'confirmed' AND a.status = 'booked' THEN p_now
            ELSE attendance_confirmed_at END,
        cancelled_at = CASE WHEN v_status = 'cancelled' THEN p_now END,
        cancellation_reason = CASE WHEN v_status = 'cancelled' THEN c ->> 'reason' END
    WHERE practice_id = p_practice AND appointment_id = v_id;
    IF v_seen THEN
        UPDATE patient p SET seen = true
        WHERE p.practice_id = p_practice AND p.patient_id = a.patient_id AND NOT p.seen;
    END IF;
    IF a.status IN ('arrived', 'completed') AND v_status NOT IN ('arrived', 'completed') THEN
        DELETE FROM appointment_attendance t WHERE t.practice_id = p_practice AND t.appointment_id = v_id;
    END IF;
    IF v_status = 'arrived' THEN  -- a completed visit that is taken back keeps its times
        INSERT INTO appointment_attendance (practice_id, appointment_id, arrived_at)
        VALUES (p_practice, v_id, p_now) ON CONFLICT DO NOTHING;
    END IF;
    IF v_status IN ('booked', 'confirmed') AND c ->> 'reason' IS NOT NULL THEN
        INSERT INTO appointment_correction (practice_id, appointment_id, at, reason)
        VALUES (p_practice, v_id, p_now, c ->> 'reason') ON CONFLICT DO NOTHING;
    END IF;
    RETURN ('executed', NULL, jsonb_build_object('appointmentId', v_id, 'status', v_status), ARRAY[v_id, a.patient_id],
            'appointment.' || v_status,
            jsonb_build_object('appointmentId', v_id, 'patientId', a.patient_id))::change_outcome;
EXCEPTION WHEN exclusion_violation THEN  -- a writer that does not lock providers was faster
    RETURN ('slot_unavailable', NULL, NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
END $$;

-- Whether a patient who has arrived is with the provider, or waits.
CREATE OR REPLACE FUNCTION change_call_in(p_practice bigint, c jsonb, p_actor text, p_now timestamptz)
RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    a        appointment;
    v_id     text := c ->> 'appointmentId';
    v_called boolean := (c ->> 'called')::boolean;
BEGIN
    SELECT * INTO a FROM appointment WHERE practice_id = p_practice AND appointment_id = v_id FOR UPDATE;
    IF a.status <> 'arrived' THEN
        RETURN ('conflict', a.status, NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
    END IF;
    UPDATE appointment_attendance SET called_at = CASE WHEN v_called THEN p_now END
    WHERE practice_id = p_practice AND appointment_id = v_id AND (called_at IS NOT NULL) <> v_called;
    RETURN (CASE WHEN FOUND THEN 'executed' ELSE 'unchanged' END, NULL,
            jsonb_build_object('appointmentId', v_id, 'status', a.status), ARRAY[v_id, a.patient_id], NULL,
            NULL)::change_outcome;
END $$;
