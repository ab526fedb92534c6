#!/usr/bin/env bash
# Runs the commands between the markers of a document, in order, and compares what they print. Servers
# listen on free ports; a worker is stopped as soon as it has printed what the document shows.
# Usage: quickstart.sh PROGRAM DOCUMENT COMMANDS    COMMANDS: the least number of commands
document=$(realpath "$2")
. "$(dirname "$0")/lib.sh"
unset BELFRY_SERVER

# Each command, \001, its expected output, \002.
sed -n '/^<!-- quickstart -->/,/^<!-- \/quickstart -->/p' "$document" | awk '
    /^```sh/ { inside = 1; next }
    /^```/ { inside = 0; next }
    !inside || /^$/ { next }
    /^# => / { wanted = wanted (wanted == "" ? "" : "\n") substr($0, 6); next }
    { if (command != "") printf "%s\001%s\002", command, wanted; command = $0; wanted = "" }
    END { printf "%s\001%s\002", command, wanted }' >lines
[ -s lines ] || fail "$2 has no commands"

prints() { # FILE TEXT
    [ "$(cat "$1")" = "$2" ]
}

# start FLAG ...: starts a server; its process is $server, its ports are $resp and $http.
start() {
    rm -f ports
    "$belfry" serve --resp 127.0.0.1:0 --http 127.0.0.1:0 --port-file ports "$@" >/dev/null 2>server.log &
    server=$!
    started+=("$server")
    eventually 'the server' grep -q '^http ' ports
    resp=$(sed -n 's/^resp //p' ports)
    http=$(sed -n 's/^http //p' ports)
    export BELFRY_SERVER="127.0.0.1:$resp"
}

# stop SIGNAL STATUS: stops the server, which must exit with STATUS.
stop() {
    kill "-$1" "$server"
    wait "$server" 2>/dev/null
    [ $? -eq "$2" ] || fail "kill -$1: the server exits with another status"
}

# Replaces build/belfry and the default ports of the document by those of the test.
adapt() {
    local line=${1//build\/belfry/\'$belfry\'}
    line=${line//-p 7878/-p ${resp-}}
    printf '%s' "${line//127.0.0.1:7879/127.0.0.1:${http-}}"
}

count=0
while IFS=$'\001' read -r -d $'\002' line wanted; do
    count=$((count + 1))
    [[ $line != 'belfry '* ]] || line=build/$line
    line=${line/#timeout 2 belfry /timeout 2 build/belfry }
    [ "$line" != script/build ] || continue
    program=${line%% *}
    [ "$program" != build/belfry ] || program=$belfry
    if ! command -v "$program" >/dev/null; then
        printf 'SKIPPED %s: there is no %s here\n' "$line" "$program"
        [ "$program" = curl ] || exit 77
        continue
    fi
    case $line in
    'kill $!; wait') stop TERM 0 ;;
    'kill -9 $!; wait') stop KILL 137 ;;
    'build/belfry serve '*' & '*'belfry ping --wait 10s')
        flags=${line#build/belfry serve }
        # shellcheck disable=SC2086
        start ${flags% & *}
        "$belfry" ping --wait 10s >/dev/null || fail "$line: no answer"
        ;;
    'timeout '[25]' build/belfry work '*)
        bash -c "exec $(adapt "${line#timeout ? }")" >printed 2>/dev/null </dev/null &
        worker=$!
        started+=("$worker")
        eventually "$line" prints printed "$wanted"
        kill "$worker" && wait "$worker" || fail "$line: exits with $?"
        ;;
    'build/belfry '* | 'redis-cli '* | 'curl '* | 'printf '*)
        bash -c "$(adapt "$line")" >printed </dev/null || fail "$line: exits with $?"
        [ -z "$wanted" ] || prints printed "$wanted" || fail "$line: prints
$(cat printed)"
        ;;
    *) fail "a line that is not known here: $line" ;;
    esac
    printf 'ok   %s\n' "$line"
done <lines
[ $count -ge "$3" ] || fail "only $count lines"
