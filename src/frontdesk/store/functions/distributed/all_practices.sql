-- Questions about all practices: each is one query to all workers, under a role that sees few columns of all practices.

DO $$
BEGIN
    IF to_regrole('frontdesk_overview') IS NULL THEN
        CREATE ROLE frontdesk_overview LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;  -- at workers
    END IF;
END $$;
GRANT USAGE ON SCHEMA frontdesk TO frontdesk_overview;

DO $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY[
        'audit_unsealed', 'audit_record', 'audit_head', 'audit_signed_head', 'intent', 'slot_hold', 'external_identifier',
        'outbox', 'webhook_delivery', 'webhook_endpoint', 'request_count', 'upstream_write', 'upstream_misconfiguration',
        'calendar_version'
    ] LOOP
        EXECUTE format('DROP POLICY IF EXISTS overview ON frontdesk.%I', v_table);
        EXECUTE format('CREATE POLICY overview ON frontdesk.%I FOR SELECT TO frontdesk_overview USING (true)', v_table);
    END LOOP;
END $$;
GRANT SELECT (practice_id, version, has_webhooks) ON frontdesk.practice TO frontdesk_overview;
GRANT SELECT (practice_id, record_id) ON frontdesk.audit_unsealed TO frontdesk_overview;
GRANT SELECT (practice_id, record_id, at) ON frontdesk.audit_record TO frontdesk_overview;
GRANT SELECT (practice_id, sequence) ON frontdesk.audit_head TO frontdesk_overview;
GRANT SELECT (practice_id, sequence) ON frontdesk.audit_signed_head TO frontdesk_overview;
GRANT SELECT (practice_id, state, keep_until) ON frontdesk.intent TO frontdesk_overview;
GRANT SELECT (practice_id, held_at) ON frontdesk.slot_hold TO frontdesk_overview;
GRANT SELECT (practice_id, settled, created_at) ON frontdesk.external_identifier TO frontdesk_overview;
GRANT SELECT (practice_id, event_id, occurred_at, relayed) ON frontdesk.outbox TO frontdesk_overview;
GRANT SELECT (practice_id, endpoint_id, event_id, subject, state, holder, due_at)
    ON frontdesk.webhook_delivery TO frontdesk_overview;
GRANT SELECT (practice_id, endpoint_id, after_event_id, paused_at, pause_reason, failures, rest_until)
    ON frontdesk.webhook_endpoint TO frontdesk_overview;
GRANT SELECT (practice_id, minutes, began_at) ON frontdesk.request_count TO frontdesk_overview;
GRANT SELECT (practice_id, holder, due_at, began_at) ON frontdesk.upstream_write TO frontdesk_overview;
GRANT SELECT (practice_id, seen_at) ON frontdesk.upstream_misconfiguration TO frontdesk_overview;
GRANT SELECT (practice_id, provider_id, version) ON frontdesk.calendar_version TO frontdesk_overview;

