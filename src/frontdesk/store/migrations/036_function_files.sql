-- Which text of each file in functions/ the database has, and the version of frontdesk that applied it.
CREATE TABLE function_file (
    name       text PRIMARY KEY,
    checksum   text NOT NULL,
    version    text NOT NULL,
    applied_at timestamptz NOT NULL
);
GRANT SELECT ON function_file TO frontdesk_service;
