-- Webhooks: hands events to endpoints, leases deliveries, and deletes old ones.
-- Functions that look at waiting events use indexes only: without statistics the planner would read and sort them all.

-- Hands up to p_limit new events to the endpoints that subscribe to them. Events of one subject have ids in commit
-- order, because a write locks its subject first: a reader that sees the later one sees the earlier one, too.
CREATE OR REPLACE FUNCTION relay_events(p_practice bigint, p_now timestamptz, p_limit integer) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_after bigint := (SELECT min(w.after_event_id) FROM webhook_endpoint w WHERE w.practice_id = p_practice);
    v_fresh bigint[];
    d       record;
BEGIN
    SELECT array_agg(n.event_id) INTO v_fresh FROM (
        SELECT o.event_id FROM outbox o
        WHERE o.practice_id = p_practice AND NOT o.relayed AND o.event_id > v_after ORDER BY o.event_id LIMIT p_limit
    ) n;
    IF v_fresh IS NOT NULL THEN
        FOR d IN
            SELECT w.endpoint_id, o.event_id,
                   coalesce(o.subject ->> 'appointmentId', o.subject ->> 'patientId', o.event_id::text) AS subject
            FROM outbox o JOIN webhook_endpoint w ON w.practice_id = p_practice
            WHERE o.practice_id = p_practice AND o.event_id = ANY (v_fresh) AND o.event_id > w.after_event_id
              AND (w.events = '{}' OR o.type = ANY (w.events))
        LOOP
            INSERT INTO webhook_delivery (practice_id, endpoint_id, event_id, subject, state, due_at)
            VALUES (p_practice, d.endpoint_id, d.event_id, d.subject, 'pending', p_now) ON CONFLICT DO NOTHING;
        END LOOP;
        UPDATE outbox o SET relayed = true WHERE o.practice_id = p_practice AND o.event_id = ANY (v_fresh);
    END IF;
END $$;

-- Asked before deliveries are taken, because taking them writes.
CREATE OR REPLACE FUNCTION webhooks_are_due(p_practice bigint, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM outbox o
        WHERE o.practice_id = p_practice AND NOT o.relayed
          AND o.event_id > (SELECT min(w.after_event_id) FROM webhook_endpoint w WHERE w.practice_id = p_practice)
    ) OR EXISTS (
        SELECT FROM webhook_endpoint w
        WHERE w.practice_id = p_practice AND w.paused_at IS NULL AND coalesce(w.rest_until, p_now) <= p_now
          AND EXISTS (
              SELECT FROM webhook_delivery d
              WHERE d.practice_id = p_practice AND d.endpoint_id = w.endpoint_id AND d.state = 'pending'
                AND d.due_at <= p_now
          )
    );
END $$;

-- The live secrets of an endpoint, newest first.
CREATE OR REPLACE FUNCTION webhook_secrets(p_practice bigint, p_endpoint text, p_now timestamptz) RETURNS bytea[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT array_agg(s.sealed ORDER BY s.number DESC) FROM webhook_secret s
        WHERE s.practice_id = p_practice AND s.endpoint_id = p_endpoint AND coalesce(s.retires_at > p_now, true)
    );
END $$;

-- The next deliveries to an endpoint, in order: of each subject only the oldest that is pending. What has not failed yet
-- comes first, so that an event that is always refused does not delay the others. p_attempts is how often they may have
-- failed; null: as often as they did.
CREATE OR REPLACE FUNCTION next_webhook_deliveries(
    p_practice bigint, p_endpoint text, p_now timestamptz, p_limit integer, p_attempts integer
)
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_ids bigint[] := '{}';
BEGIN
    FOR v_attempts IN 0 .. coalesce(p_attempts, (
        SELECT d.attempts FROM webhook_delivery d
        WHERE d.practice_id = p_practice AND d.endpoint_id = p_endpoint AND d.state = 'pending'
        ORDER BY d.attempts DESC LIMIT 1
    ), -1) LOOP
        EXIT WHEN cardinality(v_ids) >= p_limit;
        v_ids := v_ids || ARRAY(
            SELECT d.event_id FROM webhook_delivery d
            WHERE d.practice_id = p_practice AND d.endpoint_id = p_endpoint AND d.state = 'pending'
              AND d.attempts = v_attempts AND d.due_at <= p_now
              AND d.event_id = (
                  SELECT b.event_id FROM webhook_delivery b
                  WHERE b.practice_id = p_practice AND b.endpoint_id = p_endpoint AND b.subject = d.subject
                    AND b.state = 'pending'
                  ORDER BY b.event_id LIMIT 1
              )
            ORDER BY d.due_at, d.event_id LIMIT p_limit - cardinality(v_ids)
        );
    END LOOP;
    RETURN v_ids;
END $$;

