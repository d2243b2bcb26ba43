-- What the console shows to whoever runs a practice: how many requests ended how, and how the last check of the audit
-- trail went.

-- Requests of a practice's clients by how they ended. Each is counted in two periods: one of five minutes for a close
-- look at the last days, and one of an hour for the month behind them. No row says anything about a patient.
CREATE TABLE request_count (
    practice_id bigint NOT NULL REFERENCES practice,
    minutes     integer NOT NULL CHECK (minutes IN (5, 60)),  -- the length of the period
    began_at    timestamptz NOT NULL,
    client_id   text NOT NULL,
    operation   text NOT NULL,  -- empty: none that exists
    door        text NOT NULL,
    status      integer NOT NULL,
    code        text NOT NULL,  -- of the problem that was answered; empty: none
    requests    bigint NOT NULL,
    PRIMARY KEY (practice_id, minutes, began_at, client_id, operation, door, status, code)
) WITH (fillfactor = 80);

-- The last check of a practice's audit trail: how far it is, and what it found. One row a practice, for every node.
CREATE TABLE audit_check (
    practice_id bigint PRIMARY KEY REFERENCES practice,
    check_id    text NOT NULL,
    started_by  text NOT NULL,
    started_at  timestamptz NOT NULL,
    heard_at    timestamptz NOT NULL,  -- whoever runs it says so every few seconds
    checked     bigint NOT NULL,
    expected    bigint NOT NULL,
    finished_at timestamptz,
    report      jsonb
);

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['request_count', 'audit_check'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (practice_id = current_setting(''frontdesk.practice_id'')::bigint)',
            tenant_table
        );
        EXECUTE format('GRANT SELECT, INSERT, UPDATE ON %I TO frontdesk_service', tenant_table);
    END LOOP;
END $$;
GRANT DELETE ON request_count TO frontdesk_service;

-- Adds what a worker has counted for one practice. Rows are taken in one order, so that workers never wait in a circle,
-- and the disk is not waited for: a crash of the database may lose the last moment's counts.
CREATE FUNCTION count_requests(
    p_practice bigint, p_at timestamptz, p_clients text[], p_operations text[], p_doors text[], p_statuses integer[],
    p_codes text[], p_requests integer[]
)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO request_count (
        practice_id, minutes, began_at, client_id, operation, door, status, code, requests
    )
    SELECT p_practice, period.minutes, date_bin(make_interval(mins => period.minutes), p_at, '2000-01-01 00:00:00Z'),
           c.client_id, c.operation, c.door, c.status, c.code, c.requests
    FROM unnest(p_clients, p_operations, p_doors, p_statuses, p_codes, p_requests)
        AS c (client_id, operation, door, status, code, requests)
    CROSS JOIN (VALUES (5), (60)) AS period (minutes)
    ORDER BY 2, 4, 5, 6, 7, 8
    ON CONFLICT (practice_id, minutes, began_at, client_id, operation, door, status, code)
    DO UPDATE SET requests = request_count.requests + excluded.requests;
END $$;

-- Removes old counts of one practice, a bounded number at a time; several nodes may do so.
CREATE FUNCTION forget_requests(p_practice bigint, p_fine timestamptz, p_coarse timestamptz, p_most integer)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    done integer;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    DELETE FROM request_count t
    WHERE t.practice_id = p_practice
      AND (t.minutes, t.began_at, t.client_id, t.operation, t.door, t.status, t.code) IN (
        SELECT o.minutes, o.began_at, o.client_id, o.operation, o.door, o.status, o.code FROM request_count o
        WHERE o.practice_id = p_practice
          AND (o.minutes = 5 AND o.began_at < p_fine OR o.minutes = 60 AND o.began_at < p_coarse)
        ORDER BY o.minutes, o.began_at LIMIT p_most FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;
