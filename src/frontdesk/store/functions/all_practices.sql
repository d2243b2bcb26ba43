-- Questions about all practices: which of them have work to be done, and what waits.

-- Looks at each practice under its own row-level policy and returns only ids. Each look is one step in an index.
CREATE OR REPLACE FUNCTION practices_with(p_chore text, p_before timestamptz) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_id    bigint;
    v_found boolean;
BEGIN
    FOR v_id IN SELECT p.practice_id FROM practice p ORDER BY p.practice_id LOOP
        PERFORM set_config('frontdesk.practice_id', v_id::text, true);
        IF p_chore = 'unsealed records' THEN
            v_found := EXISTS (SELECT FROM audit_unsealed u WHERE u.practice_id = v_id);
        ELSIF p_chore = 'unsigned heads' THEN
            v_found := EXISTS (
                SELECT FROM audit_head h
                WHERE h.practice_id = v_id AND h.sequence > 0 AND NOT EXISTS (
                    SELECT FROM audit_signed_head g WHERE g.practice_id = v_id AND g.sequence = h.sequence
                )
            );
        ELSIF p_chore = 'old intents' THEN
            v_found := EXISTS (
                SELECT FROM intent i
                WHERE i.practice_id = v_id AND i.keep_until <= p_before AND i.state <> 'executing'
            );
        ELSIF p_chore = 'old holds' THEN
            v_found := EXISTS (SELECT FROM slot_hold h WHERE h.practice_id = v_id AND h.held_at < p_before);
        ELSIF p_chore = 'unsettled identifiers' THEN
            v_found := EXISTS (
                SELECT FROM external_identifier e
                WHERE e.practice_id = v_id AND NOT e.settled AND e.created_at < p_before
            );
        ELSIF p_chore = 'old events' THEN
            v_found := p_before > (
                SELECT o.occurred_at FROM outbox o WHERE o.practice_id = v_id ORDER BY o.event_id LIMIT 1
            );
        ELSIF p_chore = 'ended deliveries' THEN
            v_found := EXISTS (
                SELECT FROM webhook_delivery d
                WHERE d.practice_id = v_id AND d.state <> 'pending' AND d.due_at < p_before
            );
        ELSIF p_chore = 'old fine counts' THEN
            v_found := EXISTS (
                SELECT FROM request_count c WHERE c.practice_id = v_id AND c.minutes = 5 AND c.began_at < p_before
            );
        ELSIF p_chore = 'old coarse counts' THEN
            v_found := EXISTS (
                SELECT FROM request_count c WHERE c.practice_id = v_id AND c.minutes = 60 AND c.began_at < p_before
            );
        ELSE
            RAISE 'unknown chore';
        END IF;
        IF v_found THEN
            RETURN NEXT v_id;
        END IF;
    END LOOP;
END $$;

-- What current_versions says of each of several practices.
CREATE OR REPLACE FUNCTION current_versions_of(p_practices bigint[])
RETURNS TABLE (practice bigint, version bigint, calendars bytea, bookings bytea)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    SELECT wanted.id, v.* FROM unnest(p_practices) AS wanted (id), current_versions(wanted.id) AS v;
END $$;

