#!/bin/sh
# Create the namespace and the search attributes of plans. May be run again at any time; ends with the server's or the
# command's error when there is no answer in PATIENCE seconds (180).
# Wants TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, as the `temporal` command does.
set -eu

until=$(($(date +%s) + ${PATIENCE:-180}))

answered() { # command: run again until it succeeds
    while ! said=$("$@" 2>&1); do
        if [ "$(date +%s)" -ge "$until" ]; then
            echo "No answer from $TEMPORAL_ADDRESS to '$*': $said" >&2
            exit 1
        fi
        sleep 1
    done
}

temporal --version >/dev/null # a missing or forbidden command is no reason to wait
answered temporal operator cluster health

temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
    temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 720h

# A new namespace takes a moment to be known to all parts of the server.
answered temporal operator search-attribute list

add() {
    temporal operator search-attribute list | grep -qw "$1" ||
        temporal operator search-attribute create --name "$1" --type "$2"
}
add PlanStatus Keyword
add PlanPending KeywordList
add PlanTitle Text
add PlanResumes Keyword
