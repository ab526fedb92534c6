#!/usr/bin/env bash
# belfry work, with shell scripts as handlers. Usage: work.sh PROGRAM
. "$(dirname "$0")/lib.sh"
serve work --store memory
first=$BELFRY_SERVER first_server=$server

# work FLAG ... -- HANDLER: starts belfry work in the background; its process id is $worker.
work() {
    "$belfry" work "$@" >worker.out 2>worker.err &
    worker=$!
    started+=("$worker")
}

# stop NAME: stops the worker with SIGTERM; it must exit with 0.
stop() {
    kill -TERM "$worker"
    wait "$worker"
    local exited=$?
    [ $exited -eq 0 ] || fail "$1: belfry work exits with $exited: $(cat worker.err)"
}

has() { # NAME FILE TEXT
    grep -qF -- "$3" "$2" || fail "$1: $2 is $(cat "$2")"
    printf 'ok   %s\n' "$1"
}

gone() { # whether a topic has nothing that is not ended
    [ "$("$belfry" list "$1" | grep -cvE '	(dead|done)	')" = 0 ]
}

cat >handler <<'END'
#!/bin/sh
# Saves its input, and exits with the status in the payload.
cat >"$BELFRY_ID.in"
env | grep ^BELFRY_ | sort >"$BELFRY_ID.env"
echo "$BELFRY_ATTEMPT" >>"$BELFRY_ID.attempts"
case $(head -n 1 "$BELFRY_ID.in") in
reject) echo 'this can never work' >&2; exit 65 ;;
later) [ -e again ] && exit 0; touch again; exit 75 ;;
twice) [ "$BELFRY_ATTEMPT" = 2 ] && exit 0; echo one >&2; printf 'two\n\nthree' >&2; exit 9 ;;
silent) exit 4 ;;
broken) echo 'no answer' >&2; exit 69 ;;
killed) kill -KILL $$ ;;
big) exit 0 ;;
esac
exit 0
END
chmod +x handler

# --- input, environment and exit status ---
printf 'a\000b\377\n' >bytes
"$belfry" schedule q --file bytes --id given --header my-color=red --header 'x y=1' \
    --correlation order-7 >/dev/null
"$belfry" schedule q reject --id reject >/dev/null
"$belfry" schedule q later --id later >/dev/null
"$belfry" schedule q twice --id twice --retry 20ms >/dev/null
"$belfry" schedule q silent --id silent --retry 1h >/dev/null
"$belfry" schedule q broken --id broken --resource api --retry 1h >/dev/null
"$belfry" schedule q broken --id unnamed --retry 1h >/dev/null
"$belfry" schedule q killed --id killed --retry 1h >/dev/null
head -c 900000 /dev/zero | tr '\000' x >big
"$belfry" schedule q --file big --id big >/dev/null
work q other -j 2 --json -- ./handler

eventually the_payload_is_handed_over test -s given.env
is the_payload_is_standard_input same bash -c 'cmp bytes given.in && echo same'
like the_rest_is_in_the_environment 'BELFRY_ATTEMPT=1
BELFRY_CORRELATION=order-7
BELFRY_DUE_MS=1*
BELFRY_HEADER_MY_COLOR=red
BELFRY_HEADER_X_Y=1
BELFRY_ID=given
*BELFRY_TOKEN=*
BELFRY_TOPIC=q' cat given.env
eventually a_large_payload_is_handed_over cmp big big.in
eventually rejected bash -c "'$belfry' list q --state dead | grep -q ^reject"
is status_65_rejects 'this can never work' field q reject reason
eventually status_75_is_done bash -c "[ \$(wc -l <later.attempts) = 2 ]"
is status_75_spends_no_attempt '1 1' bash -c 'echo $(cat later.attempts)'
eventually another_status_comes_again bash -c "[ \$(wc -l <twice.attempts) = 2 ]"
is another_status_spends_an_attempt '1 2' bash -c 'echo $(cat twice.attempts)'
eventually silent_has_failed bash -c "'$belfry' get q silent | grep -q '^attempts	1'"
for id in broken unnamed; do
    eventually "${id}_has_failed" bash -c "'$belfry' get q $id | grep -q '^attempts	1'"