CREATE OR REPLACE FUNCTION practices_with(p_chore text, p_before timestamptz) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = frontdesk, pg_catalog, pg_temp AS $$
BEGIN
    IF p_chore = 'unsealed records' THEN
        RETURN QUERY SELECT DISTINCT u.practice_id FROM audit_unsealed u;
    ELSIF p_chore = 'unsigned heads' THEN
        RETURN QUERY
        SELECT h.practice_id FROM audit_head h
        WHERE h.sequence > 0 AND NOT EXISTS (
            SELECT FROM audit_signed_head g WHERE g.practice_id = h.practice_id AND g.sequence = h.sequence
        );
    ELSIF p_chore = 'old intents' THEN
        RETURN QUERY
        SELECT DISTINCT i.practice_id FROM intent i
        WHERE i.keep_until <= p_before AND i.state <> 'executing';
    ELSIF p_chore = 'old holds' THEN
        RETURN QUERY SELECT DISTINCT h.practice_id FROM slot_hold h WHERE h.held_at < p_before;
    ELSIF p_chore = 'unsettled identifiers' THEN
        RETURN QUERY
        SELECT DISTINCT e.practice_id FROM external_identifier e WHERE NOT e.settled AND e.created_at < p_before;
    ELSIF p_chore = 'old events' THEN
        RETURN QUERY SELECT DISTINCT o.practice_id FROM outbox o WHERE o.occurred_at < p_before;
    ELSIF p_chore = 'ended deliveries' THEN
        RETURN QUERY
        SELECT DISTINCT d.practice_id FROM webhook_delivery d WHERE d.state <> 'pending' AND d.due_at < p_before;
    ELSIF p_chore = 'old fine counts' THEN
        RETURN QUERY
        SELECT DISTINCT c.practice_id FROM request_count c WHERE c.minutes = 5 AND c.began_at < p_before;
    ELSIF p_chore = 'old coarse counts' THEN
        RETURN QUERY
        SELECT DISTINCT c.practice_id FROM request_count c WHERE c.minutes = 60 AND c.began_at < p_before;
    ELSE
        RAISE 'unknown chore';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION current_versions_of(p_practices bigint[])
