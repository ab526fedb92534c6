#!/usr/bin/env bash
# belfry job, and results in belfry work. Usage: job.sh PROGRAM
. "$(dirname "$0")/lib.sh"
serve jobs --store memory --clock virtual

# --- submit ---
cat >chain.json <<'END'
{"id": "chain", "tasks": [{"id": "a", "topic": "work", "payload": "one"},
                          {"id": "b", "topic": "work", "after": ["a"]}]}
END
is submit_prints_the_id chain "$belfry" job submit chain.json
exits known_id_is_a_conflict 4 CONFLICT "$belfry" job submit chain.json
exits conflict_says_how_to_replace 4 "job 'chain' is running; replace it with --replace" \
    "$belfry" job submit chain.json
is submit_from_stdin_with_an_id '{"id": "given", "tasks": 1, "edges": 0}' \
    bash -c "echo '{\"tasks\": [{\"id\": \"a\", \"topic\": \"idle\"}]}' | '$belfry' job submit - --id given --json"
printf 'load: fetch clean?\n# comment\nalarm: load!\n' >rules.txt
is lines_of_make_become_a_job rules "$belfry" job submit rules.txt --topic idle --id rules
is picture_is_moved_in_by_depth 'rules  running  [--------------------]  0 %  0 of 4
fetch                    ready     
clean                    ready     
  load                   blocked    < fetch clean?
    alarm                blocked    < load!' "$belfry" job get rules
printf 'load: fetch\nnonsense\n' >wrong.txt
exits wrong_line_is_named 2 'line 2 of wrong.txt' "$belfry" job submit wrong.txt --topic idle
printf '\n# nothing: here\n' >empty.txt
wrong_rule() { # NAME LINE WANTED
    printf '# a comment\na:\n%s\n' "$2" >wrong.txt
    exits "$1" 2 "line 3 of wrong.txt: $3" "$belfry" job submit wrong.txt --topic idle
}
wrong_rule a_rule_without_a_colon 'load fetch' "no colon after 'load'"
wrong_rule a_rule_of_a_task_with_a_slash 'x/y: a' "'x/y' is no id of a task"
wrong_rule a_rule_after_what_is_no_id 'b: a a,c # more' "'a,c' is no id of a task"
wrong_rule a_rule_without_a_task ' : a' 'no task before the colon'
wrong_rule a_rule_with_two_colons 'b: a: c' 'a second colon'
wrong_rule a_task_with_two_rules 'a: b' "'a' has a line already"
exits empty_file_is_refused 2 'no tasks in empty.txt' "$belfry" job submit empty.txt --topic idle
echo '{"tasks": [{"id": "1", "topic": "t", "after": ["2"]}, {"id": "2", "topic": "t", "after": ["1"]}]}' >cycle.json
exits cycle_is_named 2 'cycle: 1 -> 2 -> 1' "$belfry" job submit cycle.json
printf '{"tasks": [\n    {"id": "a"\n     "topic": "t"}]}' >comma.json
exits wrong_json_is_named_by_file_and_line 2 'comma.json: BADARG line 3, column 6: expected a comma' \
    "$belfry" job submit comma.json
echo '{"tasks": [{"id": "a", "topic": "t", "depends_on": ["b"]}]}' >field.json
exits unknown_field_has_a_hint 2 "tasks[0].depends_on: unknown field; did you mean 'after'?" \
    "$belfry" job submit field.json
