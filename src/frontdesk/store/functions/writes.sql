-- Writes of the native calendar. One call is one transaction: the change, the consumed intent with its result, the
-- audit record and the event commit together. Ids and times are passed in. Rules that need the directory were checked
-- by the caller, under a version that is checked again here.
--
-- Every change_* function locks in the same order (provider, patient, appointment) and checks again what may have
-- changed since the caller looked. An outcome other than 'executed' and 'unchanged' has changed nothing.
--
-- A statement of a booking reads one table, without subqueries, except for overrides and the records of assistants: Citus
-- can reuse the plans of such statements only.

-- The smallest lane of the provider's capacity that is free for the whole of [p_from, p_to), or null, also where overrides
-- take the last place. The appointment or the hold p_except does not count. The caller has locked the provider's row, as
-- everything does that takes a provider's time; or it stores nothing but a challenge, whose confirmation checks again.
CREATE OR REPLACE FUNCTION open_lane(
    p_practice bigint, p_provider integer, p_capacity integer, p_from timestamptz, p_to timestamptz, p_except text,
    p_now timestamptz
)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_taken integer[];
    v_held  integer[];
BEGIN
    -- First: a hold that is booked in between is then found twice, not missed.
    SELECT array_agg(h.lane) INTO v_held FROM slot_hold h
    WHERE h.practice_id = p_practice AND h.provider_id = p_provider
      AND h.live AND h.held_until > p_now AND h.starts_at >= p_from - max_appointment_length() AND h.starts_at < p_to
      AND h.busy_until > p_from AND h.hold_id IS DISTINCT FROM p_except;
    SELECT array_agg(a.lane) INTO v_taken FROM appointment a
    WHERE a.practice_id = p_practice AND a.provider_id = p_provider
      AND a.status <> 'cancelled' AND a.starts_at >= p_from - max_appointment_length() AND a.starts_at < p_to
      AND a.busy_until > p_from AND a.appointment_id IS DISTINCT FROM p_except;
    v_taken := coalesce(v_taken || v_held, '{}');
    IF first_override_lane() <= ANY (v_taken)
       AND is_full_by_override(p_practice, p_provider, p_capacity, p_from, p_to, p_except, p_now) THEN
        RETURN NULL;
    END IF;
    FOR v_lane IN 1..coalesce(p_capacity, 0) LOOP  -- null: there is no such provider
        IF v_lane <> ALL (v_taken) THEN
            RETURN v_lane;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- Whether the directory has changed since the caller looked. An import locks all providers first, so a booking that has
-- locked its provider either is seen by the import or sees it here.
CREATE OR REPLACE FUNCTION directory_has_changed(p_practice bigint, c jsonb) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM practice p WHERE p.practice_id = p_practice AND p.version <> (c ->> 'version')::bigint;
    RETURN FOUND;
END $$;

-- 'refused' comes with what was seen, from which the caller finds the reason; 'stale' with the version of the directory now.
CREATE OR REPLACE FUNCTION change_book(p_practice bigint, c jsonb, p_actor text, p_now timestamptz)
RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    v_capacity   integer;
    v_seen       boolean;
    v_version    bigint;
    v_busy       boolean;
    v_lane       integer;
    v_starts     timestamptz := (c ->> 'startsAt')::timestamptz;
    v_ends       timestamptz := (c ->> 'endsAt')::timestamptz;
    v_busy_until timestamptz := (c ->> 'busyUntil')::timestamptz;
    v_provider   integer := (c ->> 'providerId')::integer;
    v_patient    text := c ->> 'patientId';
    v_id         text := c ->> 'appointmentId';
    v_hold       text := c ->> 'holdId';
    v_broken     text[];
