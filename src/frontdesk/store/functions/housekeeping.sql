-- Periodic work on the database itself.

-- Analyzes the tables that have grown fourfold since they were last analyzed, because autovacuum may not get to them for
-- minutes, or between crashes not at all. Also those with 10,000 changes, every five minutes at most: autovacuum waits for a
-- tenth of a table, and until then PostgreSQL takes a practice that is new in it for empty. Connections plan again
-- afterwards. Runs as the owner of the tables, whom alone PostgreSQL lets analyze them. One that is being analyzed or vacuumed
-- is left out.
CREATE OR REPLACE FUNCTION analyze_grown_tables() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_table regclass;
BEGIN
    FOR v_table IN
        SELECT c.oid FROM pg_class c
        WHERE c.relnamespace = 'frontdesk'::regnamespace AND c.relkind = 'r' AND c.relname !~ '_[0-9]+$'  -- shards
          AND (
              pg_relation_size(c.oid) > greatest(65536, 4 * c.relpages * current_setting('block_size')::bigint)
              OR pg_stat_get_mod_since_analyze(c.oid) >= 10000 AND coalesce(
                  greatest(pg_stat_get_last_analyze_time(c.oid), pg_stat_get_last_autoanalyze_time(c.oid)), '-infinity'
              ) < now() - interval '5 minutes'
          )
    LOOP
        EXECUTE format('ANALYZE (SKIP_LOCKED) %s', v_table);
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION analyze_grown_tables() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION analyze_grown_tables() TO frontdesk_service;
