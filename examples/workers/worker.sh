#!/usr/bin/env bash
# A worker for the topic "mail", on redis-cli: worker.sh [PORT]
#
# It does with redis-cli alone what `belfry work mail -- PROGRAM` does better: that runs several
# programs at once, and takes payloads of any bytes. Here a payload is one line.
set -u
port=${1:-7878}
stopping=
trap 'stopping=1' TERM

send() { # PAYLOAD
    local to seconds
    to=$(sed -n 's/.*"to": *"\([^"]*\)".*/\1/p' <<<"$1")
    seconds=$(sed -n 's/.*"seconds": *\([0-9.]*\).*/\1/p' <<<"$1")
    [ -n "$to" ] || return 1
    sleep "${seconds:-0}" # stands for the real work
    echo "mail to $to"
}

# Extends the lease at once, and again after each third of it. EXTEND replies with the lease in ms.
extend() { # TOKEN
    local lease_ms
    while lease_ms=$(redis-cli -e -p "$port" EXTEND "$1" 2>/dev/null); do
        sleep "$((lease_ms / 3000)).$((lease_ms / 3 % 1000 / 100))"
    done
}

while [ -z "$stopping" ]; do
    # A delivery is printed one field per line: token, topic, id, payload, due, attempt, headers. The
    # fields after the headers have no fixed line: each header takes two.
    mapfile -t delivery < <(redis-cli -e -p "$port" --raw CLAIM mail WAIT 2s WORKER shell 2>&1)
    case ${#delivery[@]} in
    0 | 1) # nothing, or an error
        [ -z "${delivery[0]-}" ] || { echo "${delivery[0]}" >&2 && sleep 1; }
        continue
        ;;
    esac
    token=${delivery[0]} payload=${delivery[3]}
    extend "$token" &
    heartbeat=$!
    if send "$payload"; then
        redis-cli -p "$port" ACK "$token" >/dev/null
    else
        redis-cli -p "$port" FAIL "$token" REASON 'the mail has no address' >/dev/null
    fi
    kill "$heartbeat"
    wait "$heartbeat" 2>/dev/null
done
exit 0