BEGIN
    SELECT v.capacity INTO v_capacity FROM provider v
    WHERE v.practice_id = p_practice AND v.provider_id = v_provider FOR NO KEY UPDATE;
    SELECT t.seen INTO v_seen FROM patient t
    WHERE t.practice_id = p_practice AND t.patient_id = v_patient FOR NO KEY UPDATE;
    SELECT p.version INTO v_version FROM practice p WHERE p.practice_id = p_practice;
    IF v_version <> (c ->> 'version')::bigint THEN
        RETURN ('stale', NULL, jsonb_build_object('version', v_version), '{}', NULL, NULL)::change_outcome;
    END IF;
    v_busy := patient_is_busy(p_practice, v_patient, v_starts, v_ends, NULL);
    v_lane := open_lane(p_practice, v_provider, v_capacity, v_starts, v_busy_until, v_hold, p_now);
    v_broken := rules_broken(c, v_lane);
    IF 'full' = ANY (v_broken) OR v_lane IS NOT NULL AND cardinality(v_broken) > 0 THEN
        v_lane := override_lane(p_practice, v_provider, v_starts, v_busy_until, NULL);
    END IF;
    IF is_refused(c, v_seen, v_busy, v_lane) THEN
        RETURN ('refused', NULL, booking_seen(v_seen, v_busy, v_lane), '{}', NULL, NULL)::change_outcome;
    END IF;
    IF v_hold IS NOT NULL AND NOT end_hold(p_practice, v_hold, p_actor, p_now) THEN
        RETURN ('refused', NULL, booking_seen(v_seen, v_busy, NULL), '{}', NULL, NULL)::change_outcome;
    END IF;
    INSERT INTO appointment (
        practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id, procedure_id, lane,
        starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at
    ) VALUES (
        p_practice, v_id, v_patient, v_provider, (c ->> 'locationId')::integer, (c ->> 'visitTypeId')::integer,
        (c ->> 'procedureId')::integer, v_lane, v_starts, v_ends, v_busy_until, 'booked', p_actor, p_now, p_now
    );
    IF cardinality(v_broken) > 0 THEN
        PERFORM record_override(p_practice, v_id, p_actor, v_broken, c, p_now);
    END IF;
    RETURN ('executed', NULL, jsonb_build_object('appointmentId', v_id), ARRAY[v_id, v_patient], 'appointment.booked',
            jsonb_build_object('appointmentId', v_id, 'patientId', v_patient))::change_outcome;
EXCEPTION WHEN exclusion_violation THEN  -- a writer that does not lock providers was faster
    RETURN ('refused', NULL, booking_seen(v_seen, v_busy, NULL), '{}', NULL, NULL)::change_outcome;
END $$;

-- Whether a booking is refused. p_seen, whether the practice has seen the patient, is null if there is no such patient.
CREATE OR REPLACE FUNCTION is_refused(c jsonb, p_seen boolean, p_busy boolean, p_lane integer) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_seen IS NULL OR p_seen <> coalesce((c ->> 'patientSeen')::boolean, p_seen) OR p_busy OR p_lane IS NULL
$$;

CREATE OR REPLACE FUNCTION booking_seen(p_seen boolean, p_busy boolean, p_lane integer) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object('patientSeen', p_seen, 'patientBusy', p_busy, 'available', p_lane IS NOT NULL)
$$;

-- The outcome of a booking that would not succeed now; null if it would.
CREATE OR REPLACE FUNCTION failure_of_booking(p_practice bigint, c jsonb, p_now timestamptz) RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    v_starts   timestamptz := (c ->> 'startsAt')::timestamptz;
    v_provider integer := (c ->> 'providerId')::integer;
    v_patient  text := c ->> 'patientId';
    v_capacity integer;
    v_seen     boolean;
    v_version  bigint;
    v_busy     boolean;
    v_lane     integer;
BEGIN
    SELECT v.capacity INTO v_capacity FROM provider v
    WHERE v.practice_id = p_practice AND v.provider_id = v_provider;
    SELECT t.seen INTO v_seen FROM patient t WHERE t.practice_id = p_practice AND t.patient_id = v_patient;
    -- Last: the provider is then not of a later version.
    SELECT p.version INTO v_version FROM practice p WHERE p.practice_id = p_practice;
    IF v_version <> (c ->> 'version')::bigint THEN
        RETURN ('stale', NULL, jsonb_build_object('version', v_version), '{}', NULL, NULL)::change_outcome;
    END IF;
    v_busy := patient_is_busy(p_practice, v_patient, v_starts, (c ->> 'endsAt')::timestamptz, NULL);
    v_lane := open_lane(
        p_practice, v_provider, v_capacity, v_starts, (c ->> 'busyUntil')::timestamptz, c ->> 'holdId', p_now);
    IF is_refused(c, v_seen, v_busy, v_lane) THEN
        RETURN ('refused', NULL, booking_seen(v_seen, v_busy, v_lane), '{}', NULL, NULL)::change_outcome;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION change_reschedule(p_practice bigint, c jsonb, p_actor text, p_now timestamptz)
RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    a            appointment;
    v_capacity   integer;
    v_lane       integer;
    v_starts     timestamptz := (c ->> 'startsAt')::timestamptz;
    v_ends       timestamptz := (c ->> 'endsAt')::timestamptz;
    v_busy_until timestamptz := (c ->> 'busyUntil')::timestamptz;
    v_provider   integer := (c ->> 'providerId')::integer;
    v_id         text := c ->> 'appointmentId';
    v_broken     text[];
