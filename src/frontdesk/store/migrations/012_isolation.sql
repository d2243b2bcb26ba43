-- Tenant isolation of the tables above. Clients and staff are looked up before the practice is known. A later migration isolates
-- the tables that it makes.
DO $$
DECLARE
    tenant_table text;
BEGIN
    FOR tenant_table IN
        SELECT c.table_name FROM information_schema.columns c
        WHERE c.table_schema = current_schema() AND c.column_name = 'practice_id'
          AND c.table_name NOT IN ('practice', 'client', 'staff')
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (practice_id = current_setting(''frontdesk.practice_id'')::bigint)',
            tenant_table
        );
    END LOOP;
END $$;
