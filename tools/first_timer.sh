#!/usr/bin/env bash
# Measures how long a newcomer waits: from a clone of this repository to the first timer that rings.
#
#     tools/first_timer.sh [REPOSITORY]    default: this one
#
# script/build installs missing packages, so a bare machine takes longer than one that has them.
set -euo pipefail
repository=${1:-$(cd "$(dirname "$0")/.." && pwd)}
folder=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

begin=$(date +%s%N)
step=$begin
# lap NAME: prints the time since the last lap.
lap() {
    local now
    now=$(date +%s%N)
    printf '%-28s %7d ms\n' "$1" $(((now - step) / 1000000))
    step=$now
}

cd "$folder"
git clone -q "$repository" belfry
cd belfry
lap 'clone'
script/build >/dev/null
lap 'script/build'
build/belfry serve --resp 127.0.0.1:0 --http none --port-file ports --data ./timers >/dev/null 2>log &
server=$!
until [ -s ports ]; do sleep 0.01; done
BELFRY_SERVER=:$(sed -n 's/^resp //p' ports)
export BELFRY_SERVER
build/belfry ping --wait 10s >/dev/null
lap 'serve, until it answers'
build/belfry schedule mail 'first' --in 1s >/dev/null
build/belfry claim mail --wait 10s >/dev/null
lap 'a timer of 1 s'
printf '%-28s %7d ms\n' 'clone to first timer' $((($(date +%s%N) - begin) / 1000000))