BEGIN
    PERFORM FROM provider
    WHERE practice_id = p_practice AND provider_id IN (v_provider, (c ->> 'fromProviderId')::integer)
    ORDER BY provider_id FOR NO KEY UPDATE;
    IF directory_has_changed(p_practice, c) THEN
        RETURN ('stale', NULL, NULL, '{}', NULL, NULL)::change_outcome;
    END IF;
    SELECT capacity INTO v_capacity FROM provider WHERE practice_id = p_practice AND provider_id = v_provider;
    PERFORM FROM patient WHERE practice_id = p_practice AND patient_id = c ->> 'patientId' FOR NO KEY UPDATE;
    SELECT * INTO a FROM appointment WHERE practice_id = p_practice AND appointment_id = v_id FOR UPDATE;
    IF a.updated_at <> (c ->> 'unchangedSince')::timestamptz THEN
        RETURN ('conflict', 'changed', NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
    END IF;
    IF a.status NOT IN (SELECT jsonb_array_elements_text(c -> 'fromStates')) OR a.starts_at <= p_now THEN
        RETURN ('conflict', a.status, NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
    END IF;
    -- Another call may have made the same move meanwhile; since then the patient may have confirmed.
    IF (a.provider_id, a.location_id, a.visit_type_id, a.procedure_id, a.starts_at, a.ends_at) = (
        v_provider, (c ->> 'locationId')::integer, (c ->> 'visitTypeId')::integer, (c ->> 'procedureId')::integer,
        v_starts, v_ends
    ) THEN
        RETURN ('unchanged', NULL, jsonb_build_object('appointmentId', v_id, 'status', a.status),
                ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
    END IF;
    IF patient_is_busy(p_practice, a.patient_id, v_starts, v_ends, v_id) THEN
        RETURN ('declined', 'patient_overlap', NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
    END IF;
    v_lane := open_lane(p_practice, v_provider, v_capacity, v_starts, v_busy_until, v_id, p_now);
    v_broken := rules_broken(c, v_lane);
    IF 'full' = ANY (v_broken) OR v_lane IS NOT NULL AND cardinality(v_broken) > 0 THEN
        v_lane := override_lane(p_practice, v_provider, v_starts, v_busy_until, v_id);
    END IF;
    IF v_lane IS NULL THEN
        RETURN ('slot_unavailable', NULL, NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
    END IF;
    UPDATE appointment SET
        provider_id = v_provider, location_id = (c ->> 'locationId')::integer,
        visit_type_id = (c ->> 'visitTypeId')::integer, procedure_id = (c ->> 'procedureId')::integer, lane = v_lane,
        starts_at = v_starts, ends_at = v_ends, busy_until = v_busy_until, status = 'booked',
        attendance_confirmed_at = NULL, rescheduled_from = a.starts_at, updated_at = p_now
    WHERE practice_id = p_practice AND appointment_id = v_id;
    PERFORM record_appointment_move(p_practice, v_id, a.starts_at, jsonb_build_object(
        'providerId', a.provider_id, 'locationId', a.location_id, 'visitTypeId', a.visit_type_id,
        'procedureId', a.procedure_id, 'endsAt', a.ends_at));
    IF cardinality(v_broken) > 0 THEN
        PERFORM record_override(p_practice, v_id, p_actor, v_broken, c, p_now);
    END IF;
    RETURN ('executed', NULL, jsonb_build_object('appointmentId', v_id, 'status', 'booked'), ARRAY[v_id, a.patient_id],
            'appointment.rescheduled',
            jsonb_build_object('appointmentId', v_id, 'patientId', a.patient_id))::change_outcome;
EXCEPTION WHEN exclusion_violation THEN
    RETURN ('slot_unavailable', NULL, NULL, ARRAY[v_id, a.patient_id], NULL, NULL)::change_outcome;
END $$;

-- The consent of a write as a member of its event. STABLE like jsonb_build_object itself, so that the planner can inline it.
CREATE OR REPLACE FUNCTION consent_member(p_data jsonb) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_data ->> 'consent' IS NULL THEN '{}' ELSE jsonb_build_object('consent', p_data -> 'consent') END
$$;

-- Adds the event of a write. p_data is that of the write.
CREATE OR REPLACE FUNCTION add_event(
    p_practice bigint, p_type text, p_subject jsonb, p_data jsonb, p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_event bigint;
BEGIN
    INSERT INTO outbox (practice_id, type, subject, occurred_at)
    VALUES (p_practice, p_type, p_subject || consent_member(p_data), p_now) RETURNING event_id INTO v_event;
    IF p_data ->> 'traceparent' IS NOT NULL THEN
        INSERT INTO event_trace VALUES (p_practice, v_event, p_data ->> 'traceparent');
    END IF;
END $$;

-- Executes one write exactly once. p_intent is null for a write that carries neither token nor key. p_data also has the
-- consent, if somebody was asked, the trace, if the call is traced, the limits of the client, if it has any, and the time of the
-- appointment's last change, if the caller demands that it is unchanged. Outcomes in addition to those of the change:
-- 'rate_limited', 'replayed' (the stored result), 'mismatch', 'unrecognized', 'expired', 'incomplete', 'approval_pending',
-- 'approval_refused', 'stale' (the directory or the patient changed since the caller looked: look again). The caller records a
-- booking that is 'refused'.
CREATE OR REPLACE FUNCTION commit_write(
    p_practice bigint, p_change text, p_data jsonb, p_actor text, p_operation text, p_request_id text,
    p_now timestamptz, p_intent bytea, p_is_key boolean, p_fingerprint bytea, p_keep_until timestamptz
)
RETURNS TABLE (outcome text, reason text, result jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    i    intent;
    done change_outcome;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF p_is_key THEN
        DELETE FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = p_intent AND t.keep_until <= p_now;
        INSERT INTO intent (
            practice_id, intent_id, client_id, operation, fingerprint, state, created_at, expires_at, keep_until
        ) VALUES (
            p_practice, p_intent, p_actor, p_operation, p_fingerprint, 'challenged', p_now, p_keep_until, p_keep_until
        ) ON CONFLICT DO NOTHING;
    END IF;
    IF p_intent IS NOT NULL THEN
        SELECT * INTO i FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = p_intent FOR UPDATE;
        outcome := CASE
            WHEN i.client_id IS DISTINCT FROM p_actor THEN 'unrecognized'
            WHEN i.keep_until <= p_now OR i.state <> 'consumed' AND i.expires_at <= p_now THEN 'expired'
            WHEN i.fingerprint <> p_fingerprint THEN 'mismatch'
            WHEN i.state = 'consumed' THEN 'replayed'
            WHEN i.state <> 'challenged' THEN 'incomplete'
            ELSE missing_approval(i)
        END;
        IF outcome IS NOT NULL THEN
            result := CASE WHEN outcome = 'replayed' THEN i.result END;
            RETURN NEXT;
            RETURN;
        END IF;
        p_data := with_approval(p_data, i);
    END IF;

    done := refuse_over_limit(p_practice, p_actor, p_operation, p_change, p_data, p_now);
    IF done.outcome IS NULL THEN
        done := CASE p_change
            WHEN 'book' THEN change_book(p_practice, p_data, p_actor, p_now)
            WHEN 'reschedule' THEN change_reschedule(p_practice, p_data, p_actor, p_now)
            WHEN 'hold' THEN change_hold(p_practice, p_data, p_actor, p_now)
            WHEN 'release' THEN change_release(p_practice, p_data, p_actor, p_now)
            WHEN 'status' THEN change_status(p_practice, p_data, p_actor, p_now)
            WHEN 'call_in' THEN change_call_in(p_practice, p_data, p_actor, p_now)
            WHEN 'create_patient' THEN change_create_patient(p_practice, p_data, p_actor, p_now)
            WHEN 'update_patient' THEN change_update_patient(p_practice, p_data, p_actor, p_now)
        END;
    END IF;

    IF done.outcome = 'executed' THEN
        PERFORM count_write(p_practice, p_actor, p_operation, p_data, p_now);
    END IF;
    IF done.outcome IN ('executed', 'unchanged') THEN
        IF done.event IS NOT NULL THEN
            PERFORM add_event(p_practice, done.event, done.subject, p_data, p_now);
        END IF;
        UPDATE intent t SET state = 'consumed', result = done.result, challenge = NULL, keep_until = p_keep_until
        WHERE t.practice_id = p_practice AND t.intent_id = p_intent;
    ELSIF p_is_key THEN
        DELETE FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = p_intent;
    END IF;
    IF done.outcome NOT IN ('stale', 'refused') THEN
        PERFORM append_write_audit(p_practice, p_now, p_actor, p_operation,
            CASE done.outcome WHEN 'declined' THEN 'validation' ELSE done.outcome END,
            with_approver(done.subjects, p_data), p_request_id,
            CASE WHEN done.outcome IN ('executed', 'unchanged') THEN p_data ->> 'consent' END, p_intent,
            CASE WHEN done.outcome IN ('executed', 'unchanged') THEN i.challenge END);
    END IF;
    outcome := done.outcome;
    reason := done.reason;
    result := done.result;
    RETURN NEXT;
END $$;