RETURNS TABLE (practice bigint, version bigint, calendars bytea, bookings bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = frontdesk, pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH counted AS MATERIALIZED (
        SELECT c.practice_id, string_agg(int8send(c.provider_id) || int8send(c.version), '') AS calendars
        FROM calendar_version c WHERE c.practice_id = ANY (p_practices) GROUP BY c.practice_id
    )
    -- Triggers of rows do not tell which change is a booking alone.
    SELECT wanted.id, p.version, counted.calendars, NULL::bytea FROM unnest(p_practices) AS wanted (id)
    LEFT JOIN practice p ON p.practice_id = wanted.id LEFT JOIN counted ON counted.practice_id = wanted.id;
END $$;

CREATE OR REPLACE FUNCTION practices_with_webhooks(p_after bigint, p_look integer, p_now timestamptz)
RETURNS TABLE (practice_id bigint, due boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = frontdesk, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := coalesce(p_now, now());
    v_ids bigint[] := ARRAY(
        SELECT p.practice_id FROM practice p
        WHERE p.has_webhooks AND p.practice_id > p_after ORDER BY p.practice_id LIMIT p_look
    );
    v_due bigint[];
BEGIN
    SELECT array_agg(DISTINCT o.practice_id) INTO v_due
    FROM outbox o JOIN (
        SELECT w.practice_id, min(w.after_event_id) AS after_event_id FROM webhook_endpoint w GROUP BY w.practice_id
    ) f ON f.practice_id = o.practice_id
    WHERE o.practice_id = ANY (v_ids) AND NOT o.relayed AND o.event_id > f.after_event_id;
    v_due := v_due || (
        SELECT array_agg(DISTINCT d.practice_id)
        FROM webhook_delivery d
        JOIN webhook_endpoint w ON w.practice_id = d.practice_id AND w.endpoint_id = d.endpoint_id
        WHERE d.practice_id = ANY (v_ids) AND d.state = 'pending' AND d.due_at <= v_now
          AND w.paused_at IS NULL AND coalesce(w.rest_until, v_now) <= v_now
    );
    RETURN QUERY SELECT u.id, coalesce(u.id = ANY (v_due), false) FROM unnest(v_ids) WITH ORDINALITY AS u (id, i) ORDER BY u.i;
END $$;

-- Counts everything: p_limit bounds what a loop over practices would cost.
CREATE OR REPLACE FUNCTION measure_queues(p_limit integer)
RETURNS TABLE (metric text, state text, value double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = frontdesk, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := now();
BEGIN
    RETURN QUERY SELECT 'audit_unsealed_records', '', count(*)::double precision FROM audit_unsealed;
    RETURN QUERY
    SELECT 'audit_unsealed_seconds', '', extract(epoch FROM v_now - min(r.at))::double precision
    FROM audit_unsealed u JOIN audit_record r ON r.practice_id = u.practice_id AND r.record_id = u.record_id
    HAVING count(*) > 0;
    RETURN QUERY
    SELECT 'upstream_writes', n.leased, count(*)::double precision FROM (
        SELECT CASE WHEN t.holder <> '' AND t.due_at > v_now THEN 'leased' ELSE 'waiting' END AS leased
        FROM upstream_write t
    ) n GROUP BY n.leased;
    RETURN QUERY
    SELECT 'upstream_write_seconds', '', extract(epoch FROM v_now - min(t.began_at))::double precision
    FROM upstream_write t HAVING count(*) > 0;
    RETURN QUERY
    SELECT 'upstream_misconfigured_practices', '', count(DISTINCT m.practice_id)::double precision
    FROM upstream_misconfiguration m WHERE m.seen_at > v_now - interval '1 hour';
    RETURN QUERY
    SELECT 'webhook_endpoints', n.state, count(*)::double precision FROM (
        SELECT CASE
            WHEN w.pause_reason = 'operator' THEN 'stopped'
            WHEN w.paused_at IS NOT NULL THEN 'paused'
            WHEN w.failures > 0 THEN 'failing'
            ELSE 'working'
        END AS state FROM webhook_endpoint w
    ) n GROUP BY n.state;
    RETURN QUERY
    SELECT 'outbox_events', '', count(*)::double precision
    FROM outbox o JOIN (
        SELECT w.practice_id, min(w.after_event_id) AS after_event_id FROM webhook_endpoint w GROUP BY w.practice_id
    ) f ON f.practice_id = o.practice_id
    WHERE NOT o.relayed AND o.event_id > f.after_event_id;
    RETURN QUERY
    SELECT 'outbox_seconds', '', extract(epoch FROM v_now - min(o.occurred_at))::double precision
    FROM outbox o JOIN (
        SELECT w.practice_id, min(w.after_event_id) AS after_event_id FROM webhook_endpoint w GROUP BY w.practice_id
    ) f ON f.practice_id = o.practice_id
    WHERE NOT o.relayed AND o.event_id > f.after_event_id HAVING count(*) > 0;
    RETURN QUERY
    SELECT 'webhook_deliveries', n.state, count(*)::double precision FROM (
        SELECT CASE
            WHEN w.paused_at IS NOT NULL THEN 'paused'
            WHEN d.due_at <= v_now THEN 'due'
            WHEN d.holder <> '' THEN 'leased'
            ELSE 'retrying'
        END AS state
        FROM webhook_delivery d
        JOIN webhook_endpoint w ON w.practice_id = d.practice_id AND w.endpoint_id = d.endpoint_id
        WHERE d.state = 'pending'
    ) n GROUP BY n.state;
    RETURN QUERY
    SELECT 'webhook_overdue_seconds', '',
           extract(epoch FROM v_now - min(greatest(d.due_at, w.rest_until)))::double precision
    FROM webhook_delivery d
    JOIN webhook_endpoint w ON w.practice_id = d.practice_id AND w.endpoint_id = d.endpoint_id
    WHERE d.state = 'pending' AND d.due_at <= v_now AND w.paused_at IS NULL AND coalesce(w.rest_until, v_now) <= v_now
      AND NOT EXISTS (
          SELECT FROM webhook_delivery b
          WHERE b.practice_id = d.practice_id AND b.endpoint_id = d.endpoint_id AND b.subject = d.subject
            AND b.state = 'pending' AND b.event_id < d.event_id
      )
    HAVING count(*) > 0;
END $$;

DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOREACH v_function IN ARRAY ARRAY[
        'frontdesk.practices_with(text, timestamptz)', 'frontdesk.current_versions_of(bigint[])',
        'frontdesk.practices_with_webhooks(bigint, integer, timestamptz)', 'frontdesk.measure_queues(integer)'
    ]::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO frontdesk_overview', v_function);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', v_function);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO frontdesk_service', v_function);
    END LOOP;
END $$;
