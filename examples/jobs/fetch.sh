#!/bin/sh
# Fetches a page of an API that allows a few requests per second, for belfry work. See crawl.sh.
#
# The API is played by FOLDER: a request leaves a mark in the folder of its second, and when LIMIT
# marks are there, the API answers "too many requests". Exit status 75 gives the task back: it is
# due again a second later, and no attempt is used up. Status 65 rejects a page that does not exist.
set -eu
folder=$1 limit=${2:-3}

if [ "$BELFRY_TASK" = total ]; then
    # {"page-1":"10","page-2":null,...}: a page without a result is null.
    tr ',' '\n' <"$BELFRY_RESULTS" | sed -n 's/.*:"\([0-9]*\)".*/\1/p' |
        awk '{sum += $1; n++} END {printf "%d pages, sum %d\n", n, sum}'
    exit
fi
page=$(cat)
now_ms=$(belfry clock --json | tr -dc 0-9)
second=$folder/$((now_ms / 1000))
mkdir -p "$second"
slot=1
until mkdir "$second/$slot" 2>/dev/null; do # mkdir is atomic: one request per mark
    slot=$((slot + 1))
    if [ "$slot" -gt "$limit" ]; then
        echo "429 too many requests" >&2
        exit 75
    fi
done
[ "$page" -ne 13 ] || { echo "404 no such page" >&2; exit 65; }
echo $((page * 10))
