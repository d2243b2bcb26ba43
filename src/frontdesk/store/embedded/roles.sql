-- Gives the database an owner that is not a superuser. It runs in single-user mode, which needs no login, while the
-- server is stopped. It can be repeated. A blank line ends a statement here, and must not stand inside one.

DO $$
BEGIN
    IF to_regrole('frontdesk_service') IS NULL THEN
        CREATE ROLE frontdesk_service LOGIN;
    END IF;
    IF to_regrole('frontdesk_owner') IS NULL THEN
        CREATE ROLE frontdesk_owner LOGIN;
    END IF;
END $$;

ALTER ROLE frontdesk_service LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;

-- Backups read and restore the rows of every practice. The owner could remove the policies anyway.
ALTER ROLE frontdesk_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS;

GRANT frontdesk_service TO frontdesk_owner;

ALTER DATABASE frontdesk OWNER TO frontdesk_owner;

-- In a database of an older release everything belongs to the superuser.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT format('ALTER SCHEMA %I OWNER TO frontdesk_owner', nspname)
        FROM pg_namespace WHERE nspname = 'frontdesk'
        UNION ALL
        SELECT format('ALTER TABLE %s OWNER TO frontdesk_owner', oid::regclass)
        FROM pg_class WHERE relnamespace = to_regnamespace('frontdesk') AND relkind = 'r'
        UNION ALL
        SELECT format('ALTER TYPE %s OWNER TO frontdesk_owner', reltype::regtype)
        FROM pg_class WHERE relnamespace = to_regnamespace('frontdesk') AND relkind = 'c'
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO frontdesk_owner', oid::regprocedure)
        FROM pg_proc WHERE pronamespace = to_regnamespace('frontdesk')
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e')
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
