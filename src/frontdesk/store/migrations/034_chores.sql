-- Housekeeping over many practices: which of them have something to do, found in one statement each. Every practice is
-- looked at under its own policy, one after the other; what leaves is the ids of practices and nothing of theirs.

CREATE INDEX practice_with_webhooks ON practice (practice_id) WHERE has_webhooks;
CREATE INDEX webhook_delivery_event ON webhook_delivery (practice_id, event_id);

-- The practices that have something left over from before a moment. Each look is one step in an index.
CREATE FUNCTION practices_with(p_chore text, p_before timestamptz) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_id    bigint;
    v_found boolean;
BEGIN
    FOR v_id IN SELECT p.practice_id FROM practice p ORDER BY p.practice_id LOOP
        PERFORM set_config('frontdesk.practice_id', v_id::text, true);
        IF p_chore = 'unsealed records' THEN
            v_found := EXISTS (SELECT FROM audit_unsealed u WHERE u.practice_id = v_id);
        ELSIF p_chore = 'old intents' THEN
            v_found := EXISTS (
                SELECT FROM intent i
                WHERE i.practice_id = v_id AND i.keep_until <= p_before
                  AND (i.state <> 'executing' OR i.withheld IS NOT NULL)
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

-- Up to p_look practices with webhooks after an id, and whether anything may be due there.
CREATE FUNCTION look_for_webhooks(p_after bigint, p_look integer, p_now timestamptz)
RETURNS TABLE (practice_id bigint, due boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_id bigint;
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
                WHERE d.practice_id = v_id AND d.state = 'pending' AND d.due_at <= p_now
            )
        ) AND webhooks_are_due(v_id, p_now);
        RETURN NEXT;
    END LOOP;
END $$;

-- Removes events from before a moment that nobody needs any more, oldest first, a bounded number at a time; several
-- nodes may do so. Needed is what is still to be handed to an endpoint, and what a delivery tells of.
CREATE FUNCTION forget_events(p_practice bigint, p_before timestamptz, p_most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_after bigint;
    v_done  integer;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    -- Nobody adds an endpoint or hands events over meanwhile.
    PERFORM FROM practice p WHERE p.practice_id = p_practice FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
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
        ORDER BY o.event_id LIMIT p_most
    ));
    GET DIAGNOSTICS v_done = ROW_COUNT;
    RETURN v_done;
END $$;
