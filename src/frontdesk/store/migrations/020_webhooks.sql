-- Webhooks and calendar feeds: who is told about a practice's events, what was sent, and who may read a calendar.

-- Looked up by every node before anybody names a practice: which practices have an endpoint at all.
ALTER TABLE practice ADD COLUMN has_webhooks boolean NOT NULL DEFAULT false;

-- Whether the event has been handed to the endpoints that want it. A mark and not a position: ids are given before
-- their transactions commit, so that a position would pass by whoever commits late.
ALTER TABLE outbox ADD COLUMN relayed boolean NOT NULL DEFAULT false;
CREATE INDEX outbox_waiting ON outbox (practice_id, event_id) WHERE NOT relayed;

CREATE TABLE webhook_endpoint (
    practice_id    bigint NOT NULL REFERENCES practice,
    endpoint_id    text NOT NULL,
    url            text NOT NULL,
    events         text[] NOT NULL,  -- types; none: all
    after_event_id bigint NOT NULL,  -- what happened before it was added is not sent
    paused_at      timestamptz,
    pause_reason   text CHECK (pause_reason IN ('operator', 'failing', 'gone')),
    failures       integer NOT NULL DEFAULT 0,  -- since something was last received
    failing_since  timestamptz,
    rest_until     timestamptz,  -- nothing is sent before
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (practice_id, endpoint_id),
    CHECK ((paused_at IS NULL) = (pause_reason IS NULL))
);

CREATE TABLE webhook_secret (
    practice_id bigint NOT NULL,
    endpoint_id text NOT NULL,
    number      integer NOT NULL,
    sealed      bytea NOT NULL,  -- encrypted under the operator's secret key
    created_at  timestamptz NOT NULL,
    retires_at  timestamptz,
    PRIMARY KEY (practice_id, endpoint_id, number),
    FOREIGN KEY (practice_id, endpoint_id) REFERENCES webhook_endpoint
);

-- One event for one endpoint. Deliveries of one subject to one endpoint go out one after the other.
CREATE TABLE webhook_delivery (
    practice_id bigint NOT NULL,
    endpoint_id text NOT NULL,
    event_id    bigint NOT NULL,
    subject     text NOT NULL,
    state       text NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts    integer NOT NULL DEFAULT 0,
    holder      text NOT NULL DEFAULT '',  -- who is sending it; empty: nobody
    due_at      timestamptz NOT NULL,  -- until then nobody else does
    PRIMARY KEY (practice_id, endpoint_id, event_id),
    FOREIGN KEY (practice_id, endpoint_id) REFERENCES webhook_endpoint,
    FOREIGN KEY (practice_id, event_id) REFERENCES outbox
);
CREATE INDEX webhook_delivery_due ON webhook_delivery (practice_id, endpoint_id, due_at) WHERE state = 'pending';
CREATE INDEX webhook_delivery_order ON webhook_delivery (practice_id, endpoint_id, subject, event_id)
    WHERE state = 'pending';
CREATE INDEX webhook_delivery_ended ON webhook_delivery (practice_id, due_at) WHERE state <> 'pending';

CREATE TABLE webhook_attempt (
    practice_id  bigint NOT NULL,
    endpoint_id  text NOT NULL,
    event_id     bigint NOT NULL,
    attempt_id   bigint GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL,
    status       integer,  -- null: there was no answer
    milliseconds integer NOT NULL,
    failure      text,  -- null: it was received
    PRIMARY KEY (practice_id, endpoint_id, event_id, attempt_id),
    FOREIGN KEY (practice_id, endpoint_id, event_id) REFERENCES webhook_delivery
);

CREATE TABLE calendar_feed (
    practice_id bigint NOT NULL,
    feed_id     text NOT NULL,
    provider_id integer NOT NULL,
    digest      bytea NOT NULL,  -- SHA-256 of the secret in its address
    with_names  boolean NOT NULL,
    created_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    PRIMARY KEY (practice_id, feed_id),
    UNIQUE (practice_id, digest),
    FOREIGN KEY (practice_id, provider_id) REFERENCES provider
);

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY[
        'webhook_endpoint', 'webhook_secret', 'webhook_delivery', 'webhook_attempt', 'calendar_feed'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (practice_id = current_setting(''frontdesk.practice_id'')::bigint)',
            tenant_table
        );
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO frontdesk_service', tenant_table);
    END LOOP;
