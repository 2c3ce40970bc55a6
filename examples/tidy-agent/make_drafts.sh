#!/bin/sh
# Makes the directory that the plan beside this script tidies up.
set -e
mkdir -p "$1/drafts"
echo "The sea is calm." > "$1/drafts/sea.txt"
echo "The sea is calm." > "$1/drafts/draft-sea.txt"
echo "The shore, unfinished" > "$1/drafts/draft-shore.txt"