done
like a_reason_of_its_own '*exit status 4*' "$belfry" explain q silent
eventually killed_has_failed bash -c "'$belfry' get q killed | grep -q '^attempts	1'"
like a_signal_is_a_reason '*ended by signal 9*' "$belfry" explain q killed
"$belfry" schedule other silent --id of-another --retry 1h >/dev/null
eventually all_topics_are_worked_on test -s of-another.in
stop the_first
is what_is_done_is_gone 'broken killed silent unnamed' bash -c "echo \$('$belfry' list q --state scheduled | cut -f1 | sort)"
has the_last_line_is_the_reason worker.out \
    '"id": "twice", "attempt": 1, "outcome": "failed", "status": 9, "reason": "three"'
has outcomes_as_json worker.out '"id": "given", "attempt": 1, "outcome": "done", "status": 0'
has released_as_json worker.out '"id": "later", "attempt": 1, "outcome": "released", "status": 75'
has status_69_is_a_failure worker.out \
    '"id": "broken", "attempt": 1, "outcome": "failed", "status": 69, "reason": "no answer"'
json status_69_counts_for_the_breaker 'j["breaker"]["failures"] == 1' "$belfry" limit api --json
is the_verdict_as_json 'dead scheduled' python3 -c 'import json
lines = {line["id"]: line for line in map(json.loads, open("worker.out"))}
assert "due_ms" not in lines["reject"] and lines["silent"]["due_ms"] > 0
assert "state" not in lines["given"]
print(lines["reject"]["state"], lines["silent"]["state"])'
has what_it_says_is_passed_on worker.err 'this can never work'
is every_line_is_json yes python3 -c 'import json
for line in open("worker.out"): json.loads(line)
print("yes")'

# --- outcomes as text ---
"$belfry" schedule plain broken --id broken --resource remote --retry 1h >/dev/null
"$belfry" schedule plain reject --id reject >/dev/null
"$belfry" schedule plain silent --id last --retry 'max(1)' >/dev/null
work plain -- ./handler
eventually plain_has_failed bash -c "'$belfry' get plain broken | grep -q '^attempts	1'"
eventually plain_is_rejected bash -c "'$belfry' list plain --state dead | grep -q ^reject"
eventually plain_is_dead bash -c "'$belfry' list plain --state dead | grep -q ^last"
stop the_plain
has the_last_attempt_as_text worker.err \
    'belfry: plain last: failed: exit status 4; dead after 1 attempt'
like the_next_attempt_as_text '*failed: no answer; next attempt at 20*Z' \
    grep '^belfry: plain broken' worker.err
has status_69_is_a_failure_as_text worker.err 'belfry: plain broken: failed: no answer'
has status_65_is_a_rejection_as_text worker.err 'belfry: plain reject: rejected: this can never work'