printf 'tasks:\n  - id: a\n' >job.yaml
exits yaml_is_named 2 'job.yaml is YAML' "$belfry" job submit job.yaml
exits lines_need_a_topic 2 'give --topic' "$belfry" job submit rules.txt
exits json_needs_no_topic 2 'leave out --topic' "$belfry" job submit chain.json --topic idle
: >nothing.json
exits no_job_in_an_empty_file 2 'no job in nothing.json' "$belfry" job submit nothing.json
printf '\357\273\277{"id": "marked", "tasks": []}' >marked.json
is byte_order_mark_is_left_out marked "$belfry" job submit marked.json
exits missing_file 1 'cannot read nosuch.json' "$belfry" job submit nosuch.json
exits usage_of_job 2 'missing subcommand' "$belfry" job
exits unknown_subcommand 2 "did you mean 'cancel'" "$belfry" job cancle x
exits too_few_words 2 'get takes ID' "$belfry" job get
exits unknown_job 3 "NOTFOUND job 'nosuch' does not exist" "$belfry" job get nosuch
exits similar_job_is_named 3 "did you mean 'chain'?" "$belfry" job watch chian
exits similar_job_to_cancel 3 "did you mean 'chain'?" "$belfry" job cancel chian
exits job_is_not_a_timer 3 "'chain' is a job: belfry job explain chain" "$belfry" explain work chain
exits job_is_not_a_timer_to_get 3 "'chain' is a job: belfry job get chain" "$belfry" get work chain
exits job_is_not_a_timer_to_cancel 3 "'chain' is a job: belfry job cancel chain" \
    "$belfry" cancel work chain
exits job_is_not_a_topic 3 "'chain' is a job: belfry job pause chain" "$belfry" pause chain
exits nothing_listens 7 '' env BELFRY_SERVER=127.0.0.1:1 "$belfry" job list

# --- pause, resume, cancel ---
is pause_is_silent '' "$belfry" job pause given
is paused_jobs_are_listed 'given	paused	0 %	1' "$belfry" job list --state paused
exits paused_twice 4 'nothing to do' "$belfry" job pause given
is resume_in_json '{"resumed": 1}' "$belfry" job resume given --json
is cancel_is_silent '' "$belfry" job cancel given
exits cancelled_twice 4 'nothing to do' "$belfry" job cancel given
exits watch_tells_that_a_job_was_cancelled 1 '' "$belfry" job watch given
is list_has_a_limit 1 bash -c "'$belfry' job list --count 1 | wc -l"
is empty_list_in_json '[]' "$belfry" job list --state failed --json
like list_in_json '[[]{"id": "*"total": *}[]]' "$belfry" job list --json

# --- results, and what a handler sees ---
cat >handler.sh <<'END'
#!/bin/sh
cat >/dev/null
if [ "$BELFRY_TASK" = a ]; then
    [ "$(cat "$BELFRY_RESULTS")" = '{}' ] || exit 1
    printf '"quoted"\001\377'
else
    printf '%s/%s got %s\n' "$BELFRY_JOB" "$BELFRY_TASK" "$(cat "$BELFRY_RESULTS")"
fi
END
chmod +x handler.sh
BELFRY_RESULTS=/stale BELFRY_JOB=stale "$belfry" work work --result -- ./handler.sh 2>work.log &
worker=$!
started+=("$worker")
"$belfry" job watch chain --interval 20ms >events || fail "watch exits with $?: $(cat work.log)"
like watch_prints_a_line_for_each_event '*chain/b	done	100 %
chain	done	100 %' cat events
is result_of_a_task '"result": "chain/b got {\"a\":{\"base64\":\"InF1b3RlZCIB/w==\"}}"' \
    bash -c "'$belfry' get work chain/b --json | grep -o '\"result\": .*}\"'"
like watch_in_json '*{"job": "chain", "task": "b", "state": "done", "progress": 100}*' \
    "$belfry" job watch chain --json
kill "$worker" && wait "$worker"