-- Up to p_look practices with webhooks after an id, and whether anything may be due there.
CREATE OR REPLACE FUNCTION practices_with_webhooks(p_after bigint, p_look integer, p_now timestamptz)
RETURNS TABLE (practice_id bigint, due boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := coalesce(p_now, now());
    v_id  bigint;
BEGIN
    FOR v_id IN
        SELECT p.practice_id FROM practice p
        WHERE p.has_webhooks AND p.practice_id > p_after ORDER BY p.practice_id LIMIT p_look
    LOOP
        PERFORM set_config('frontdesk.practice_id', v_id::text, true);
        practice_id := v_id;
        due := (
            EXISTS (SELECT FROM outbox o WHERE o.practice_id = v_id AND NOT o.relayed)
            OR EXISTS (
                SELECT FROM webhook_delivery d
                WHERE d.practice_id = v_id AND d.state = 'pending' AND d.due_at <= v_now
            )
        ) AND webhooks_are_due(v_id, v_now);
        RETURN NEXT;
    END LOOP;
END $$;

-- Rows of every practice, without its id and without zeros: numbers are to be added up, and of seconds the most taken.
-- Looks at each practice under its own row-level policy, and counts at most p_limit rows of each kind. Uses indexes only:
-- without statistics the planner would read and sort whole tables.
CREATE OR REPLACE FUNCTION measure_queues(p_limit integer)
RETURNS TABLE (metric text, state text, value double precision)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_now timestamptz := now();
    p     record;
    w     webhook_endpoint;
BEGIN
    FOR p IN SELECT t.practice_id AS id, t.has_webhooks FROM practice t LOOP
        PERFORM set_config('frontdesk.practice_id', p.id::text, true);

        IF EXISTS (SELECT FROM audit_unsealed u WHERE u.practice_id = p.id) THEN
            RETURN QUERY
            SELECT 'audit_unsealed_records', '', count(*)::double precision
            FROM (SELECT FROM audit_unsealed u WHERE u.practice_id = p.id LIMIT p_limit) n;
            RETURN QUERY
            SELECT 'audit_unsealed_seconds', '', extract(epoch FROM v_now - r.at)::double precision
            FROM audit_unsealed u JOIN audit_record r ON r.practice_id = p.id AND r.record_id = u.record_id
            WHERE u.practice_id = p.id ORDER BY u.record_id LIMIT 1;
        END IF;

        IF EXISTS (SELECT FROM upstream_write t WHERE t.practice_id = p.id) THEN
            RETURN QUERY
            SELECT 'upstream_writes', CASE WHEN n.leased THEN 'leased' ELSE 'waiting' END, 1::double precision
            FROM (
                SELECT t.holder <> '' AND t.due_at > v_now AS leased
                FROM upstream_write t WHERE t.practice_id = p.id LIMIT p_limit
            ) n;
            RETURN QUERY
            SELECT 'upstream_write_seconds', '', extract(epoch FROM v_now - min(t.began_at))::double precision
            FROM upstream_write t WHERE t.practice_id = p.id;
        END IF;
        -- A node that was restarted with corrected settings does not know what to delete.
        IF EXISTS (
            SELECT FROM upstream_misconfiguration m WHERE m.practice_id = p.id AND m.seen_at > v_now - interval '1 hour'
        ) THEN
            metric := 'upstream_misconfigured_practices';
            state := '';
            value := 1;
            RETURN NEXT;
        END IF;

        CONTINUE WHEN NOT p.has_webhooks;
        RETURN QUERY
        SELECT e.metric, '', e.value FROM (
            SELECT o.occurred_at FROM outbox o
            WHERE o.practice_id = p.id AND NOT o.relayed
              AND o.event_id > (SELECT min(t.after_event_id) FROM webhook_endpoint t WHERE t.practice_id = p.id)
            ORDER BY o.event_id LIMIT p_limit
        ) n, LATERAL (VALUES
            ('outbox_events', 1::double precision),
            ('outbox_seconds', extract(epoch FROM v_now - n.occurred_at)::double precision)
        ) AS e (metric, value);
        FOR w IN SELECT t.* FROM webhook_endpoint t WHERE t.practice_id = p.id LOOP
            metric := 'webhook_endpoints';
            state := CASE
                WHEN w.pause_reason = 'operator' THEN 'stopped'
                WHEN w.paused_at IS NOT NULL THEN 'paused'
                WHEN w.failures > 0 THEN 'failing'
                ELSE 'working'
            END;
            value := 1;
            RETURN NEXT;
            RETURN QUERY
            SELECT 'webhook_deliveries', n.state, 1::double precision FROM (
                SELECT CASE
                    WHEN w.paused_at IS NOT NULL THEN 'paused'
                    WHEN d.due_at <= v_now THEN 'due'
                    WHEN d.holder <> '' THEN 'leased'
                    ELSE 'retrying'
                END AS state
                FROM webhook_delivery d
                WHERE d.practice_id = p.id AND d.endpoint_id = w.endpoint_id AND d.state = 'pending' LIMIT p_limit
            ) n;
            CONTINUE WHEN w.paused_at IS NOT NULL OR w.rest_until > v_now;
            RETURN QUERY  -- of the next one: others may have to wait for an earlier one of their subject
            SELECT 'webhook_overdue_seconds', '',
                   extract(epoch FROM v_now - greatest(d.due_at, w.rest_until))::double precision
            FROM webhook_delivery d
            WHERE d.practice_id = p.id AND d.endpoint_id = w.endpoint_id
              AND d.event_id = (next_webhook_deliveries(p.id, w.endpoint_id, v_now, 1, NULL))[1];
        END LOOP;
    END LOOP;
END $$;
