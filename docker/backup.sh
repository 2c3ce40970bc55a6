#!/bin/sh
# A backup of the stack in a new directory: sh docker/backup.sh DIRECTORY. Plans run meanwhile.
#
# The order matters: values are stored before a history refers to them, and the list of plans follows the histories.
# So histories come first, then the list, then the state directory, and what each refers to is in the backup.
set -eu
umask 077

mkdir "$1"
target=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

for database in temporal temporal_visibility; do
    docker compose exec -T postgresql pg_dump --username temporal --clean --if-exists --create "$database" \
        > "$target/$database.sql"
done
docker compose run --rm --no-deps -T worker tar --create --directory /var/lib/plans . > "$target/state.tar"
