#!/bin/sh
# Runs once, when the database is created. The service's login may not change the schema; only that of backups reads all rows.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --quiet --username "$POSTGRES_USER" --dbname postgres \
    --set owner="$OWNER_PASSWORD" --set app="$APP_PASSWORD" --set backup="$BACKUP_PASSWORD" <<'SQL'
CREATE ROLE frontdesk_service NOLOGIN;
CREATE ROLE frontdesk_owner LOGIN PASSWORD :'owner';
CREATE ROLE frontdesk_app LOGIN PASSWORD :'app' IN ROLE frontdesk_service;
CREATE ROLE frontdesk_backup LOGIN BYPASSRLS PASSWORD :'backup' IN ROLE pg_read_all_data;
CREATE DATABASE frontdesk;
\connect frontdesk
CREATE EXTENSION btree_gist;
CREATE SCHEMA frontdesk AUTHORIZATION frontdesk_owner;
SQL
