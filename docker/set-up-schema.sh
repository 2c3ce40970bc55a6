#!/bin/sh
# Create or update the tables of the Temporal server. May be run again at any time; ends with an error if anything fails.
# Wants POSTGRES_HOST, POSTGRES_PORT, POSTGRES_USER, POSTGRES_PASSWORD and SCHEMA (the folder with temporal/ and visibility/).
set -eu

tool() {
    SQL_PASSWORD="$POSTGRES_PASSWORD" temporal-sql-tool --plugin postgres12_pgx \
        --endpoint "$POSTGRES_HOST" --port "$POSTGRES_PORT" --user "$POSTGRES_USER" "$@"
}

set_up() { # database, folder
    tool --database "$1" create-database
    tool --database "$1" setup-schema --version 0.0
    tool --database "$1" update-schema --schema-dir "$SCHEMA/$2/versioned"
}

set_up temporal temporal
set_up temporal_visibility visibility
