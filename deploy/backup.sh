#!/bin/sh
# A dump of the database now and every day after; those older than thirty days go. With an argument: once.
set -eu
while true; do
  name="$BACKUPS/edrbo-$(date +%Y-%m-%dT%H%M%S).dump"
  pg_dump --format=custom --file="$name.part"
  mv "$name.part" "$name"
  find "$BACKUPS" -name 'edrbo-*.dump' -mtime +30 -delete
  [ "${1:-}" = once ] && exit 0
  sleep 86400
done
