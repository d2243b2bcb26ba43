#!/bin/sh
# Dumps the database at once and then every day, and keeps the dumps of thirty days. A dump that fails is tried again after a
# minute, then after twice as long each time, at most an hour. With the argument "once" it ends after one.
set -eu
umask 077
cd "${BACKUPS:-/backups}"
last=$(find . -name 'frontdesk-*.dump' -printf '%Ts\n' | sort -n | tail -n 1)
failures=0
wait=60
while true; do
    name=frontdesk-$(date -u +%Y-%m-%d-%H%M%S).dump
    # A dump gets its final name only when it is complete.
    if pg_dump --format=custom --file="$name.part" && pg_restore --list "$name.part" >/dev/null; then
        mv "$name.part" "$name"
        find . -name 'frontdesk-*.dump' -mtime +30 -delete
        echo "wrote $name"
        last=$(date +%s) failures=0 pause=86400 wait=60
    else
        rm -f "$name.part"
        echo "the backup failed" >&2
        failures=$((failures + 1)) pause=$wait wait=$((wait < 1800 ? wait * 2 : 3600))
    fi
    # For the textfile collector of Prometheus' node exporter, which is another account's.
    cat >metrics.part <<END
# HELP frontdesk_dump_last_success_timestamp_seconds When the newest dump of the database was written; 0: never.
# TYPE frontdesk_dump_last_success_timestamp_seconds gauge
frontdesk_dump_last_success_timestamp_seconds ${last:-0}
# HELP frontdesk_dump_failures Dumps that have failed since then.
# TYPE frontdesk_dump_failures gauge
frontdesk_dump_failures $failures
END
    chmod 644 metrics.part
    mv metrics.part frontdesk-dump.prom
    [ "${1:-}" != once ] || exit "$((failures > 0))"
    sleep "$pause"
done
