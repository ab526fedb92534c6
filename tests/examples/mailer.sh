#!/usr/bin/env bash
# examples/mailer against a sendmail that writes down what it is told. Usage: mailer.sh PROGRAM
#
# What the fake does is said by the address: what begins with "later" is deferred once, with "flaky"
# fails once, with "never" is rejected, with "hopeless" always fails, with "slow" waits for a file.
set -u
program=$(realpath "$1")
folder=$(mktemp -d)
running=
trap '[ -n "$running" ] && kill -9 "$running" 2>/dev/null; touch "$folder/go"; rm -rf "$folder"' EXIT
cd "$folder" || exit 1

cat >sendmail <<'END'
#!/bin/sh
# sendmail FOLDER ADDRESS
cd "$1" || exit 1
echo "$2" >>begun
cmp -s - message || { echo "$2 got another message" >>wrong; exit 1; }
case $2 in
later*) mkdir "tried-$2" 2>/dev/null && exit 75 ;;
flaky*) mkdir "tried-$2" 2>/dev/null && exit 1 ;;
never*) exit 65 ;;
hopeless*) exit 1 ;;
slow*) while [ ! -e go ]; do sleep 0.02; done ;;
esac
echo "$2" >>sent
END
chmod +x sendmail

fail() {
    printf 'FAILED %s\n' "$1" >&2
    cat said complaints >&2
    exit 1
}

ok() {
    printf 'ok   %s\n' "$1"
}

waits() {
    local name=$1 tries=0
    shift
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fail "$name: does not come"
        sleep 0.02
    done
}

# mail ARGUMENT ...: sends, and begin ARGUMENT ... &: in the background, where exec lets it have the
# process that is killed.
mail() {
    (begin "$@")
}

begin() {
    exec "$program" --data data --sendmail "$folder/sendmail '$folder'" --retry 20ms,20ms \
        --defer 20ms --lease "${lease:-1m}" "$@" <message >said 2>>complaints
}

count() {
    cat "$1" 2>/dev/null | wc -l
}

has() {
    [ "$(count "$1")" -ge "$2" ]
}

# Forgets everything.
renew() {
    rm -rf data begun sent wrong go complaints tried-*
    echo "Subject: $1

Hello." >message
    touch begun sent complaints
}

# sees NAME WANTED: the summary.
sees() {
    grep -qx -- "$2" said || fail "$1: says $(tail -n 1 said), wanted $2"
}

# exactly NAME FILE: FILE has all of the list, and nothing twice.
exactly() {
    sort "$2" | cmp -s - <(sort list) || fail "$1: $(count "$2") lines of $(count list)"
    [ ! -e wrong ] || fail "$1: $(cat wrong)"
}

# --- what is said wrong ---
renew usage
mail --jobs 0 a@example.org; [ $? -eq 2 ] || fail "bad jobs"
mail --retry never a@example.org; [ $? -eq 2 ] || fail "bad policy"
mail not-an-address; [ $? -eq 2 ] || fail "bad address"
mail a@example.org --list none; [ $? -eq 2 ] || fail "no list"
"$program" --data data 2>complaints; [ $? -eq 2 ] || fail "no sendmail"
[ "$(count sent)" -eq 0 ] || fail "sent all the same"
ok what_is_said_wrong_sends_nothing

# --- everybody gets it ---
renew everybody
for i in $(seq 40); do echo "user$i@host$((i % 7)).example.org"; done >list
mail --list list || fail "everybody: exits with $?"
exactly everybody sent
sees everybody '40 scheduled'
sees everybody '40 sent, 0 deferred, 0 failed, 0 given up, 0 left'
ok everybody_gets_it

mail --list list extra@example.org || fail "again: exits with $?"
echo extra@example.org >>list
exactly again sent
sees again '1 sent, 0 deferred, 0 failed, 0 given up, 0 left'
ok nobody_gets_it_twice

# --- what does not work at once ---
renew troubles
printf '%s@example.org\n' fine later1 later2 flaky1 flaky2 >list
mail --list list never@example.org hopeless@example.org
[ $? -eq 1 ] || fail "troubles: exits with another status"
exactly troubles sent
sees troubles '5 sent, 2 deferred, 6 failed, 2 given up, 0 left'
[ "$(grep -c hopeless begun)" -eq 3 ] || fail "troubles: not three attempts"
[ "$(grep -c never begun)" -eq 1 ] || fail "troubles: more than one attempt"
ok what_fails_is_tried_again_or_given_up

# --- it is told to end ---
renew the end
printf 'slow%s@example.org\n' 1 2 3 4 5 >list
begin --jobs 2 --list list &
running=$!
waits "two at once" has begun 2
kill -TERM "$running"
touch go
wait "$running"
[ $? -eq 75 ] || fail "the end: exits with another status"
running=
[ "$(count begun)" -eq 2 ] || fail "the end: begins more"
sees "the end" '2 sent, 0 deferred, 0 failed, 0 given up, 3 left'
ok a_signal_lets_it_finish_what_runs
mail || fail "the rest: exits with $?"
exactly "the rest" sent
ok the_rest_is_sent_later

# --- it is killed ---
# What was running then may come twice, and so may what a machine that is too slow has lost the lease
# of, which is complained about. Nothing else may, and nothing may be missing.
none_is_missing() {
    local kills=$2 lost
    sort -u sent | cmp -s - <(sort list) ||
        fail "$1: $(sort -u sent | wc -l) of $(count list) were sent"
    lost=$(grep -c lease complaints)
    [ "$(count sent)" -le $(($(count list) + kills + lost)) ] ||
        fail "$1: $(count sent) were sent for $(count list)"
    [ ! -e wrong ] || fail "$1: $(cat wrong)"
}

renew kill
lease=500ms
jobs=3
for i in $(seq 120); do echo "user$i@host$((i % 5)).example.org"; done >list
for goal in 10 35 60 85; do
    begin --jobs $jobs --list list &
    running=$!
    waits "some are sent" has sent $goal
    kill -9 "$running"
    wait "$running" 2>/dev/null
    running=
done
mail --jobs $jobs --list list || fail "kill: exits with $?"
none_is_missing kill $((4 * jobs))
ok none_is_lost_when_it_is_killed
sent=$(count sent)
mail --list list || fail "kill, again: exits with $?"
[ "$(count sent)" -eq "$sent" ] || fail "kill: sent again"
ok and_none_is_scheduled_again

# --- it is killed while it schedules ---
renew schedule
for i in $(seq 400); do echo "user$i@host$((i % 50)).example.org"; done >list
for i in 1 2 3; do
    begin --jobs 1 --list list &
    running=$!
    waits "it begins" test -e data/superblock
    kill -9 "$running"
    wait "$running" 2>/dev/null
    running=
done
mail --jobs 1 --list list --sendmail "add() { echo \"\$1\" >>'$folder/sent'; }; add" ||
    fail "schedule: exits with $?"
none_is_missing schedule 3
ok nor_when_it_is_killed_while_it_schedules
