-- Periodic work: finds the practices that have some, and refreshes the statistics of tables.

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
                WHERE i.practice_id = v_id AND i.keep_until <= p_before
                  AND (i.state <> 'executing' OR i.withheld IS NOT NULL)
            );
        ELSIF p_chore = 'old holds' THEN
            v_found := EXISTS (SELECT FROM slot_hold h WHERE h.practice_id = v_id AND h.held_at < p_before);
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

-- Analyzes the tables that have grown fourfold since they were last analyzed, because autovacuum may not get to them for
-- minutes, or between crashes not at all. Connections plan again afterwards. Runs as the owner of the tables, whom alone
-- PostgreSQL lets analyze them. One that is being analyzed or vacuumed is left out.
CREATE OR REPLACE FUNCTION analyze_grown_tables() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_table regclass;
BEGIN
    FOR v_table IN
        SELECT c.oid FROM pg_class c
        WHERE c.relnamespace = 'frontdesk'::regnamespace AND c.relkind = 'r'
          AND pg_relation_size(c.oid) > greatest(65536, 4 * c.relpages * current_setting('block_size')::bigint)
    LOOP
        EXECUTE format('ANALYZE (SKIP_LOCKED) %s', v_table);
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION analyze_grown_tables() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION analyze_grown_tables() TO frontdesk_service;
