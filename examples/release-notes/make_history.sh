#!/bin/sh
# Makes a small git repository with a history, the same one every time: sh make_history.sh DIRECTORY
set -eu

mkdir -p "$1"
cd "$1"
GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM
git init --quiet --initial-branch=main
git config core.autocrlf false

# commit DATE AUTHOR FILE LINE SUBJECT
commit() {
    printf '%s\n' "$4" >> "$3"
    git add "$3"
    GIT_AUTHOR_NAME=$2 GIT_AUTHOR_EMAIL="$(echo "$2" | tr 'A-Z ' 'a-z.')@example.com"
    GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
    GIT_AUTHOR_DATE="2026-03-$1T09:00:00+0000" GIT_COMMITTER_DATE="2026-03-$1T09:00:00+0000"
    export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_DATE
    git commit --quiet --message "$5"
}

commit 02 "Ada Berg"    README.md   "# Weather station"          "docs: say what the station measures"
commit 03 "Ada Berg"    sensor.py   "def read(): return 21.5"    "feat: read the temperature"
git tag v1.0.0
commit 04 "Ben Okafor"  sensor.py   "def humidity(): return 40"  "feat: read the humidity"
commit 05 "Chloé Dupré" store.py    "rows = []"                  "feat(store): keep a day of readings"
commit 08 "Ada Berg"    sensor.py   "# rounds half up"           "fix: round temperatures like the display does"
commit 09 "Ben Okafor"  store.py    "LIMIT = 1440"               "fix(store): forget readings older than a day"
commit 10 "Chloé Dupré" README.md   "Readings are kept a day."   "docs: how long readings are kept"
commit 11 "Ben Okafor"  Makefile    "check: ; python sensor.py"  "Tidy the Makefile; \$HOME and \`backticks\` stay as they are"
commit 12 "Ada Berg"    store.py    "FORMAT = 2"                 "feat!: readings are stored in a new format"
git tag v1.1.0
