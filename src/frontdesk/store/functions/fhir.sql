-- Practices whose calendar lives in another system: ids of its records, and writes on their way to it.

-- Our ids of records of the other system. A record seen for the first time gets the candidate id given with it, and a
-- patient the practice's next number. With a generic plan: PostgreSQL takes a practice that is new in a large database for
-- empty, and would look through all its records for each reference.
CREATE OR REPLACE FUNCTION upstream_ids(p_practice bigint, p_references text[], p_candidates text[])
RETURNS SETOF upstream_record
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    fresh  record;
    v_next integer;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF EXISTS (
        SELECT FROM unnest(p_references) AS wanted (reference)
        WHERE NOT EXISTS (
            SELECT FROM upstream_record r WHERE r.practice_id = p_practice AND r.reference = wanted.reference
        )
    ) THEN
        PERFORM FROM patient_counter WHERE practice_id = p_practice FOR NO KEY UPDATE;
        FOR fresh IN
            SELECT DISTINCT ON (w.reference) w.reference, w.candidate
            FROM unnest(p_references, p_candidates) AS w (reference, candidate)
            WHERE NOT EXISTS (
                SELECT FROM upstream_record r WHERE r.practice_id = p_practice AND r.reference = w.reference
            )
        LOOP
            v_next := NULL;
            IF fresh.candidate LIKE 'pat\_%' THEN
                UPDATE patient_counter SET last_number = last_number + 1 WHERE practice_id = p_practice
                RETURNING last_number INTO v_next;
            END IF;
            INSERT INTO upstream_record (practice_id, local_id, reference, number)
            VALUES (p_practice, fresh.candidate, fresh.reference, v_next);
        END LOOP;
    END IF;
    RETURN QUERY SELECT * FROM upstream_record r WHERE r.practice_id = p_practice AND r.reference = ANY (p_references);
END $$;

CREATE OR REPLACE FUNCTION upstream_record_of(p_practice bigint, p_local_id text, p_number integer)
RETURNS SETOF upstream_record
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF p_local_id IS NOT NULL THEN
        RETURN QUERY SELECT * FROM upstream_record r WHERE r.practice_id = p_practice AND r.local_id = p_local_id;
    ELSE
        RETURN QUERY SELECT * FROM upstream_record r WHERE r.practice_id = p_practice AND r.number = p_number;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION upstream_records_of(p_practice bigint, p_local_ids text[]) RETURNS SETOF upstream_record
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY SELECT * FROM upstream_record r WHERE r.practice_id = p_practice AND r.local_id = ANY (p_local_ids);
END $$;

-- Stores which references the practice file gives to its ids, and returns all that were ever stored.
CREATE OR REPLACE FUNCTION upstream_directory_of(
    p_practice bigint, p_kinds text[], p_references text[], p_ids integer[]
)
RETURNS SETOF upstream_directory
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    FOR n IN 1 .. cardinality(p_kinds) LOOP
        INSERT INTO upstream_directory (practice_id, kind, reference, local_id)
        VALUES (p_practice, p_kinds[n], p_references[n], p_ids[n]) ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN QUERY SELECT * FROM upstream_directory d WHERE d.practice_id = p_practice;
END $$;