END $$;
REVOKE UPDATE ON webhook_attempt FROM frontdesk_service;
REVOKE DELETE ON calendar_feed FROM frontdesk_service;

-- Hands up to p_most new events to the endpoints that want them. Two events of one subject have ids in the order of
-- their commits, because a write locks its subject first; whoever sees the later one sees the earlier one, too.
CREATE FUNCTION relay_events(p_practice bigint, p_now timestamptz, p_most integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_after bigint := (SELECT min(w.after_event_id) FROM webhook_endpoint w WHERE w.practice_id = p_practice);
    v_fresh bigint[];
BEGIN
    SELECT array_agg(n.event_id) INTO v_fresh FROM (
        SELECT o.event_id FROM outbox o
        WHERE o.practice_id = p_practice AND NOT o.relayed AND o.event_id > v_after ORDER BY o.event_id LIMIT p_most
    ) n;
    IF v_fresh IS NOT NULL THEN
        INSERT INTO webhook_delivery (practice_id, endpoint_id, event_id, subject, state, due_at)
        SELECT p_practice, w.endpoint_id, o.event_id,
               coalesce(o.subject ->> 'appointmentId', o.subject ->> 'patientId', o.event_id::text), 'pending', p_now
        FROM outbox o JOIN webhook_endpoint w ON w.practice_id = p_practice
        WHERE o.practice_id = p_practice AND o.event_id = ANY (v_fresh) AND o.event_id > w.after_event_id
          AND (w.events = '{}' OR o.type = ANY (w.events))
        ON CONFLICT DO NOTHING;
        UPDATE outbox o SET relayed = true WHERE o.practice_id = p_practice AND o.event_id = ANY (v_fresh);
    END IF;
END $$;

-- Whether there may be something to do: asked first, because whoever takes a turn writes.
CREATE FUNCTION webhooks_are_due(p_practice bigint, p_now timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
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
    )
$$;

-- Takes deliveries that are due and that nobody works on: at most p_most, at most p_each to one endpoint at a time, and
-- one to an endpoint that fails. Of each subject only the oldest that is still to be delivered. Nodes take turns at a
-- practice; one that finds another at it goes on to the next practice.
CREATE FUNCTION take_webhook_deliveries(
    p_practice bigint, p_now timestamptz, p_holder text, p_until timestamptz, p_most integer, p_each integer
)
RETURNS TABLE (
    endpoint_id text, url text, secrets bytea[], event_id bigint, type text, subject jsonb, occurred_at timestamptz,
    attempts integer
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    w      webhook_endpoint;
    v_free integer;
    v_left integer := p_most;
    v_ids  bigint[];
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF NOT webhooks_are_due(p_practice, p_now) THEN
        RETURN;
    END IF;
    PERFORM FROM practice p WHERE p.practice_id = p_practice FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM relay_events(p_practice, p_now, 500);
    FOR w IN
        SELECT t.* FROM webhook_endpoint t
        WHERE t.practice_id = p_practice AND t.paused_at IS NULL AND coalesce(t.rest_until, p_now) <= p_now
        ORDER BY hashtext(t.endpoint_id || p_now::text)  -- nobody is always the last
    LOOP
        v_free := least(v_left, CASE WHEN w.failures > 0 THEN 1 ELSE p_each END - (
            SELECT count(*) FROM webhook_delivery d
            WHERE d.practice_id = p_practice AND d.endpoint_id = w.endpoint_id AND d.state = 'pending'
              AND d.due_at > p_now AND d.holder <> ''
        ));
        CONTINUE WHEN v_free <= 0;
        SELECT array_agg(n.event_id) INTO v_ids FROM (
            SELECT d.event_id FROM webhook_delivery d
            WHERE d.practice_id = p_practice AND d.endpoint_id = w.endpoint_id AND d.state = 'pending'
              AND d.due_at <= p_now
              AND NOT EXISTS (
                  SELECT FROM webhook_delivery b
                  WHERE b.practice_id = p_practice AND b.endpoint_id = w.endpoint_id AND b.subject = d.subject
                    AND b.state = 'pending' AND b.event_id < d.event_id
              )
            -- What has not failed yet comes first: one event that is always refused does not hold up the others.
            ORDER BY d.attempts, d.due_at, d.event_id LIMIT v_free
        ) n;
        CONTINUE WHEN v_ids IS NULL;
        UPDATE webhook_delivery d SET holder = p_holder, due_at = p_until
        WHERE d.practice_id = p_practice AND d.endpoint_id = w.endpoint_id AND d.event_id = ANY (v_ids);
        RETURN QUERY
        SELECT w.endpoint_id, w.url, webhook_secrets(p_practice, w.endpoint_id, p_now), o.event_id, o.type, o.subject,
               o.occurred_at, d.attempts
        FROM webhook_delivery d JOIN outbox o ON o.practice_id = p_practice AND o.event_id = d.event_id
        WHERE d.practice_id = p_practice AND d.endpoint_id = w.endpoint_id AND d.event_id = ANY (v_ids);
        v_left := v_left - cardinality(v_ids);
    END LOOP;
    IF v_left = p_most THEN  -- a crash of the database may lose an idle turn, never a lease
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
END $$;

-- The live secrets of an endpoint, newest first.
CREATE FUNCTION webhook_secrets(p_practice bigint, p_endpoint text, p_now timestamptz) RETURNS bytea[]
LANGUAGE sql STABLE AS $$
    SELECT array_agg(s.sealed ORDER BY s.number DESC) FROM webhook_secret s
    WHERE s.practice_id = p_practice AND s.endpoint_id = p_endpoint AND coalesce(s.retires_at > p_now, true)
$$;

-- How an attempt ended. p_due is when to try again, null for never. Returns why the endpoint was paused, where it was:
-- it fails for p_patience, or says that it is gone. Word of a success is always taken; of a failure only from the holder.
CREATE FUNCTION finish_webhook_delivery(
    p_practice bigint, p_endpoint text, p_event bigint, p_holder text, p_now timestamptz, p_status integer,
    p_milliseconds integer, p_failure text, p_due timestamptz, p_patience interval, p_request_id text
)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    w        webhook_endpoint;
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
    UPDATE webhook_endpoint t SET
        failures = t.failures + 1, failing_since = coalesce(t.failing_since, p_now),
        rest_until = p_now + least(interval '5 minutes', interval '5 seconds' * power(2, least(t.failures, 10)))
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

-- Forgets deliveries that ended, and their attempts, before a moment; returns how many.
CREATE FUNCTION forget_webhook_deliveries(p_practice bigint, p_before timestamptz, p_most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    d      record;
    v_done integer := 0;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    FOR d IN
        SELECT t.endpoint_id, t.event_id FROM webhook_delivery t
        WHERE t.practice_id = p_practice AND t.state <> 'pending' AND t.due_at < p_before
        ORDER BY t.due_at LIMIT p_most FOR UPDATE SKIP LOCKED
    LOOP
        DELETE FROM webhook_attempt a
        WHERE a.practice_id = p_practice AND a.endpoint_id = d.endpoint_id AND a.event_id = d.event_id;
        DELETE FROM webhook_delivery t
        WHERE t.practice_id = p_practice AND t.endpoint_id = d.endpoint_id AND t.event_id = d.event_id;
        v_done := v_done + 1;
    END LOOP;
    RETURN v_done;
END $$;

CREATE FUNCTION calendar_feed_of(p_practice bigint, p_digest bytea)
RETURNS TABLE (feed_id text, provider_id integer, with_names boolean, slug text, version bigint)
LANGUAGE plpgsql ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT f.feed_id, f.provider_id, f.with_names, p.slug, p.version
    FROM calendar_feed f JOIN practice p ON p.practice_id = f.practice_id
    WHERE f.practice_id = p_practice AND f.digest = p_digest AND f.revoked_at IS NULL AND NOT p.suspended;
END $$;
