-- Sandbox practices: a write whose outcome is unknown, on request. It has executed; its result is held back until a
-- resend asks for it without the simulation.

ALTER TABLE intent ADD COLUMN withheld jsonb CHECK (withheld IS NULL OR state = 'executing');

CREATE FUNCTION withhold_outcome(p_practice bigint, p_intent bytea) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    UPDATE intent t SET state = 'executing', withheld = t.result, result = NULL
    WHERE t.practice_id = p_practice AND t.intent_id = p_intent AND t.state = 'consumed';
END $$;

-- False where there is nothing that was held back: the outcome is unknown indeed.
CREATE FUNCTION record_outcome(p_practice bigint, p_intent bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    UPDATE intent t SET state = 'consumed', result = t.withheld, withheld = NULL
    WHERE t.practice_id = p_practice AND t.intent_id = p_intent AND t.withheld IS NOT NULL;
    RETURN FOUND;
END $$;

-- As before; what was held back and never asked for again goes, too. An array is made once: a plan that asks a locking
-- subquery again for every row would remove more than p_most.
CREATE OR REPLACE FUNCTION forget_intents(p_practice bigint, p_now timestamptz, p_most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    done integer;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    DELETE FROM intent t WHERE t.practice_id = p_practice AND t.intent_id = ANY (ARRAY(
        SELECT o.intent_id FROM intent o
        WHERE o.practice_id = p_practice AND o.keep_until <= p_now
          AND (o.state <> 'executing' OR o.withheld IS NOT NULL)
        ORDER BY o.keep_until LIMIT p_most FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;
