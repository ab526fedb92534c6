#!/usr/bin/env bash
# Tries every line of the README's quickstart, and that it prints what the README says. The server is
# another one, on a free port; workers are stopped when they have printed it, and not by the clock.
# Usage: quickstart.sh PROGRAM README
readme=$(realpath "$2")
. "$(dirname "$0")/lib.sh"

# Commands with what they print behind them, a tab between; \n for line ends.
sed -n '/^<!-- quickstart -->/,/^<!-- \/quickstart -->/p' "$readme" | awk '
    /^```sh/ { inside = 1; next }
    /^```/ { inside = 0; next }
    !inside || /^$/ { next }
    /^# => / { wanted = wanted (wanted == "" ? "" : "\n") substr($0, 6); next }
    { if (command != "") printf "%s\001%s\002", command, wanted; command = $0; wanted = "" }
    END { printf "%s\001%s\002", command, wanted }' >lines
[ -s lines ] || fail 'the README has no quickstart'

prints() { # FILE TEXT
    [ "$(cat "$1")" = "$2" ]
}

count=0
while IFS=$'\001' read -r -d $'\002' line wanted; do
    count=$((count + 1))
    case $line in
    script/build | 'kill %1') continue ;;
    'build/belfry serve '*' &')
        flags=${line#build/belfry serve }
        # shellcheck disable=SC2086
        serve quickstart ${flags% &}
        ;;
    'timeout 2 build/belfry work '*)
        bash -c "exec '$belfry' ${line#timeout 2 build/belfry }" >printed 2>/dev/null </dev/null &
        worker=$!
        started+=("$worker")
        eventually "$line" prints printed "$wanted"
        kill "$worker" && wait "$worker" || fail "$line: exits with $?"
        ;;
    'build/belfry '*)
        bash -c "'$belfry' ${line#build/belfry }" >printed </dev/null || fail "$line: exits with $?"
        [ -z "$wanted" ] || prints printed "$wanted" || fail "$line: prints
$(cat printed)"
        ;;
    *) fail "the README has a line that is not known here: $line" ;;
    esac
    printf 'ok   %s\n' "$line"
done <lines
[ $count -ge 15 ] || fail "only $count lines"
