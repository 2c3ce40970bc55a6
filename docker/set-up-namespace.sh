#!/bin/sh
# Create the namespace and the search attributes of plans. May be run again at any time.
# Wants TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, as the `temporal` command does.
set -eu

until temporal operator cluster health >/dev/null 2>&1; do sleep 1; done

temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
    temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 720h

# A new namespace takes a moment to be known to all parts of the server.
until temporal operator search-attribute list >/dev/null 2>&1; do sleep 1; done

add() {
    temporal operator search-attribute list | grep -qw "$1" ||
        temporal operator search-attribute create --name "$1" --type "$2"
}
add PlanStatus Keyword
add PlanPending KeywordList
add PlanTitle Text
add PlanResumes Keyword
