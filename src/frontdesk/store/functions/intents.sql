-- Intents: writes that execute exactly once, by confirmation token or Idempotency-Key.

CREATE OR REPLACE FUNCTION find_intent(p_practice bigint, p_intent bytea) RETURNS SETOF intent
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY SELECT * FROM intent i WHERE i.practice_id = p_practice AND i.intent_id = p_intent;
END $$;

-- Stores a challenge, unless its read-back discloses more patients than the client may read, the write would exceed a limit of
-- the client, or it is of a booking that would not succeed now. p_limits are those of the client, with the patient `bookedFor`
-- whom the write books. p_proposal is what staff see who have to approve the write, null where they need not; it takes the place of
-- an earlier one of the same write. p_booking is a booking for the native calendar, null for other writes. Outcomes: 'challenged', and
-- 'stale' and 'refused' as change_book has them. Safe to repeat.
CREATE OR REPLACE FUNCTION issue_challenge(
    p_practice bigint, p_intent bytea, p_client text, p_operation text, p_fingerprint bytea, p_now timestamptz,
    p_expires timestamptz, p_subjects text[], p_request_id text, p_limits jsonb, p_booking jsonb, p_challenge text,
    p_proposal jsonb,
    OUT outcome text, OUT result jsonb, OUT exceeded text, OUT seconds integer
)
LANGUAGE plpgsql AS $$
DECLARE
    failed change_outcome;
    spent  record;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    outcome := 'challenged';
    IF p_booking IS NOT NULL THEN
        failed := failure_of_booking(p_practice, p_booking, p_now);
        IF failed.outcome IS NOT NULL THEN
            PERFORM FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = p_intent;
            IF NOT FOUND THEN  -- else a repeated call has issued it before the time was taken
                outcome := failed.outcome;
                result := failed.result;
            END IF;
            RETURN;
        END IF;
    END IF;
    -- Before anything is counted: a repeated call waits here for one that still runs.
    INSERT INTO intent (
        practice_id, intent_id, client_id, operation, fingerprint, state, challenge, created_at, expires_at,
        keep_until, approval, proposal
    ) VALUES (
        p_practice, p_intent, p_client, p_operation, p_fingerprint, 'challenged', p_challenge, p_now, p_expires,
        p_expires, CASE WHEN p_proposal IS NOT NULL THEN 'pending' END, p_proposal
    ) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    spent := reached_write_limit(p_practice, p_client, p_operation, p_limits ->> 'bookedFor', p_limits, p_now);
    IF spent.reached IS NOT NULL THEN
        PERFORM report_write_limit(p_practice, p_client, spent.reached, p_now);
        exceeded := spent.reached;
        seconds := spent.seconds;
    ELSE
        spent := spend_patient_budget(
            p_practice, p_client, p_subjects, p_now, coalesce((p_limits ->> 'patientsPerHour')::integer, 0),
            coalesce((p_limits ->> 'patientsPerDay')::integer, 0));
        exceeded := spent.exceeded;
        seconds := spent.seconds;
    END IF;
    IF exceeded IS NULL AND p_proposal IS NOT NULL THEN
        seconds := seconds_until_pending(p_practice, p_intent, p_client, p_fingerprint, p_limits, p_now);
        exceeded := CASE WHEN seconds IS NOT NULL THEN 'pendingApprovals' END;
    END IF;
    PERFORM append_write_audit(p_practice, p_now, p_client, p_operation,
        CASE WHEN exceeded IS NULL THEN 'confirmation_required' ELSE 'rate_limited' END, p_subjects, p_request_id, NULL,
        NULL, NULL);
    IF exceeded IS NOT NULL THEN
        DELETE FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = p_intent;
    END IF;
END $$;

