#!/bin/sh
# The stack as it was at a backup: sh docker/restore.sh DIRECTORY. What the databases and the state directory have now
# is gone afterwards. Steps that ended after the backup run again, as far as the plan goes.
set -eu

backup=$(cd "$1" && pwd)
for part in temporal.sql temporal_visibility.sql state.tar; do
    test -s "$backup/$part" || { echo "$backup has no $part: it is no whole backup, and nothing was changed." >&2; exit 1; }
done
cd "$(dirname "$0")/.."

docker compose stop
docker compose up --detach --wait --no-deps postgresql
for database in temporal temporal_visibility; do
    docker compose exec -T postgresql psql --username temporal --dbname postgres --quiet --set ON_ERROR_STOP=1 \
        < "$backup/$database.sql" > /dev/null
done
docker compose run --rm --no-deps -T worker sh -euc \
    'find /var/lib/plans -mindepth 1 -delete; tar --extract --directory /var/lib/plans' < "$backup/state.tar"
docker compose up --detach
