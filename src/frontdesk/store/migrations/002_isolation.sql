-- Tenant isolation: the service's role owns nothing, and sees only the rows of the practice that its transaction named.
-- A statement that names no practice is refused: the setting does not exist.

DO $$
BEGIN
    IF to_regrole('frontdesk_service') IS NULL THEN  -- a login without CREATEROLE needs the role made beforehand
        CREATE ROLE frontdesk_service LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- roles belong to the whole cluster: another database made it
END $$;

DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'frontdesk_service', 'USAGE') THEN
        EXECUTE format('GRANT frontdesk_service TO %I', current_user);
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    NULL;  -- the service has a login of its own, and this one need not be a member
END $$;

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY[
        'location', 'provider', 'visit_type', 'procedure', 'patient_counter', 'patient', 'appointment', 'intent',
        'audit_record', 'audit_unsealed', 'audit_seal', 'audit_head', 'outbox'
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

REVOKE UPDATE, DELETE ON audit_record, audit_seal FROM frontdesk_service;
REVOKE DELETE ON appointment, patient, audit_head FROM frontdesk_service;
GRANT SELECT, INSERT, UPDATE ON practice, client, client_secret, sealed_key TO frontdesk_service;
GRANT DELETE ON client_secret, sealed_key TO frontdesk_service;
GRANT SELECT ON migration TO frontdesk_service;
DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO frontdesk_service', current_schema());
END $$;