# On a terminal the picture stays within 80 columns, and is drawn over the last one.
if has_terminal job; then
    printf 'z: %s\n' "$(printf 'a-long-name-%d ' 1 2 3 4 5 6 7 8 9)" |
        "$belfry" job submit - --topic wide --id wide >/dev/null
    terminal "$belfry" job get wide >picture
    is picture_fits_80_columns 0 bash -c \
        "sed 's/\x1b\[[0-9;]*m//g; s/\r//' picture | awk 'length > 80' | wc -l"
    "$belfry" job cancel wide >/dev/null
    terminal "$belfry" job get wide >picture
    is picture_with_reasons_fits_80_columns 0 bash -c \
        "sed 's/\x1b\[[0-9;]*m//g; s/\r//' picture | awk 'length > 80' | wc -l"
    printf 'the-same-long-beginning-of-names-1:\nthe-same-long-beginning-of-names-2:\n' |
        "$belfry" job submit - --topic wide --id ends >/dev/null
    like long_names_keep_their_ends '*the-same-lo..-of-names-1 *the-same-lo..-of-names-2 *' \
        terminal "$belfry" job get ends
    like a_long_reason_and_many_tasks_share_the_line '* z * < a-long-name-1*... : the job *' \
        bash -c 'tr "\n" " " <picture'
    for i in {2..40}; do echo "t$i: t$((i - 1))"; done |
        "$belfry" job submit - --topic wide --id a-job-with-a-long-name-and-many-tasks >/dev/null
    "$belfry" job cancel a-job-with-a-long-name-and-many-tasks >/dev/null
    terminal "$belfry" job watch a-job-with-a-long-name-and-many-tasks >picture
    is state_and_bar_of_a_job_fit_80_columns 0 bash -c \
        "sed 's/\x1b\[[0-9;]*m//g; s/\r//' picture | awk 'length > 80' | wc -l"
    is a_large_job_fills_the_terminal 1 awk 'END {print (NR > 20 && NR < 24)}' picture
    like a_large_job_shows_its_first_tasks '*  40 of 40*t1 *t2 *t19 *cancelled 40' cat picture
    like watch_draws_a_bar '*done*####################*100 %*' terminal "$belfry" job watch chain
fi

# --- explain ---
cat >flow.json <<'END'
{"id": "flow", "tasks": [{"id": "fetch", "topic": "flow"},
    {"id": "long", "topic": "flow", "after": ["fetch"]},
    {"id": "side", "topic": "flow", "after": ["fetch"], "resource": "api"},
    {"id": "load", "topic": "flow", "after": ["long"]},
    {"id": "report", "topic": "flow", "after": [{"task": "load", "on": "always"}]}]}
END
"$belfry" job submit flow.json >/dev/null
"$belfry" ack "$("$belfry" claim flow --json | grep -o '"token": "[^"]*"' | cut -d'"' -f4)" >/dev/null
"$belfry" claim flow --worker w1 >/dev/null
"$belfry" limit api --until 1h >/dev/null
like explain_has_the_reasons_and_the_critical_path 'The job flow is running; 1 of 5 tasks have ended.
The job waits for:
  long: The task is leased: w1 has it for another 30s of 30s.
  side: The task is ready, but the resource api is limited until *
Critical path, 3 tasks: long -> load -> report' "$belfry" job explain flow
json explain_in_json 'j["state"] == "running" and j["critical_path"] == ["long", "load", "report"]
    and [w["reason"] for w in j["waits_for"]] == ["leased", "limited"] and j["more"] == 0' \
    "$belfry" job explain flow --json
"$belfry" job cancel flow
is explain_of_a_job_that_has_ended 'The job flow is cancelled (4 cancelled).' \
    "$belfry" job explain flow
exits explain_of_an_unknown_job 3 "did you mean 'flow'?" "$belfry" job explain flwo
"$belfry" limit api --delete >/dev/null
for i in {2..30}; do echo "t$i: t$((i - 1))"; done |
    "$belfry" job submit - --topic long --id long >/dev/null
like a_long_path_leaves_out_its_middle '*Critical path, 30 tasks: t1 -> * -> t10 -> ... -> t26 -> *t30' \
    "$belfry" job explain long

# A result that is too large fails the attempt.
echo '{"id": "large", "retry": "max(1)", "tasks": [{"id": "a", "topic": "large"}]}' |
    "$belfry" job submit - >/dev/null
"$belfry" work large --result -- head -c 65537 /dev/zero 2>>work.log &
worker=$!
started+=("$worker")
"$belfry" job watch large --interval 20ms >events && fail 'a failed job: watch exits with 0'
like large_result_is_refused '*large/a	dead	100 %	the result is larger than 65536 bytes*' cat events
kill "$worker" && wait "$worker"

# The rest of a job is estimated only while somebody works on it.
printf 'b: a\n' | "$belfry" job submit - --topic paced --id paced >/dev/null
"$belfry" ack "$("$belfry" claim paced --json | grep -o '"token": "[^"]*"' | cut -d'"' -f4)" >/dev/null
"$belfry" clock --advance 10s >/dev/null
is no_estimate_while_nobody_works 'paced  running  [##########----------]  50 %  1 of 2' \
    bash -c "'$belfry' job get paced | head -n 1"
"$belfry" claim paced >/dev/null
is estimate_while_somebody_works 'paced  running  [##########----------]  50 %  1 of 2  about 10s left' \
    bash -c "'$belfry' job get paced | head -n 1"

# The server would take the word for the option, and end the limits of all resources.
exits a_resource_named_like_an_option 2 'named like an option' "$belfry" limit clear

# A failure that an `always` task has dealt with is still counted.
echo '{"id": "mixed", "retry": "max(1)", "tasks": [{"id": "a", "topic": "mixed"},
    {"id": "b", "topic": "mixed", "after": ["a"]},
    {"id": "c", "topic": "mixed", "after": [{"task": "a", "on": "always"}]}]}' |
    "$belfry" job submit - >/dev/null
