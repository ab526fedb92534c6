#!/usr/bin/env bash
# belfry top, on a pseudoterminal. Usage: top.sh PROGRAM
. "$(dirname "$0")/lib.sh"
has_terminal top || exit 77
serve first --store memory
"$belfry" schedule mail x --in 1h >/dev/null
"$belfry" schedule mail y --in 1h >/dev/null
"$belfry" schedule now x >/dev/null
"$belfry" pause --create now

cat >play.py <<'END'
"""Runs a program on a terminal: play.py ROWS COLUMNS STEP ... -- PROGRAM ...

A step is see:TEXT, wait until it was written since the last step; type:KEYS; run:COMMAND of the
shell's; size:ROWSxCOLUMNS; kill:SIGNAL. Then the program has to end by itself; prints how.
"""
import fcntl, os, pty, select, signal, struct, subprocess, sys, termios, time

rows, columns = int(sys.argv[1]), int(sys.argv[2])
end = sys.argv.index("--")
steps, program = sys.argv[3:end], sys.argv[end + 1:]


def resize(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


pid, fd = pty.fork()
if pid == 0:
    resize(1, rows, columns)
    os.environ["TERM"] = "xterm"
    os.execvp(program[0], program)
seen = b""
deadline = time.monotonic() + 30


def read():
    """More of what it writes; False at its end."""
    global seen
    if time.monotonic() > deadline:
        os.kill(pid, signal.SIGKILL)
        sys.exit(f"waits in vain; the last of it: {seen[-2000:]!r}")
    if not select.select([fd], [], [], 0.1)[0]:
        return True
    try:
        data = os.read(fd, 65536)
    except OSError:
        return False
    seen += data
    return bool(data)


for step in steps:
    what, _, text = step.partition(":")
    if what == "see":
        while text.encode() not in seen:
            if not read():
                sys.exit(f"ended before {text!r}: {seen[-2000:]!r}")
        continue
    seen = b""
    if what == "type":
        os.write(fd, text.encode().decode("unicode_escape").encode("latin-1"))
    elif what == "run":
        subprocess.run(["bash", "-c", text], check=True, stdout=subprocess.DEVNULL)
    elif what == "size":
        resize(fd, *map(int, text.split("x")))
        os.kill(pid, signal.SIGWINCH)
    elif what == "kill":
        os.kill(pid, getattr(signal, text))
while read():
    pass
status = os.waitpid(pid, 0)[1]
restored = b"\x1b[?1049l" in seen
print("exits with", os.waitstatus_to_exitcode(status), "restored" if restored else "NOT RESTORED")
END
play() {
    python3 play.py "$@"
}

# --- the screen ---
is q_quits 'exits with 0 restored' play 24 100 see:SCHEDULED see:mail type:q -- "$belfry" top
is a_server_and_its_rates 'exits with 0 restored' \
    play 24 120 "see:at $BELFRY_SERVER, memory" see:commands/s 'see:late: p50' type:q -- "$belfry" top
is topics_with_their_counts 'exits with 0 restored' play 24 100 'see:now (paused)' type:q -- "$belfry" top
is what_is_new_appears 'exits with 0 restored' play 24 100 see:mail \
    "run:'$belfry' schedule brand-new x --in 1h" see:brand-new type:q -- "$belfry" top -i 100ms
is space_looks_at_once 'exits with 0 restored' play 24 100 see:mail \
    "run:'$belfry' schedule newer x --in 1h" 'type: ' see:newer type:q -- "$belfry" top --interval 1h
is s_sorts 'exits with 0 restored' play 24 100 'see:(by name)' type:s see:ready type:s see:oldest \
    type:q -- "$belfry" top
is other_keys_do_nothing 'exits with 0 restored' play 24 100 see:mail 'type:xyz\x1b[B\x1b[A\x1b[5~' \
    type:q -- "$belfry" top
is a_size_that_changes 'exits with 0 restored' play 24 100 see:mail size:10x50 see:SCHEDULED \
    size:50x200 see:SCHEDULED type:q -- "$belfry" top
is a_narrow_one_keeps_the_topics 'exits with 0 restored' play 24 40 see:TOPIC see:mail \
    'see:now (paused)' type:q -- "$belfry" top
is even_a_very_narrow_one 'exits with 0 restored' play 24 22 see:TOPIC see:mail type:q -- "$belfry" top
is a_tiny_terminal 'exits with 0 restored' play 3 20 see:belfry type:q -- "$belfry" top
is a_signal_ends_it 'exits with 0 restored' play 24 100 see:mail kill:SIGTERM -- "$belfry" top
is control_c_ends_it 'exits with 0 restored' play 24 100 see:mail 'type:\x03' -- "$belfry" top
# curses draws only differences; these names share no characters with the others.
for i in BCDEFGH zyxwvuts many/{100..160}; do printf 'SCHEDULE %s x IN 1h\r\n' "$i"; done >many
python3 -c '
import os, socket
host, port = os.environ["BELFRY_SERVER"].split(":")
s = socket.create_connection((host, int(port)))
s.sendall(open("many", "rb").read())
n = 0
while n < 126:
    n += s.recv(4096).count(b"\n")'
is pages_and_arrows_scroll 'exits with 0 restored' play 24 100 see:BCDEFGH \
    'type:\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b[6~' see:zyxwvuts 'type:\x1b[5~\x1b[5~\x1b[5~\x1b[5~\x1b[5~' \
    see:BCDEFGH 'type:\x1bOB' 'type:\x1bOA' see:BCDEFGH type:q -- "$belfry" top -i 1h

# --- without a terminal ---
exits it_needs_a_terminal 2 'not a terminal' "$belfry" top
json but_not_for_json 'j["version"] and j["commands_per_second"] >= 0 and
    [t for t in j["topics"] if t["topic"] == "mail"][0]["scheduled"] == 2 and
    [t for t in j["topics"] if t["topic"] == "now"][0] ["paused"] and
    [t for t in j["topics"] if t["topic"] == "now"][0]["oldest_age_ms"] > 0' \
    "$belfry" top --json -i 100ms
exits an_interval_too_short 2 'from 100 to' "$belfry" top --json -i 1ms
exits an_interval_that_is_none 2 'not a duration' "$belfry" top -i soon
exits a_word_too_many 2 'unexpected argument' "$belfry" top mail
exits nobody_is_there 7 'cannot reach' "$belfry" top --json --server 127.0.0.1:1
like an_unknown_terminal '*unknown terminal type*' terminal bash -c "TERM=nonsense '$belfry' top; true"

# --- lateness above the measured range ---
serve late --store memory --clock virtual
for i in 1 2 3; do "$belfry" schedule late x >/dev/null; done
"$belfry" clock --advance 61s >/dev/null
"$belfry" claim late --count 3 >/dev/null
json what_is_not_measured_is_not_0 \
    'j["lateness_us_since_start"] == {"p50": "inf", "p99": "inf"}' "$belfry" top --json -i 100ms
json nothing_in_an_interval_is_null 'j["lateness_us"] == {"p50": None, "p99": None}' \
    "$belfry" top --json -i 100ms
is nor_on_the_screen 'exits with 0 restored' \
    play 24 120 'see:p99 since start over 60 s;' type:q -- "$belfry" top
# The first sample counts from the start of the server; each further one from the one before.
is lateness_of_an_interval 'exits with 0 restored' play 24 120 'see:late: p50 over 60 s, p99 over 60 s,' \
    "run:'$belfry' schedule prompt x; '$belfry' claim prompt" 'type: ' 'see:0.1 ms' \
    type:q -- "$belfry" top -i 1h
for i in {1..9}; do "$belfry" schedule prompt x >/dev/null; done
"$belfry" claim prompt --count 9 >/dev/null
json a_half_that_is_not_late 'j["lateness_us_since_start"] == {"p50": 50, "p99": "inf"}' \
    "$belfry" top --json -i 100ms

# --- the commands that a sample takes ---
serve once --store memory
"$belfry" schedule one x >/dev/null
"$belfry" top --json -i 100ms >/dev/null
is it_asks_once_for_all_topics 0 bash -c "'$belfry' info stats | grep -c cmdstat_topic || true"

# --- a server that stops and starts again ---
serve second --store memory
"$belfry" schedule mail x --in 1h >/dev/null
port=${BELFRY_SERVER##*:}
cat >again.sh <<END
"$belfry" serve --resp 127.0.0.1:$port --http none --store memory >/dev/null 2>&1 &
echo \$! >again
until "$belfry" schedule QrStUvWx x --in 1h; do sleep 0.02; done
END
is a_server_that_goes_and_comes 'exits with 0 restored' play 24 100 see:mail \
    "run:kill -KILL $server" 'see:cannot reach' 'run:. ./again.sh' see:QrStUvWx type:q -- \
    "$belfry" top -i 100ms
started+=("$(cat again)")
printf 'a-key-that-a-machine-has-made' >key
"$belfry" serve --hash-key writer write <key >keys || fail 'serve --hash-key'
serve third --store memory --keys keys
exits a_key_that_may_not_look_is_6 6 NOPERM "$belfry" top --json --key-file key
