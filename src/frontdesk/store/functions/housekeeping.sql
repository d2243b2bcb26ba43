-- Periodic work on the database itself.

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
        WHERE c.relnamespace = 'frontdesk'::regnamespace AND c.relkind = 'r' AND c.relname !~ '_[0-9]+$'  -- shards
          AND pg_relation_size(c.oid) > greatest(65536, 4 * c.relpages * current_setting('block_size')::bigint)
    LOOP
        EXECUTE format('ANALYZE (SKIP_LOCKED) %s', v_table);
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION analyze_grown_tables() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION analyze_grown_tables() TO frontdesk_service;
