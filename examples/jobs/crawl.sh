#!/bin/sh
# Prints a job that fetches COUNT pages of an API at once, and sums them up when all have ended:
#
#     page-1 --.
#     page-2 --+--> total
#     page-3 --'
#
#     ./crawl.sh 100 | belfry job submit -
#     belfry work crawl -j 8 --result -- ./fetch.sh FOLDER
set -eu
count=$1
printf '{"id": "crawl", "priority": 7, "tasks": ['
i=1
while [ "$i" -le "$count" ]; do
    printf '{"id": "page-%d", "topic": "crawl", "resource": "api", "payload": "%d"},\n' "$i" "$i"
    i=$((i + 1))
done
printf '{"id": "total", "topic": "crawl", "after": ['
i=1
while [ "$i" -le "$count" ]; do
    # A page that is gone for good must not keep the others from being summed up.
    printf '%s{"task": "page-%d", "on": "always"}' "$([ "$i" -eq 1 ] || echo ', ')" "$i"
    i=$((i + 1))
done
printf ']}]}\n'