-- Commits the intent as executing before the first request of a write is sent. p_kind is 'token', 'key', or 'none' for
-- a write that carries neither and gets an intent of its own. Outcomes: 'begun', 'begun again' after an attempt whose
-- request may still arrive, 'replayed', 'mismatch', 'unrecognized', 'expired', 'stale', 'incomplete', and 'busy' while
-- another write of the same subject runs, 'rate_limited' over a limit of the client, and 'approval_pending' and 'approval_refused'.
CREATE OR REPLACE FUNCTION begin_upstream_write(
    p_practice bigint, p_version bigint, p_write text, p_holder text, p_change text, p_data jsonb, p_subject text,
    p_actor text, p_operation text, p_request_id text, p_now timestamptz, p_until timestamptz, p_intent bytea,
    p_kind text, p_fingerprint bytea, p_keep_until timestamptz
)
RETURNS TABLE (outcome text, result jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    i         intent;
    v_limited change_outcome;
    v_outcome text := 'begun';
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    PERFORM FROM patient_counter c WHERE c.practice_id = p_practice FOR NO KEY UPDATE;
    IF p_kind <> 'token' THEN
        DELETE FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = p_intent AND t.keep_until <= p_now
            AND t.state <> 'executing';
        INSERT INTO intent (
            practice_id, intent_id, client_id, operation, fingerprint, state, created_at, expires_at, keep_until
        ) VALUES (
            p_practice, p_intent, p_actor, p_operation, p_fingerprint, 'challenged', p_now, p_keep_until, p_keep_until
        ) ON CONFLICT DO NOTHING;
    END IF;
    SELECT * INTO i FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = p_intent FOR UPDATE;
    outcome := CASE
        WHEN i.client_id IS DISTINCT FROM p_actor THEN 'unrecognized'
        WHEN i.fingerprint <> p_fingerprint THEN 'mismatch'
        WHEN i.state = 'consumed' THEN 'replayed'
        WHEN i.state = 'executing' THEN 'incomplete'
        WHEN i.expires_at <= p_now THEN 'expired'
        ELSE missing_approval(i)
    END;
    IF outcome IS NOT NULL THEN
        result := CASE WHEN outcome = 'replayed' THEN i.result END;
        RETURN NEXT;
        RETURN;
    END IF;
    p_data := with_approval(p_data, i);

    IF p_version <> (SELECT p.version FROM practice p WHERE p.practice_id = p_practice) THEN
        v_outcome := 'stale';
    ELSIF EXISTS (
        SELECT FROM upstream_write w
        WHERE w.practice_id = p_practice AND w.subject = p_subject AND w.phase = 'executing' AND w.holder <> ''
          AND w.due_at > p_now
    ) THEN
        v_outcome := 'busy';
    ELSE
        v_limited := refuse_over_limit(p_practice, p_actor, p_operation, p_change, p_data, p_now);
    END IF;
    IF v_limited.outcome IS NOT NULL THEN
        v_outcome := v_limited.outcome;
        PERFORM append_write_audit(p_practice, p_now, p_actor, p_operation, v_outcome, '{}', p_request_id, NULL, NULL, NULL);
    ELSIF v_outcome = 'begun' THEN
        UPDATE intent t SET state = 'executing', executing_until = p_until, keep_until = p_keep_until
        WHERE t.practice_id = p_practice AND t.intent_id = p_intent;
        IF EXISTS (SELECT FROM upstream_write w WHERE w.practice_id = p_practice AND w.intent_id = p_intent) THEN
            v_outcome := 'begun again';
        END IF;
        INSERT INTO upstream_write VALUES (
            p_practice, p_write, p_intent, 'executing', p_change, p_data, p_subject, p_kind = 'token', p_actor,
            p_operation, p_request_id, p_now, p_holder, p_until, 0
        );
    END IF;
    IF v_outcome NOT IN ('begun', 'begun again') AND p_kind <> 'token' THEN
        DELETE FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = p_intent;
    END IF;
    RETURN QUERY SELECT v_outcome, v_limited.result;
END $$;

-- Commits how a write ended: the intent with its result, the audit record, the event and the id of a created record.
-- 'executed' and 'unchanged' consume the intent; any other outcome changed nothing, and a token may be used again. The
-- row stays while something has to be released. False if the caller no longer holds the write.
CREATE OR REPLACE FUNCTION finish_upstream_write(
    p_practice bigint, p_write text, p_holder text, p_outcome text, p_result jsonb, p_subjects text[], p_event text,
    p_subject jsonb, p_record jsonb, p_releases jsonb, p_now timestamptz, p_keep_until timestamptz, p_due timestamptz
)
RETURNS TABLE (done boolean, result jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    w       upstream_write;
    r       upstream_record;
    v_local text := p_record ->> 'localId';
    v_name  text;
    v_challenge text;
    v_attendance_confirmed_at timestamptz := p_record ->> 'attendanceConfirmedAt';
    v_cancelled_at            timestamptz := p_record ->> 'cancelledAt';
    v_rescheduled_from        timestamptz := p_record ->> 'rescheduledFrom';
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT * INTO w FROM upstream_write t
    WHERE t.practice_id = p_practice AND t.write_id = p_write AND t.holder = p_holder AND t.phase = 'executing'
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, NULL::jsonb;
        RETURN;
    END IF;

    IF v_local IS NOT NULL THEN
        -- A reader may have seen the new record first and given it an id, which it keeps.
        PERFORM upstream_ids(p_practice, ARRAY[p_record ->> 'reference'], ARRAY[v_local]);
        UPDATE upstream_record t SET
            attendance_confirmed_at = CASE WHEN p_record ? 'attendanceConfirmedAt'
                THEN v_attendance_confirmed_at ELSE t.attendance_confirmed_at END,
            cancelled_at = CASE WHEN p_record ? 'cancelledAt' THEN v_cancelled_at ELSE t.cancelled_at END,
            rescheduled_from = CASE WHEN p_record ? 'rescheduledFrom'
                THEN v_rescheduled_from ELSE t.rescheduled_from END
        WHERE t.practice_id = p_practice AND t.reference = p_record ->> 'reference'
        RETURNING * INTO r;
        IF p_record ? 'rescheduledFrom' THEN
            PERFORM record_appointment_move(p_practice, r.local_id, r.rescheduled_from, p_record -> 'movedFrom');
            UPDATE upstream_record t SET starts_at = (w.data ->> 'startsAt')::timestamptz
            WHERE t.practice_id = p_practice AND t.local_id = r.local_id AND t.booked_for IS NOT NULL;
        ELSIF w.change = 'book' AND w.data ? 'limits' THEN
            UPDATE upstream_record t SET
                booked_by = w.actor, booked_for = w.data ->> 'patientId',
                starts_at = (w.data ->> 'startsAt')::timestamptz
            WHERE t.practice_id = p_practice AND t.local_id = r.local_id;
        END IF;
        v_name := CASE WHEN r.local_id LIKE 'pat\_%' THEN 'patientId' ELSE 'appointmentId' END;
        p_result := p_result || jsonb_build_object(v_name, r.local_id);
        p_subject := p_subject || jsonb_build_object(v_name, r.local_id);
        p_subjects := array_replace(p_subjects, v_local, r.local_id);
    END IF;

    IF p_outcome = 'executed' THEN
        PERFORM count_write(p_practice, w.actor, w.operation, w.data, p_now);
    END IF;
    IF p_outcome IN ('executed', 'unchanged') THEN
        IF p_event IS NOT NULL THEN
            PERFORM add_event(p_practice, p_event, p_subject, w.data, p_now);
        END IF;
        v_challenge := (
            SELECT t.challenge FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = w.intent_id
        );
        UPDATE intent t SET
            state = 'consumed', result = p_result, challenge = NULL, executing_until = NULL, keep_until = p_keep_until
        WHERE t.practice_id = p_practice AND t.intent_id = w.intent_id;
    ELSIF w.kept_intent THEN
        UPDATE intent t SET state = 'challenged', executing_until = NULL, keep_until = t.expires_at
        WHERE t.practice_id = p_practice AND t.intent_id = w.intent_id;
    ELSE
        DELETE FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = w.intent_id;
    END IF;
    IF p_outcome <> 'stale' THEN
        PERFORM append_write_audit(p_practice, p_now, w.actor, w.operation,
            CASE p_outcome WHEN 'declined' THEN 'validation' ELSE p_outcome END, with_approver(p_subjects, w.data),
            w.request_id,
            CASE WHEN p_outcome IN ('executed', 'unchanged') THEN w.data ->> 'consent' END, w.intent_id, v_challenge);
    END IF;
    IF jsonb_array_length(p_releases) > 0 THEN
        UPDATE upstream_write t SET
            phase = 'releasing', data = jsonb_build_object('releases', p_releases), due_at = p_due, holder = '',
            attempts = 0
        WHERE t.practice_id = p_practice AND t.write_id = p_write;
    ELSE
        DELETE FROM upstream_write t WHERE t.practice_id = p_practice AND t.write_id = p_write;
    END IF;
    RETURN QUERY SELECT true, p_result;
END $$;

-- Leaves a write whose outcome is unknown, or that cannot be worked on now, for a retry after p_due. p_wrong: the other
-- system did something else than it was asked to, which has to be undone.
CREATE OR REPLACE FUNCTION defer_upstream_write(
    p_practice bigint, p_write text, p_holder text, p_now timestamptz, p_due timestamptz, p_subjects text[],
    p_wrong boolean
)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    w upstream_write;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    UPDATE upstream_write t SET
        due_at = p_due, holder = '', attempts = t.attempts + 1,
        data = CASE WHEN p_wrong THEN t.data || '{"wrong": true}' ELSE t.data END
    WHERE t.practice_id = p_practice AND t.write_id = p_write AND t.holder = p_holder RETURNING * INTO w;
    IF FOUND AND w.phase = 'executing' AND p_subjects IS NOT NULL THEN
        UPDATE intent t SET executing_until = NULL WHERE t.practice_id = p_practice AND t.intent_id = w.intent_id;
        PERFORM append_audit(p_practice, p_now, w.actor, w.operation, 'confirmation_incomplete', p_subjects,
            w.request_id);
    END IF;
END $$;

-- Leases up to p_limit writes that no node holds; several nodes may call it at once. ARRAY() is evaluated once: a
-- locking subquery that the plan evaluates again for every row would take more.
CREATE OR REPLACE FUNCTION lease_upstream_writes(
    p_practice bigint, p_now timestamptz, p_holder text, p_until timestamptz, p_limit integer
)
RETURNS SETOF upstream_write
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    UPDATE upstream_write t SET holder = p_holder, due_at = p_until
    WHERE t.practice_id = p_practice AND t.write_id = ANY (ARRAY(
        SELECT o.write_id FROM upstream_write o WHERE o.practice_id = p_practice AND o.due_at <= p_now
        ORDER BY o.due_at, o.attempts LIMIT p_limit FOR UPDATE SKIP LOCKED
    ))
    RETURNING t.*;
END $$;

-- The other system does not answer: all writes of the practice wait until p_due, those that p_holder leased too, so that
-- one request at a time tries whether it is back.
CREATE OR REPLACE FUNCTION postpone_upstream_writes(p_practice bigint, p_holder text, p_due timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    UPDATE upstream_write t SET
        due_at = CASE WHEN t.holder = p_holder THEN p_due ELSE greatest(t.due_at, p_due) END, holder = ''
    WHERE t.practice_id = p_practice AND t.holder IN ('', p_holder);
END $$;

-- The other system answers again: everything that waits is due.
CREATE OR REPLACE FUNCTION retry_upstream_writes_now(p_practice bigint, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    UPDATE upstream_write t SET due_at = p_now, attempts = 0
    WHERE t.practice_id = p_practice AND t.holder = '' AND t.due_at > p_now;
END $$;

-- Stores what is still to be released; with nothing left, the write is settled.
CREATE OR REPLACE FUNCTION release_upstream_write(
    p_practice bigint, p_write text, p_holder text, p_releases jsonb, p_due timestamptz
)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF jsonb_array_length(p_releases) > 0 THEN
        UPDATE upstream_write t SET
            data = jsonb_build_object('releases', p_releases), due_at = p_due, holder = '', attempts = t.attempts + 1
        WHERE t.practice_id = p_practice AND t.write_id = p_write AND t.holder = p_holder AND t.phase = 'releasing';
    ELSE
        DELETE FROM upstream_write t
        WHERE t.practice_id = p_practice AND t.write_id = p_write AND t.holder = p_holder AND t.phase = 'releasing';
    END IF;
END $$;

-- Stores that a kind of request is refused, or without a reason that it works.
CREATE OR REPLACE FUNCTION note_upstream_misconfiguration(
    p_practice bigint, p_request text, p_reason text, p_now timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF p_reason IS NULL THEN
        DELETE FROM upstream_misconfiguration m WHERE m.practice_id = p_practice AND m.request = p_request;
    ELSE
        INSERT INTO upstream_misconfiguration VALUES (p_practice, p_request, p_reason, p_now, p_now)
        ON CONFLICT (practice_id, request) DO UPDATE SET reason = p_reason, seen_at = p_now;
    END IF;
END $$;

-- Slots that writes which have ended still hold, with the claims that may be on them.
CREATE OR REPLACE FUNCTION abandoned_upstream_claims(p_practice bigint) RETURNS TABLE (slot text, claims text[])
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT entry ->> 'slot', ARRAY(SELECT jsonb_array_elements_text(entry -> 'claims'))
    FROM upstream_write w CROSS JOIN jsonb_array_elements(w.data -> 'releases') AS entry
    WHERE w.practice_id = p_practice AND w.phase = 'releasing' AND entry ? 'slot';
END $$;

CREATE OR REPLACE FUNCTION waiting_upstream_writes(p_practice bigint) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN (SELECT count(*) FROM upstream_write w WHERE w.practice_id = p_practice);
END $$;
