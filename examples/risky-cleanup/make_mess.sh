#!/bin/sh
# Makes a directory in need of a clean-up: sh make_mess.sh DIRECTORY
set -eu

mkdir -p "$1/logs" "$1/cache" "$1/src"
cd "$1"
echo 'print("keep me")' > src/app.py
for day in 01 02 03; do echo "2026-01-$day all well" > "logs/app-2026-01-$day.log"; done
echo "half a download" > "cache/map tiles.tmp"
echo "another" > "cache/it's \$HOME.tmp"
echo "the only copy of the settings" > cache/settings.db
