#!/usr/bin/env bash
# The example shared.c on a server of Redis, together with the command line.
# Usage: shared.sh BELFRY PROGRAM
set -u
belfry=$(realpath "$1") program=$(realpath "$2")
command -v redis-server >/dev/null || { echo 'SKIPPED: there is no redis-server'; exit 77; }
folder=$(mktemp -d)
redis-server --port 0 --unixsocket "$folder/redis" --save '' --dir "$folder" >/dev/null &
redis=$!
worker=
trap 'kill $redis $worker; wait; rm -rf "$folder"' EXIT
url=unix://$folder/redis

fail() { printf 'FAILED %s\n' "$*" >&2; exit 1; }

got=$("$program" "$url" 2>"$folder/warnings") || fail "exits with $?: $(cat "$folder/warnings")"
[ "$got" = 'the tea is ready' ] || fail "prints $got"
grep -q 'keeps nothing on disk' "$folder/warnings" || fail 'does not warn of lost timers'
echo 'ok   it prints what it has scheduled'

coproc "$program" "$url" --worker 2>/dev/null
worker=$COPROC_PID
for text in first second; do
    "$belfry" schedule kitchen $text --store "$url" >/dev/null || fail 'cannot schedule'
    read -r -t 30 got <&"${COPROC[0]}" && [ "$got" = $text ] || fail "the worker prints '$got'"
done
echo 'ok   a worker gets what others schedule'
