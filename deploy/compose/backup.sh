#!/bin/sh
# Dumps the database at once and then every day, and keeps the dumps of thirty days. With the argument "once" it ends after one.
set -eu
umask 077
cd "${BACKUPS:-/backups}"
while true; do
    name=frontdesk-$(date -u +%Y-%m-%d-%H%M%S).dump
    # A dump gets its final name only when it is complete.
    if pg_dump --format=custom --file="$name.part" && pg_restore --list "$name.part" >/dev/null; then
        mv "$name.part" "$name"
        find . -name 'frontdesk-*.dump' -mtime +30 -delete
        echo "wrote $name"
    else
        rm -f "$name.part"
        echo "the backup failed" >&2
        [ "${1:-}" != once ] || exit 1
    fi
    [ "${1:-}" != once ] || exit 0
    sleep 86400
done