-- The advisory lock of those who hand out, forget or remove deliveries of a practice.
CREATE OR REPLACE FUNCTION webhooks_lock(p_practice bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT hashtextextended('webhooks', p_practice) $$;

-- Leases deliveries that are due, for p_lease: at most p_limit, at most p_each to one endpoint at a time, one to an
-- endpoint that fails, and of each subject only the oldest that is pending. The lock makes nodes take turns; a node that
-- finds it taken moves on to the next practice. Here and below, p_now is for tests; null: the time
-- of the database, because the clocks of nodes differ.
CREATE OR REPLACE FUNCTION lease_webhook_deliveries(
    p_practice bigint, p_now timestamptz, p_holder text, p_lease interval, p_limit integer, p_each integer
)
RETURNS TABLE (
    endpoint_id text, url text, secrets bytea[], event_id bigint, type text, subject jsonb, occurred_at timestamptz,
    attempts integer
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_now  timestamptz := coalesce(p_now, now());
    w      webhook_endpoint;
    v_free integer;
    v_left integer := p_limit;
    v_ids  bigint[];
    v_secrets bytea[];
    v_busy boolean := false;
    v_relayed boolean := false;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF NOT webhooks_are_due(p_practice, v_now) THEN
        RETURN;
    END IF;
    IF NOT pg_try_advisory_xact_lock(webhooks_lock(p_practice)) THEN
        RETURN;
    END IF;
    FOR w IN
        SELECT t.* FROM webhook_endpoint t
        WHERE t.practice_id = p_practice AND t.paused_at IS NULL AND coalesce(t.rest_until, v_now) <= v_now
        ORDER BY hashtext(t.endpoint_id || v_now::text)  -- no endpoint is always the last
    LOOP
        v_free := least(v_left, CASE WHEN w.failures > 0 THEN 1 ELSE p_each END - (
            SELECT count(*) FROM webhook_delivery d
            WHERE d.practice_id = p_practice AND d.endpoint_id = w.endpoint_id AND d.state = 'pending'
              AND d.due_at > v_now AND d.holder <> ''
        ));
        v_busy := v_busy OR v_free <= 0;
        CONTINUE WHEN v_free <= 0;
        v_ids := next_webhook_deliveries(p_practice, w.endpoint_id, v_now, v_free, 0);
        IF cardinality(v_ids) < v_free THEN
            IF NOT v_relayed THEN  -- only now: handing events over is most of the work
                PERFORM relay_events(p_practice, v_now, 500);
                v_relayed := true;
            END IF;
            v_ids := next_webhook_deliveries(p_practice, w.endpoint_id, v_now, v_free, NULL);
        END IF;
        CONTINUE WHEN v_ids = '{}';
        UPDATE webhook_delivery d SET holder = p_holder, due_at = v_now + p_lease
        WHERE d.practice_id = p_practice AND d.endpoint_id = w.endpoint_id AND d.event_id = ANY (v_ids);
        v_secrets := webhook_secrets(p_practice, w.endpoint_id, v_now);
        RETURN QUERY
        SELECT w.endpoint_id, w.url, v_secrets, o.event_id, o.type, o.subject,
               o.occurred_at, d.attempts
        FROM webhook_delivery d JOIN outbox o ON o.practice_id = p_practice AND o.event_id = d.event_id
        WHERE d.practice_id = p_practice AND d.endpoint_id = w.endpoint_id AND d.event_id = ANY (v_ids);
        v_left := v_left - cardinality(v_ids);
    END LOOP;
    IF v_left = p_limit AND NOT v_relayed AND NOT v_busy THEN  -- all endpoints rest or are paused
        PERFORM relay_events(p_practice, v_now, 500);
    END IF;
    IF v_left = p_limit THEN  -- a crash of the database may lose an idle turn, never a lease
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
END $$;

-- Records how an attempt ended. p_due is when to retry, null for never. Returns the reason if the endpoint was paused:
-- it failed for p_patience, or answered that it is gone. A success is accepted from any sender, a failure only from the
-- holder of the lease.
CREATE OR REPLACE FUNCTION finish_webhook_delivery(
    p_practice bigint, p_endpoint text, p_event bigint, p_holder text, p_now timestamptz, p_status integer,
    p_milliseconds integer, p_failure text, p_due timestamptz, p_patience interval, p_request_id text
)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    w        webhook_endpoint;
    v_rest   timestamptz;
    v_reason text;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    UPDATE webhook_delivery d SET
        state = CASE WHEN p_failure IS NULL THEN 'delivered' WHEN p_due IS NULL THEN 'dead' ELSE 'pending' END,
        attempts = d.attempts + 1, holder = '', due_at = coalesce(p_due, p_now)
    WHERE d.practice_id = p_practice AND d.endpoint_id = p_endpoint AND d.event_id = p_event AND d.state = 'pending'
      AND (p_failure IS NULL OR d.holder = p_holder);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO webhook_attempt (practice_id, endpoint_id, event_id, at, status, milliseconds, failure)
    VALUES (p_practice, p_endpoint, p_event, p_now, p_status, p_milliseconds, p_failure);
    IF p_failure IS NULL THEN
        UPDATE webhook_endpoint t SET failures = 0, failing_since = NULL, rest_until = NULL
        WHERE t.practice_id = p_practice AND t.endpoint_id = p_endpoint AND t.failures > 0;
        RETURN NULL;
    END IF;
    SELECT * INTO w FROM webhook_endpoint t
    WHERE t.practice_id = p_practice AND t.endpoint_id = p_endpoint FOR NO KEY UPDATE;
    v_rest := p_now + least(interval '5 minutes', interval '5 seconds' * power(2, least(w.failures, 10)));
    UPDATE webhook_endpoint t SET
        failures = t.failures + 1, failing_since = coalesce(t.failing_since, p_now), rest_until = v_rest
    WHERE t.practice_id = p_practice AND t.endpoint_id = p_endpoint RETURNING * INTO w;
    v_reason := CASE WHEN p_status = 410 THEN 'gone' WHEN p_now - w.failing_since >= p_patience THEN 'failing' END;
    IF v_reason IS NULL OR w.paused_at IS NOT NULL THEN
        RETURN NULL;
    END IF;
    UPDATE webhook_endpoint t SET paused_at = p_now, pause_reason = v_reason
    WHERE t.practice_id = p_practice AND t.endpoint_id = p_endpoint;
    PERFORM append_audit(p_practice, p_now, 'frontdesk', 'pause_webhook', v_reason, ARRAY[p_endpoint], p_request_id);
    RETURN v_reason;
END $$;

-- Records how several attempts ended, in their order; p_waits is the time until each is repeated, null for never. Returns
-- the endpoints that were paused, with the reasons.
CREATE OR REPLACE FUNCTION finish_webhook_deliveries(
    p_practice bigint, p_now timestamptz, p_holder text, p_endpoints text[], p_events bigint[], p_statuses integer[],
    p_milliseconds integer[], p_failures text[], p_waits interval[], p_patience interval, p_request_id text
)
RETURNS TABLE (endpoint_id text, reason text)
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, now());
BEGIN
    FOR i IN 1 .. cardinality(p_events) LOOP
        endpoint_id := p_endpoints[i];
        reason := finish_webhook_delivery(
            p_practice, endpoint_id, p_events[i], p_holder, v_now, p_statuses[i], p_milliseconds[i], p_failures[i],
            v_now + p_waits[i], p_patience, p_request_id
        );
        IF reason IS NOT NULL THEN
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;

-- Deletes deliveries that ended before a moment, and their attempts; returns how many.
CREATE OR REPLACE FUNCTION delete_old_webhook_deliveries(p_practice bigint, p_before timestamptz, p_limit integer)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    d      record;
    v_done integer := 0;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    FOR d IN
        SELECT t.endpoint_id, t.event_id FROM webhook_delivery t
        WHERE t.practice_id = p_practice AND t.state <> 'pending' AND t.due_at < p_before
        ORDER BY t.due_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    LOOP
        DELETE FROM webhook_attempt a
        WHERE a.practice_id = p_practice AND a.endpoint_id = d.endpoint_id AND a.event_id = d.event_id;
        DELETE FROM webhook_delivery t
        WHERE t.practice_id = p_practice AND t.endpoint_id = d.endpoint_id AND t.event_id = d.event_id;
        v_done := v_done + 1;
    END LOOP;
    RETURN v_done;
END $$;

-- Deletes old events, oldest first, at most p_limit; several nodes may call it at once. Events that are still to be
-- handed to an endpoint, or that a delivery refers to, are kept.
CREATE OR REPLACE FUNCTION delete_old_events(p_practice bigint, p_before timestamptz, p_limit integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_after bigint;
    v_done  integer;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    -- Keeps others from handing events over meanwhile.
    IF NOT pg_try_advisory_xact_lock(webhooks_lock(p_practice)) THEN
        RETURN 0;
    END IF;
    v_after := (SELECT min(w.after_event_id) FROM webhook_endpoint w WHERE w.practice_id = p_practice);
    DELETE FROM outbox t WHERE t.practice_id = p_practice AND t.event_id = ANY (ARRAY(
        SELECT o.event_id FROM outbox o
        WHERE o.practice_id = p_practice AND o.occurred_at < p_before
          AND (o.relayed OR v_after IS NULL OR o.event_id <= v_after)
          AND NOT EXISTS (
              SELECT FROM webhook_delivery d WHERE d.practice_id = p_practice AND d.event_id = o.event_id
          )
        ORDER BY o.event_id LIMIT p_limit
    ));
    GET DIAGNOSTICS v_done = ROW_COUNT;
    RETURN v_done;
END $$;
