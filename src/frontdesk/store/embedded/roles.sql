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
