-- What the console shows about a practice: requests by outcome, and the last check of the audit trail.

-- Requests of a practice's clients by outcome. Each is counted in two periods: five minutes for the last days, and an
-- hour for the month before them. No row says anything about a patient.
CREATE TABLE request_count (
    practice_id bigint NOT NULL REFERENCES practice,
    minutes     integer NOT NULL CHECK (minutes IN (5, 60)),  -- the length of the period
    began_at    timestamptz NOT NULL,
    client_id   text NOT NULL,
    operation   text NOT NULL,  -- empty: unknown operation
    door        text NOT NULL,
    status      integer NOT NULL,
    code        text NOT NULL,  -- of the error; empty: none
    requests    bigint NOT NULL,
    PRIMARY KEY (practice_id, minutes, began_at, client_id, operation, door, status, code)
) WITH (fillfactor = 80);

-- The last check of a practice's audit trail, its progress and its report, shared by all nodes.
CREATE TABLE audit_check (
    practice_id bigint PRIMARY KEY REFERENCES practice,
    check_id    text NOT NULL,
    started_by  text NOT NULL,
    started_at  timestamptz NOT NULL,
    heard_at    timestamptz NOT NULL,  -- heartbeat of the node that runs it
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