# --- a released timer lets others go first, and is due again a second later ---
serve virtual --store memory --clock virtual
cat >not-now <<'END'
#!/bin/sh
echo "$BELFRY_ID" >>ran
[ "$BELFRY_ID" = stays ] && exit 75
exit 0
END
chmod +x not-now
"$belfry" schedule turns x --id stays --priority 1 >/dev/null
"$belfry" schedule turns x --id other >/dev/null
work turns -j 1 -- ./not-now
eventually another_gets_its_turn grep -q other ran
is it_was_released_once 'stays other' bash -c 'echo $(cat ran)'
is and_is_due_in_a_second 'scheduled 1000' bash -c "'$belfry' get turns stays --json | python3 -c '
import json, sys
j = json.load(sys.stdin)
print(j[\"state\"], j[\"due_ms\"] - j[\"created_ms\"])'"
"$belfry" clock --advance 1s >/dev/null
eventually it_comes_again bash -c '[ $(grep -c stays ran) = 2 ]'
echo 'ok   it_comes_again'
stop turns
kill "$server" && wait "$server"
export BELFRY_SERVER=$first

# --- several at once ---
cat >meet <<'END'
#!/bin/sh
touch "here.$BELFRY_ID"
while [ ! -e here.m1 ] || [ ! -e here.m2 ]; do sleep 0.02; done
END
chmod +x meet
"$belfry" schedule meet x --id m1 >/dev/null
"$belfry" schedule meet x --id m2 >/dev/null
work meet -j2 -- ./meet
eventually two_run_at_once gone meet
echo 'ok   two_run_at_once'
stop two_at_once

# --- leases are extended ---
cat >slow <<'END'
#!/bin/sh
echo "$BELFRY_ATTEMPT" >>"$BELFRY_ID.begun"
while [ ! -e "$BELFRY_ID.go" ]; do sleep 0.02; done
END
chmod +x slow
"$belfry" schedule slow x --id s1 >/dev/null
work slow -j 1 --lease 300ms --name somebody -- ./slow
eventually it_has_begun test -s s1.begun
begin=$(date +%s%N)
eventually several_leases_pass bash -c "[ \$((\$(date +%s%N) - $begin)) -gt 1000000000 ]"
is the_lease_is_extended '1 0' bash -c "echo \$(cat s1.begun) \$('$belfry' get slow s1 | sed -n 's/^crashes	//p')"
is people_see_who_has_it somebody field slow s1 worker

# --- SIGTERM: running programs finish, and no more is claimed ---
kill -TERM "$worker"
"$belfry" schedule slow x --id s2 >/dev/null
eventually nobody_claims_any_more bash -c "! '$belfry' explain slow s2 | grep -q 'claims that wait'"
touch s1.go
wait "$worker" || fail "a stopped worker exits with $?: $(cat worker.err)"
exits what_ran_is_done 3 '' "$belfry" get slow s1
is no_more_was_claimed 'ready 0 0' bash -c "'$belfry' get slow s2 --json | python3 -c '
import json, sys
j = json.load(sys.stdin)
print(j[\"state\"], j[\"attempts\"], j[\"crashes\"])'"

# --- a report after the end of the lease is lost ---
"$belfry" schedule slow x --id s3 >/dev/null
"$belfry" cancel slow s2 >/dev/null
work slow -j 1 --json -- ./slow
eventually it_has_begun_too test -s s3.begun
"$belfry" cancel slow s3 >/dev/null
touch s3.go
eventually a_line_for_it test -s worker.out
has what_is_cancelled_meanwhile_is_lost worker.out \
    '{"topic": "slow", "id": "s3", "attempt": 1, "outcome": "lost", "status": 0}'
stop lost
has why_it_is_lost worker.err \
    'STALE the lease has ended: it expired, or the timer was cancelled or replaced'
"$belfry" schedule slow x --id s2 >/dev/null

# --- the grace is over ---
work slow --grace 50ms -- ./slow
eventually it_has_begun_again test -s s2.begun
kill -INT "$worker"
wait "$worker" || fail "a worker whose grace is over exits with $?: $(cat worker.err)"
is what_was_ended_is_released 'ready 0 0' bash -c "'$belfry' get slow s2 --json | python3 -c '
import json, sys
j = json.load(sys.stdin)
print(j[\"state\"], j[\"attempts\"], j[\"crashes\"])'"

# --- two workers of one topic ---
cat >once <<'END'
#!/bin/sh
# Each handler waits for the other's first timer, so that both workers get some.
touch "here.$BY"
while [ ! -e here.one ] || [ ! -e here.other ]; do sleep 0.02; done
echo "$BELFRY_ID" >>"ids.$BY"
END
chmod +x once
for i in $(seq 100); do printf '{"id": "o%d", "payload": "x"}\n' "$i"; done >hundred
"$belfry" import hundred --topic once >/dev/null || fail "two_workers: import exits with $?"
BY=one work once -j 4 -- ./once
one=$worker
BY=other work once -j 4 -- ./once
eventually two_workers_do_all gone once
stop the_other
worker=$one
stop the_one
is two_workers_share_the_work 'yes' bash -c '[ -s ids.one ] && [ -s ids.other ] && echo yes'
is each_id_is_worked_on_once '100 100' \
    bash -c 'echo $(cat ids.one ids.other | wc -l) $(sort -u ids.one ids.other | wc -l)'

# --- usage errors ---
"$belfry" schedule letters x --in 1h >/dev/null
"$belfry" work leters -- ./handler >/dev/null 2>worker.err &
worker=$!
started+=($worker)
eventually a_mistyped_topic_is_told grep -q \
    "topic 'leters' does not exist yet; did you mean 'letters'" worker.err
"$belfry" schedule leters 0 --id first >/dev/null
eventually and_waited_for bash -c "! '$belfry' get leters first"
kill "$worker" && wait "$worker" || fail "a worker of a mistyped topic exits with $?"
echo 'ok   a_mistyped_topic_is_told_and_waited_for'
exits no_program 2 'expected TOPIC' "$belfry" work q
exits no_topic 2 'expected TOPIC' "$belfry" work -- ./handler
exits a_program_that_is_not_there 1 'cannot run ./nowhere' "$belfry" work q -- ./nowhere
exits a_program_that_is_nowhere 1 'cannot run nowhere-at-all' "$belfry" work q -- nowhere-at-all
mkdir -p folder
printf '#!/bin/sh\r\nexit 0\r\n' >windows
printf '#!/no/such/interpreter -x\n' >lost
printf 'echo hello\n' >plain-text
: >nothing
chmod +x windows lost plain-text nothing
exits a_program_with_windows_line_ends 1 'cannot run ./windows: bad interpreter /bin/sh^M' \
    "$belfry" work q -- ./windows
exits a_program_without_its_interpreter 1 'cannot run ./lost: bad interpreter /no/such/interpreter: No such file' \
    "$belfry" work q -- ./lost
exits a_program_without_a_first_line 1 'cannot run ./plain-text: the file has no #! line' \
    "$belfry" work q -- ./plain-text
exits a_program_that_is_empty 1 'the file is empty' "$belfry" work q -- ./nothing
exits a_program_that_is_a_directory 1 'cannot run ./folder: it is a directory' "$belfry" work q -- ./folder
mkdir -p path/runs path2
cp lost path2/runs
exits a_directory_in_the_path_is_passed_over 1 'cannot run runs: bad interpreter' \
    env PATH="$PWD/path:$PWD/path2:$PATH" "$belfry" work q -- runs
exits the_current_directory_is_in_the_path 1 'cannot run lost: bad interpreter' \
    env PATH="$PATH:" "$belfry" work q -- lost
exits only_a_directory_in_the_path 1 'cannot run runs: Permission denied' \
    env PATH="$PWD/path:$PATH" "$belfry" work q -- runs
cp handler changing
"$belfry" schedule changes silent --id before >/dev/null
work changes -- ./changing
eventually the_program_runs bash -c "[ -n \"\$('$belfry' get changes before | grep 'attempts	1')\" ]"
cp windows changing
"$belfry" schedule changes x --id after >/dev/null
wait "$worker"
is a_worker_ends_when_its_program_is_broken 1 echo $?
like and_says_why '*cannot run ./changing: bad interpreter*' cat worker.err
like and_releases_the_timer '*state	scheduled*attempts	0*' "$belfry" get changes after
exits a_bad_number 2 '-j 0' "$belfry" work q -j 0 -- ./handler
exits a_bad_lease 2 'not a duration' "$belfry" work q --lease soon -- ./handler
exits no_lease 2 'at least 1 ms' "$belfry" work q --lease 0 -- ./handler
exits a_topic_that_can_be_none 2 BADARG "$belfry" work 'no topic' -- ./handler
exits a_topic_with_the_name_of_an_option 2 ERR "$belfry" work count -- ./handler
exits an_option_that_is_none 2 'unknown option --bogus' "$belfry" work q --bogus 1 -- ./handler

# --- SIGKILL: no timer is released ---
kill "$first_server" && wait "$first_server"
serve still --store memory --clock virtual
state() { # of k1
    "$belfry" get slow k1 --json | python3 -c '
import json, sys
j = json.load(sys.stdin)
print(j["state"], j["attempts"], j["crashes"])'
}
"$belfry" schedule slow x --id k1 >/dev/null
work slow --lease 1h -- ./slow
eventually it_has_begun_to_be_killed test -s k1.begun
{ kill -KILL "$worker"; wait "$worker"; } 2>/dev/null
"$belfry" clock --advance 59m >/dev/null
is a_killed_worker_has_it_while_the_lease_runs 'leased 0 0' state
"$belfry" clock --advance 1m >/dev/null
is when_the_lease_is_over_it_is_a_crash 'ready 0 1' state
touch k1.go
work slow -- ./slow
eventually it_is_delivered_again bash -c "[ \$(wc -l <k1.begun) = 2 ]"
is no_attempt_was_spent '1 1' bash -c 'echo $(cat k1.begun)'
eventually it_is_done_then gone slow
stop the_last

kill "$server" && wait "$server"
exits nobody_is_there 7 'cannot reach' "$belfry" work q -- ./handler
