#!/usr/bin/env bash
# examples/remind, as people type it. Usage: remind.sh PROGRAM
set -u
program=$(realpath "$1")
folder=$(mktemp -d)
runner=
trap '[ -n "$runner" ] && kill -9 "$runner" 2>/dev/null; rm -rf "$folder"' EXIT

fail() {
    printf 'FAILED %s\n' "$1" >&2
    exit 1
}

ok() {
    printf 'ok   %s\n' "$1"
}

remind() {
    "$program" --data "$folder/data" --tz Europe/Berlin "$@"
}

# says NAME PATTERN COMMAND ...: a command that succeeds, and what it prints.
says() {
    local name=$1 wanted=$2 got
    shift 2
    got=$("$@" 2>&1) || fail "$name: fails with $? and says $got"
    [[ $got == $wanted ]] || fail "$name: got
$got"
    ok "$name"
}

# refuses NAME STATUS WANTED COMMAND ...: how it exits, and what standard error holds.
refuses() {
    local name=$1 status=$2 wanted=$3 got
    shift 3
    got=$("$@" 2>&1 >/dev/null)
    [ $? -eq "$status" ] || fail "$name: exits with another status"
    [[ $got == *"$wanted"* ]] || fail "$name: got $got"
    ok "$name"
}

# waits NAME COMMAND ...: until it succeeds.
waits() {
    local name=$1 tries=0
    shift
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fail "$name: does not come"
        sleep 0.02
    done
}

start() {
    "$program" --data "$folder/data" run "$@" >>"$folder/said" 2>"$folder/complaints" &
    runner=$!
    waits "the runner" test -S "$folder/data/socket"
}

stop() {
    kill -TERM "$runner"
    wait "$runner" || fail "$1: the runner exits with $?"
    runner=
}

said() {
    grep -qx -- "$1" "$folder/said"
}

id_of() {
    remind list | awk -v text="$1" 'index($0, text) { print $1; exit }'
}

# --- what is said wrong ---
refuses no_command 2 usage: remind
refuses an_unknown_command 2 usage: remind sing
refuses a_reminder_without_a_text 2 usage: remind in 10m
refuses a_bad_delay_with_a_mark_below_it 2 '
    10x
      ^' remind in 10x tea
refuses a_bad_rule_with_a_mark_below_it 2 'expected an hour from 0 to 23
    0 25 * * *
      ^' remind every '0 25 * * *' tea
refuses a_bad_time 2 '    tomorrow
    ^' remind at tomorrow tea
refuses a_time_of_day_that_is_none 2 usage: remind every day at 25:00 tea
refuses a_time_that_is_over 1 'is over' remind at 2001-01-01T00:00:00Z tea
refuses a_zone_that_is_none 2 'the name of a zone' "$program" --data "$folder/data" --tz Mars list
refuses an_id_that_is_none 1 'no such reminder' remind cancel abcd
touch "$folder/file"
refuses a_folder_that_cannot_be_made 1 "$folder/file" "$program" --data "$folder/file/data" list

# --- what is to come ---
says an_empty_list '' remind list
says in_a_while '????  20*' remind in 10h 'tea, and "cake"'
says at_a_time_in_a_zone '????  2126-12-01T03:00:00+01:00?Europe/Berlin?' \
    remind at '2126-12-01T09:00[Asia/Bangkok]' 'call Ada'
says at_a_local_time '????  2126-06-01T09:00:00+02:00?Europe/Berlin?' remind at 2126-06-01T09:00 June
says by_words '????  *T09:15:00+0?:00?Europe/Berlin?' remind every weekday at 9:15 'stand up'
says by_a_rule '????  *-01T07:00:00+0?:00?Europe/Berlin?' remind every '0 7 1 * *' rent
says by_an_interval '????  *' remind every 36h plants
says they_are_listed_in_order '*T09:00:00+02:00?Europe/Berlin?  June*call Ada' remind list
says what_recurs_is_listed_with_its_rule '*stand up  (every 15 9 \* \* 1-5)*' remind list
says texts_are_as_they_were '*  tea, and "cake"*' remind list
says nothing_is_due '' remind run --once
says it_can_be_cancelled '' remind cancel "$(id_of June)" "$(id_of rent)"
says and_is_gone 0 bash -c "$program --data $folder/data list | grep -c 'June\|rent' || true"

# --- what is due ---
says it_is_due '????  *' remind in 0s "it's \$HOME"
says it_is_said "it's \$HOME" remind run --once
says once_only '' remind run --once
says it_is_due_for_a_command '????  *' remind in 0s 'two  words'
says a_command_gets_it_as_one_argument '<two  words>' remind run --once --exec 'printf "<%s>"'
says it_is_due_for_a_command_that_fails '????  *' remind in 0s stubborn
says a_command_that_fails '' remind run --once --exec false
says it_will_be_tried_again '*stubborn*' remind list

# --- somebody runs ---
start
says the_runner_is_asked '????  *' remind in 50ms soon
waits soon said soon
says the_runner_lists '*stand up*' remind list
says the_runner_cancels '' remind cancel "$(id_of plants)"
refuses the_runner_refuses 2 'expected' remind in 10x tea
refuses the_runner_does_not_find 1 'no such reminder' remind cancel abcd
remind in 100ms again >/dev/null
waits again said again
ok it_rings_while_it_runs
[ "$(grep -c . "$folder/said")" -eq 2 ] || fail "it says more than that"
refuses there_is_one_runner 1 'one runs already' remind run --once
stop it_ends_when_told_to
ok it_ends_when_told_to

# --- nothing is lost ---
start
for i in 1 2 3 4 5; do
    remind in "$((i * 10))ms" "before the end $i" >/dev/null || fail "before the end"
done
{
    kill -9 "$runner"
    wait "$runner"
} 2>/dev/null
runner=
for i in 1 2 3 4 5; do
    said "before the end $i" || lost="${lost:-} $i"
done
start
for i in 1 2 3 4 5; do
    case ${lost:-} in *$i*) waits "number $i" said "before the end $i" ;; esac
done
ok what_was_promised_is_said_after_a_crash
stop after_a_crash
says the_others_are_still_there '*stand up*' remind list