-- Withdraws earlier proposals of the same write, which nobody has decided. Returns the seconds until the client may have one more
-- pending approval, null if it may now. Proposals of one client are counted one after the other.
CREATE OR REPLACE FUNCTION seconds_until_pending(
    p_practice bigint, p_intent bytea, p_client text, p_fingerprint bytea, p_limits jsonb, p_now timestamptz
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_pending bigint;
    v_first   timestamptz;
BEGIN
    -- Intents first, as a write that is committed locks them.
    DELETE FROM intent t WHERE t.practice_id = p_practice AND t.client_id = p_client AND t.approval = 'pending'
        AND t.fingerprint = p_fingerprint AND t.intent_id <> p_intent;
    INSERT INTO write_limit (practice_id, client_id) VALUES (p_practice, p_client) ON CONFLICT DO NOTHING;
    PERFORM FROM write_limit t WHERE t.practice_id = p_practice AND t.client_id = p_client FOR UPDATE;
    SELECT count(*), min(t.expires_at) INTO v_pending, v_first FROM intent t
    WHERE t.practice_id = p_practice AND t.client_id = p_client AND t.approval = 'pending' AND t.expires_at > p_now
      AND t.intent_id <> p_intent;
    RETURN CASE WHEN v_pending >= (p_limits ->> 'pendingApprovals')::integer
        THEN greatest(1, ceil(extract(epoch FROM v_first - p_now))) END;
END $$;

-- What keeps a write from being executed until staff have approved it; null if nothing does.
CREATE OR REPLACE FUNCTION missing_approval(i intent) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE i.approval WHEN 'pending' THEN 'approval_pending' WHEN 'refused' THEN 'approval_refused' END
$$;

-- The data of a write, with the consent of the staff member who has approved it.
CREATE OR REPLACE FUNCTION with_approval(p_data jsonb, i intent) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN i.approval = 'approved'
        THEN p_data || jsonb_build_object('consent', 'staff', 'approvedBy', i.decided_by) ELSE p_data END
$$;

-- The subjects of a write's audit record: also the staff member who has approved it.
CREATE OR REPLACE FUNCTION with_approver(p_subjects text[], p_data jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_data ->> 'approvedBy' IS NULL THEN p_subjects ELSE p_subjects || (p_data ->> 'approvedBy') END
$$;

-- The answer of the host's user to a challenge. A no deletes it, so that nobody can agree to it later.
CREATE OR REPLACE FUNCTION answer_challenge(
    p_practice bigint, p_intent bytea, p_client text, p_agreed boolean, p_now timestamptz, p_request_id text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_operation text;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF p_agreed THEN
        UPDATE intent t SET agreed = true WHERE t.practice_id = p_practice AND t.intent_id = p_intent
            AND t.client_id = p_client AND t.state = 'challenged' AND t.expires_at > p_now;
    ELSE
        DELETE FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = p_intent
            AND t.client_id = p_client AND t.state = 'challenged' RETURNING t.operation INTO v_operation;
        IF FOUND THEN
            PERFORM append_audit(p_practice, p_now, p_client, v_operation, 'consent_declined', '{}', p_request_id);
        END IF;
    END IF;
END $$;

-- Whether the host's user has agreed to a challenge of the client; null if there is no such challenge.
CREATE OR REPLACE FUNCTION is_agreed(p_practice bigint, p_intent bytea, p_client text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN (
        SELECT t.agreed FROM intent t
        WHERE t.practice_id = p_practice AND t.intent_id = p_intent AND t.client_id = p_client
    );
END $$;

-- Deletes expired challenges and old results, at most p_limit; several nodes may call it at once. ARRAY() is evaluated
-- once: a locking subquery that the plan evaluates again for every row would delete more.
CREATE OR REPLACE FUNCTION delete_expired_intents(p_practice bigint, p_now timestamptz, p_limit integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    done integer;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    DELETE FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = ANY (ARRAY(
        SELECT o.intent_id FROM intent o
        WHERE o.practice_id = p_practice AND o.keep_until <= p_now AND o.state <> 'executing'
        ORDER BY o.keep_until LIMIT p_limit FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;
