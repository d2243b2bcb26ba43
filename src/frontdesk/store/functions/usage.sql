-- Request counts that the console shows.

-- Adds a worker's counts for one practice. Rows are locked in one order, so that workers cannot deadlock. Does not wait
-- for the disk: a crash of the database may lose the last counts.
CREATE OR REPLACE FUNCTION count_requests(
    p_practice bigint, p_at timestamptz, p_clients text[], p_operations text[], p_doors text[], p_statuses integer[],
    p_codes text[], p_requests integer[]
)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    c record;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    PERFORM set_config('synchronous_commit', 'off', true);
    FOR c IN
        SELECT period.minutes, date_bin(make_interval(mins => period.minutes), p_at, '2000-01-01 00:00:00Z') AS began_at,
               t.client_id, t.operation, t.door, t.status, t.code, t.requests
        FROM unnest(p_clients, p_operations, p_doors, p_statuses, p_codes, p_requests)
            AS t (client_id, operation, door, status, code, requests)
        CROSS JOIN (VALUES (5), (60)) AS period (minutes)
        ORDER BY 1, 3, 4, 5, 6, 7
    LOOP
        INSERT INTO request_count AS n (
            practice_id, minutes, began_at, client_id, operation, door, status, code, requests
        ) VALUES (
            p_practice, c.minutes, c.began_at, c.client_id, c.operation, c.door, c.status, c.code, c.requests
        )
        ON CONFLICT (practice_id, minutes, began_at, client_id, operation, door, status, code)
        DO UPDATE SET requests = n.requests + excluded.requests;
    END LOOP;
END $$;

-- Deletes old counts of one practice, at most p_limit; several nodes may call it at once.
CREATE OR REPLACE FUNCTION delete_old_request_counts(p_practice bigint, p_fine timestamptz, p_coarse timestamptz, p_limit integer)
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
        ORDER BY o.minutes, o.began_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;