"$belfry" work mixed -- sh -c '[ "$BELFRY_TASK" != a ]' 2>>work.log &
worker=$!
started+=("$worker")
"$belfry" job watch mixed --interval 20ms >events || fail "a job that is done: watch exits with $?"
like watch_counts_what_is_not_done '*mixed	done (1 dead, 1 skipped)	100 %' cat events
like get_counts_what_is_not_done 'mixed  done (1 dead, 1 skipped)  [[]*' "$belfry" job get mixed
like a_reason_does_not_hide_what_a_task_comes_after '*
  b                      skipped    < a : ?*' "$belfry" job get mixed
kill "$worker" && wait "$worker"

# --- a task that was skipped before it was due ---
is a_skipped_task_has_no_due_time 'mixed/b	skipped		0	' "$belfry" list mixed --state skipped
json a_skipped_task_has_no_due_time_as_json '"due_ms" not in j' "$belfry" get mixed mixed/b --json
if has_terminal a_skipped_task_on_a_terminal; then
    like a_skipped_task_on_a_terminal '*skipped*    -    *mixed/b*' \
        terminal "$belfry" list mixed --state skipped
fi

# --- a job that has failed ---
echo '{"id": "lost", "retry": "max(1)", "tasks": [{"id": "a", "topic": "lost"}]}' |
    "$belfry" job submit - >/dev/null
"$belfry" fail "$("$belfry" claim lost | cut -f1)" >/dev/null
like a_failed_job_shows_what_has_ended 'lost  failed (1 dead)  [[]####################]  100 %  1 of 1*
*1 failure, 0 crashes' "$belfry" job get lost
echo '{"id": "again", "retry": "1h", "tasks": [{"id": "a", "topic": "again"}]}' |
    "$belfry" job submit - >/dev/null
"$belfry" fail "$("$belfry" claim again | cut -f1)" --reason 'no route' >/dev/null
like a_task_that_waits_for_its_retry '*a  *scheduled  1 failed, next 20*Z*' "$belfry" job get again
echo '{"id": "weekly", "cron": "0 9 * * 1", "tz": "Europe/Berlin",
    "tasks": [{"id": "a", "topic": "again"}]}' | "$belfry" job submit - >/dev/null
like a_recurring_job_has_its_rule 'weekly  scheduled*0 9 \* \* 1 Europe/Berlin*next 20*Z' \
    "$belfry" job get weekly
like a_recurring_job_has_its_times 'weekly  scheduled  0 made, 0 skipped, 0 missed  0 9 *' \
    "$belfry" job get weekly
like a_recurring_job_in_the_list 'weekly	scheduled	-	0 made, 0 skipped, 0 missed, next 20*Z' \
    "$belfry" job list --state scheduled
exits revive_passes_a_task_over 3 'is a task of a job' "$belfry" revive lost lost/a
exits a_word_of_other_programs 2 "did you mean 'get'?" "$belfry" job status lost
exit 0
