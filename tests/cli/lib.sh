# Shared by the tests here; sourced, with the program as $1. Servers listen on free ports; processes
# that a test has started are ended by their ids.
set -u
belfry=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
room=$(mktemp -d)
started=()

finish() {
    local pid
    for pid in ${started[@]+"${started[@]}"}; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    cd / && rm -rf "$room"
}
trap finish EXIT
cd "$room" || exit 1
unset BELFRY_KEY_FILE NO_COLOR

fail() {
    printf 'FAILED %s\n' "$1" >&2
    [ ! -s "$room/server.log" ] || tail -n 5 "$room/server.log" >&2
    exit 1
}

# eventually NAME COMMAND ...: waits until a command succeeds, with a deadline.
eventually() {
    local name=$1 end=$((SECONDS + 30))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "$name: did not happen"
        sleep 0.02
    done
}

# serve NAME FLAG ...: starts a server and sets $BELFRY_SERVER; its process id is $server.
serve() {
    local name=$1
    shift
    "$belfry" serve --resp 127.0.0.1:0 --http none --port-file "$room/$name.port" "$@" \
        >/dev/null 2>"$room/server.log" &
    server=$!
    started+=("$server")
    eventually "the server $name" test -s "$room/$name.port"
    export BELFRY_SERVER="127.0.0.1:$(sed -n 's/^resp //p' "$room/$name.port")"
}

# is NAME WANTED COMMAND ...: checks the standard output of a command, and that it exits with 0.
is() {
    local name=$1 wanted=$2 got
    shift 2
    got=$("$@" 2>"$room/errors") || fail "$name: exits with $?: $(cat "$room/errors")"
    [ "$got" = "$wanted" ] || fail "$name: got
$got
wanted
$wanted"
    printf 'ok   %s\n' "$name"
}

# like NAME PATTERN COMMAND ...: like is, with a shell pattern.
like() {
    local name=$1 wanted=$2 got
    shift 2
    got=$("$@" 2>"$room/errors") || fail "$name: exits with $?: $(cat "$room/errors")"
    # shellcheck disable=SC2254
    case $got in $wanted) ;; *) fail "$name: got $got" ;; esac
    printf 'ok   %s\n' "$name"
}

# exits NAME STATUS WANTED COMMAND ...: checks the exit status, and a part of standard error.
exits() {
    local name=$1 status=$2 wanted=$3 got
    shift 3
    got=$("$@" 2>&1 >/dev/null </dev/null)
    local exited=$?
    [ $exited -eq "$status" ] || fail "$name: exits with $exited: $got"
    case $got in *"$wanted"*) ;; *) fail "$name: got $got" ;; esac
    printf 'ok   %s\n' "$name"
}

# json NAME CONDITION COMMAND ...: checks that a command prints JSON for which a Python condition
# holds; j is the value.
json() {
    local name=$1 condition=$2 got
    shift 2
    got=$("$@" 2>"$room/errors") || fail "$name: exits with $?: $(cat "$room/errors")"
    printf '%s' "$got" | python3 -c '
import json, sys
j = json.load(sys.stdin)
sys.exit(0 if eval("(" + sys.argv[1] + ")") else 1)' "$condition" || fail "$name: $condition: got $got"
    printf 'ok   %s\n' "$name"
}

# terminal COMMAND ...: prints what a command prints on a terminal of 80 columns.
terminal() {
    python3 -c '
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[1], sys.argv[1:])
text = b""
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    text += data
os.waitpid(pid, 0)
sys.stdout.write(text.decode().replace("\r\n", "\n"))' "$@"
}

# has_terminal NAME: whether terminals are available; if not, prints that NAME is skipped.
has_terminal() {
    python3 -c 'import pty; pty.openpty()' 2>/dev/null && return 0
    printf 'skip %s: this machine has no pseudo-terminals\n' "$1"
    return 1
}

# field TOPIC ID NAME: prints one field of a timer.
field() {
    "$belfry" get "$1" "$2" | sed -n "s/^$3	//p"
}
