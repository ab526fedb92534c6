#!/usr/bin/env bash
# belfry export and import, round trip. Usage: import.sh PROGRAM
. "$(dirname "$0")/lib.sh"
serve first --store memory --clock virtual
"$belfry" clock --set 2030-01-01T08:00:00Z >/dev/null

sorted() { # lines of JSON without what differs from one server to the next
    python3 -c '
import json, sys
for t in sorted((json.loads(line) for line in sys.stdin), key=lambda t: t["id"]):
    for name in ("created_ms", "topic", "state", "lease_left_ms"):
        t.pop(name, None)
    print(json.dumps(t, sort_keys=True))'
}
sum() { # one of the sums of an import
    "$belfry" import "${@:2}" 2>/dev/null | sed -n "s/^$1	//p"
}
count() { # the timers of a topic
    "$belfry" list "$1" | wc -l
}

# --- round trip ---
"$belfry" schedule mail 'two words' --id a --in 5m --priority 7 --group ann --correlation 42 \
    --retry 5s,30s --lease 1m --expires 1h --header color=red --header 'a=b=c' >/dev/null
printf '\377\000\n' >bytes
"$belfry" schedule mail --file bytes --id b --at 2030-02-01T00:00:00Z >/dev/null
"$belfry" schedule mail '{"json": "in text"}' --id c >/dev/null
"$belfry" schedule mail plan --id d --cron '30 10 * * 1-5' --tz Europe/Berlin --gap skip \
    --spread 5m --misfire all >/dev/null
"$belfry" schedule mail plan --id e --every 1h --in 30m --count 9 --mode delay --overlap queue \
    --until 2031-01-01T00:00:00Z >/dev/null
"$belfry" schedule mail $'quote " backslash \\ \u00e9 tab\t' --id f --in 1h --resource api >/dev/null
"$belfry" export mail >there || fail "export: $?"
is a_line_for_each 6 bash -c 'wc -l <there'
json a_line_is_an_object 'j["id"] == "c" and j["state"] == "ready"' head -n 1 there
serve second --store memory --clock virtual
"$belfry" clock --set 2030-01-01T08:00:00Z >/dev/null
is import_counts 'imported	6
replaced	0
unchanged	0
kept	0
left_out	0
bad	0' "$belfry" import there
is all_came_over "$(sorted <there)" bash -c "$(declare -f sorted); '$belfry' export mail | sorted"
is again_from_standard_input \
    '{"imported": 0, "replaced": 0, "unchanged": 6, "kept": 0, "left_out": 0, "bad": 0}' \
    bash -c "'$belfry' import --json <there"
is nothing_came_twice 6 count mail
is to_another_topic 'imported	6' bash -c "'$belfry' import --topic copy - <there | head -n 1"
is the_copy_is_the_same "$(sorted <there)" bash -c "$(declare -f sorted); '$belfry' export copy | sorted"

# --- finished timers, occurrences of plans, leased timers ---
"$belfry" schedule ends x --id dead >/dev/null
token=$("$belfry" claim ends | cut -f 1)
"$belfry" fail "$token" --dead >/dev/null
"$belfry" schedule ends x --id leased >/dev/null
"$belfry" claim ends >/dev/null
is what_has_ended_is_left_out leased bash -c "'$belfry' export ends |
    python3 -c 'import json, sys; print(json.loads(sys.stdin.read())[\"id\"])'"
"$belfry" export ends --state dead >dead
is unless_its_state_is_asked_for 1 bash -c 'wc -l <dead'
is and_import_leaves_it_out 'left_out	1
bad	0' bash -c "'$belfry' import dead | tail -n 2"
"$belfry" schedule plans x --id p --every 1h --in 0s --count 3 --overlap allow >/dev/null
"$belfry" clock --advance 61m >/dev/null
"$belfry" export plans >plans
is a_plan_and_what_it_has_made 3 bash -c 'wc -l <plans'
is an_occurrence_becomes_a_timer 'imported	3' \
    bash -c "'$belfry' import plans --topic plans2 | head -n 1"
json of_a_count_the_rest 'j["count"] == 1 and j["made"] == 0' "$belfry" get plans2 p --json
cat >old <<'END'
{"topic": "old", "id": "h", "payload": "x", "headers": {"belfry-own": "x"}, "resource": "db"}
{"topic": "old", "id": "made", "payload": "x", "every": "1h", "count": 9, "made": 2, "skipped": 3}
{"topic": "old", "id": "used", "payload": "x", "every": "1h", "count": 9, "made": 2, "used": 5}
END
is what_earlier_versions_exported 'imported	3' bash -c "'$belfry' import old | head -n 1"
json reserved_headers_are_kept 'j["headers"] == {"belfry-own": "x"}' "$belfry" get old h --json
json of_an_old_count_what_was_not_made 'j["count"] == 7' "$belfry" get old made --json
json of_a_count_what_was_not_used 'j["count"] == 4' "$belfry" get old used --json
is its_id_has_a_colon 2 bash -c "'$belfry' list plans2 | grep -c '^p:'"

# --- tasks of jobs ---
"$belfry" schedule etl x --id plain/slash >/dev/null
"$belfry" job submit - >/dev/null <<'END'
{"id": "n", "tasks": [{"id": "a", "topic": "etl"}, {"id": "b", "topic": "etl", "after": ["a"]}]}
END
is tasks_are_left_out plain/slash bash -c "'$belfry' export etl 2>told |
    python3 -c 'import json, sys; print(json.loads(sys.stdin.read())[\"id\"])'"
like and_it_is_said_how_many '*left out 2 tasks of jobs*belfry backup*' cat told
is an_id_may_have_a_slash 'imported	1' \
    bash -c "'$belfry' export etl 2>/dev/null | '$belfry' import --topic etl2 | head -n 1"
echo '{"topic": "etl3", "id": "n/b", "payload": "x", "headers": {"belfry-job": "n", "belfry-task": "b"}}' >task
exits a_line_of_a_task_is_bad 1 'line 1: a task of a job' "$belfry" import task
exits nothing_of_it_came 3 NOTFOUND "$belfry" export etl3

left() { # how often a plan of the topic rules will ring still
    "$belfry" agenda --topic rules --step 365d --to 2039-01-01T00:00:00Z --json |
        python3 -c 'import json, sys; print(sum(s["count"] for s in json.load(sys.stdin)["steps"]))'
}
if "$belfry" next 'FREQ=DAILY;COUNT=2' >/dev/null 2>&1; then
"$belfry" schedule rules x --id r --rrule 'FREQ=DAILY;count=5;BYHOUR=7' --overlap skip >/dev/null
"$belfry" clock --advance 49h >/dev/null # one is made, and one is skipped, since the first still waits
json a_rule_has_a_count_inside 'j["made"] == 1 and j["skipped"] == 1' "$belfry" get rules r --json
is of_which_some_are_left 3 left
"$belfry" export rules >rules
"$belfry" cancel rules r >/dev/null
"$belfry" import rules --conflict replace >/dev/null || fail "import of rules: $?"
json of_that_count_the_rest_too 'j["rrule"] == "FREQ=DAILY;count=3;BYHOUR=7" and j["made"] == 0' \
    "$belfry" get rules r --json
is and_no_more_are_made 3 left
fi

# --- handwritten lines ---
cat >people <<'END'
{"topic": "hand", "payload": {"to": ["ann", 1, null]}, "id": "h1", "in": "5m"}

{"topic": "hand", "payload": 5, "at": "2031-01-01T00:00:00Z", "headers": {"x": "y"}}
{"topic": "hand", "payload": "weekly", "cron": "0 9 * * 1", "tz": "Europe/Berlin", "id": "h3"}
{"topic": "hand", "payload_base64": "/wAK", "in": "1s", "priority": 9, "id": "h4"}
{"topic": "hand", "in": "1h"}
{"topic": "hand", "in": "1h"}
END
is what_people_write 'imported	6' bash -c "'$belfry' import people | head -n 1"
is a_payload_that_is_no_text_is_json '{"to":["ann",1,null]}' field hand h1 payload
json it_says_that_it_is_json 'j["headers"] == {"content-type": "application/json"}' \
    "$belfry" get hand h1 --json
cat >types <<'END'
{"topic": "types", "payload": {"a": 1}, "id": "own", "headers": {"content-type": "text/x", "x": "y"}}
{"topic": "types", "payload": [], "id": "beside", "headers": {"x": "y"}}
{"topic": "types", "payload": "{}", "id": "text"}
{"topic": "types", "id": "none"}
END
"$belfry" import types >/dev/null || fail "import of types: $?"
json unless_it_says_what_it_is 'j["headers"] == {"content-type": "text/x", "x": "y"}' \
    "$belfry" get types own --json
json beside_other_headers 'j["headers"] == {"content-type": "application/json", "x": "y"}' \
    "$belfry" get types beside --json
json a_text_is_a_text 'not j.get("headers")' "$belfry" get types text --json
json nothing_is_nothing 'not j.get("headers")' "$belfry" get types none --json
json bytes_in_base64 'j["payload_base64"] == "/wAK" and j["priority"] == 9' \
    "$belfry" get hand h4 --json
echo '{"topic": "prices", "id": "p", "payload": {"price": 19.99}}' | "$belfry" import >/dev/null
is numbers_stay_as_they_were_written '{"price":19.99}' field prices p payload
"$belfry" schedule again x --id a --header k=1 --header l=2 --header k=3 >/dev/null
json headers_that_come_again 'j["headers"] == {"k": ["1", "3"], "l": "2"}' \
    "$belfry" get again a --json
is they_are_taken_over 'imported	1' \
    bash -c "'$belfry' export again | '$belfry' import --topic again2 | head -n 1"
json as_they_were 'j["headers"] == {"k": ["1", "3"], "l": "2"}' "$belfry" get again2 a --json
is lines_that_are_alike_are_two 6 count hand
"$belfry" import people >/dev/null
is but_not_four 6 count hand
is an_id_that_is_taken_is_kept h1 bash -c "echo '{\"topic\": \"hand\", \"id\": \"h1\", \"payload\":
    \"new\", \"in\": \"5m\"}' | tr -d '\n' | '$belfry' import >/dev/null && '$belfry' get hand h1 |
    sed -n 's/^id	//p'"
is its_payload_too '{"to":["ann",1,null]}' field hand h1 payload
echo '{"topic": "hand", "id": "h1", "payload": "new", "in": "5m"}' >new
is what_is_kept_is_counted 1 sum kept new
exits what_is_kept_is_told 0 "line 1: kept 'h1', which differs" "$belfry" import new
exits what_is_replaced_is_told 0 "line 1: replaced 'h1'" "$belfry" import new --conflict update
is unless_it_is_to_be_replaced new field hand h1 payload
is then_nothing_differs 1 sum unchanged new --conflict update
is replace_replaces_in_any_case 1 sum replaced new --conflict replace
exits every_line_is_told_if_asked 0 "line 1: unchanged 'h1'" "$belfry" import new -v
sed 's/"5m"/"1m"/' new >sooner
is the_earlier_one_wins 1 sum replaced sooner --conflict earliest
is the_later_one_loses 1 sum unchanged new --conflict earliest
exits a_conflict_is_a_bad_line 1 'line 1: CONFLICT' "$belfry" import new --conflict reject
cat new sooner <(echo '{"topic": "hand", "id": "h1", "payload": "third", "in": "5m"}') >twice
is an_id_twice_in_a_file 'replaced	1 unchanged	2' bash -c "'$belfry' import twice --conflict update |
    grep -v '	0' | xargs | sed 's/ \([0-9]\)/	\1/g'"

# --- each field counts ---
cat >fields <<'END'
{"topic": "f", "id": "t", "payload": "x", "at": "2031-01-01T00:00:00Z", "priority": 3, "group": "g", "retry": "5s,30s", "lease": "60s", "expires": "1h", "headers": {"a": "b"}, "correlation": "c", "resource": "r"}
{"topic": "f", "id": "p", "payload": "x", "cron": "0 9 * * *", "tz": "Europe/Berlin", "count": 9, "until": "2040-01-01T00:00:00Z", "spread": "5m", "misfire": "all", "overlap": "allow", "gap": "skip", "fold": "both"}
{"topic": "f", "id": "e", "payload": "x", "every": "60s", "mode": "delay"}
END
sed -e 's/"60s"/"1m"/' -e 's/"5s,30s"/"5000ms, 30s"/' -e 's/"1h"/"PT1H"/' \
    -e 's/2031-01-01T00:00:00Z/2031-01-01T07:00[Asia\/Bangkok]/' fields >meaning
is three_timers 3 sum imported fields
is the_same_meaning_is_unchanged 3 sum unchanged meaning
for change in 's/"x", "at"/"y", "at"/' s/2031-01-01/2031-01-02/ 's/"priority": 3, //' 's/"g"/"h"/' \
    s/5s,30s/5s,31s/ s/60s/61s/ 's/"1h"/"2h"/' 's/"b"/"c"/' 's/, "headers": {"a": "b"}//' \
    's/"c"/"d"/' 's/"r"}/"s"}/' 's/0 9/0 8/' s/Berlin/Paris/ 's/, "tz": "Europe.Berlin"//' \
    's/: 9/: 8/' s/2040/2041/ 's/"5m"/"6m"/' 's/"all"/"last"/' 's/"allow"/"queue"/' \
    's/, "gap": "skip"//' 's/"both"/"second"/' 's/"delay"/"rate"/'; do
    sed "$change" fields >changed
    cmp -s fields changed && fail "the change $change changes nothing"
    "$belfry" import changed >sums 2>/dev/null
    grep -q '^kept	[12]$' sums || fail "the change $change is not noticed: $(cat sums)"
done
echo 'ok   a_change_of_any_field_is_noticed'

# --- a duration needs its unit, unless a server has exported it ---
cat >bare <<'END'
{"topic": "bare", "id": "a", "in": 5}
{"topic": "bare", "id": "b", "in": "5"}
{"topic": "bare", "id": "c", "retry": "5,30"}
{"topic": "bare", "id": "d", "every": 60000}
{"topic": "bare", "id": "e", "every": "60000", "created_ms": 1893484800000}
{"topic": "bare", "id": "f", "lease_ms": 5000}
END
"$belfry" import bare >sums 2>told
is bare_numbers_are_bad 'imported	2 bad	4' bash -c "grep -v '	0' sums | xargs | sed 's/ \([0-9]\)/	\1/g'"
like bare_numbers_are_told "*line 1: in '5': expected a unit*line 2: in '5'*line 3: retry '5,30'*line 4: every*" \
    cat told

# --- bad lines ---
cat >bad <<'END'
{"topic": "bad", "id": "good1", "in": "1h"}
not json
{"topic": "bad", "id": "x", "priorty": 5}
{"id": "no-topic"}
[1, 2]
{"topic": "bad", "id": "x", "in": "5x"}
{"topic": "bad", "id": "x", "payload_base64": "!"}
{"topic": "a b", "id": "x"}
{"topic": "bad", "id": "x", "in": 1.5}
{"topic": "bad", "id": "x", "headers": ["a"]}
{"topic": "bad", "id": "good2", "in": "1h"}
{"topic": "bad", "id": "x", "at": "18:00"}
END
is bad_lines_are_counted \
    '{"imported": 2, "replaced": 0, "unchanged": 0, "kept": 0, "left_out": 0, "bad": 10}' \
    bash -c "'$belfry' import bad --json 2>told; [ \$? = 1 ] || echo 'exits with 0'"
for line in '2: not JSON' "3: unknown field 'priorty'" '4: no topic' '5: expected an object' \
    "6: in '5x'" '7: payload_base64: expected base64' '8: BADARG' '9: in: expected a string' \
    '10: headers: expected' "12: BADARG at '18:00': "; do
    grep -qF "belfry: line $line" told || fail "does not report line $line: $(cat told)"
done
echo 'ok   bad_lines_are_named_by_their_numbers'
is the_others_are_there 'good1 good2' bash -c "'$belfry' list bad | cut -f 1 | sort | xargs"
head -c 300 /dev/urandom >noise
exits any_bytes_do_no_harm 1 'line 1' "$belfry" import noise
printf '{"topic": "bad", "id": "nul", "payload": "a\\u0000b", "in": "1h"}' >nul
is a_line_without_its_end 'imported	1' bash -c "'$belfry' import nul | head -n 1"
json a_nul_is_a_byte_like_others 'j["payload"] == "a\0b"' "$belfry" get bad nul --json

# --- limits, and continuing ---
"$belfry" configure small depth=3
for i in {1..10}; do echo "{\"topic\": \"small\", \"id\": \"s$i\", \"in\": \"1h\"}"; done >ten
exits a_limit_ends_it 5 'continue with --start 4' "$belfry" import ten
"$belfry" configure small depth=0
is from_there_it_goes_on 'imported	7' bash -c "'$belfry' import ten --start 4 | head -n 1"
is then_all_are_there 10 count small

# --- many lines ---
python3 -c '
for i in range(20000):
    print("{\"topic\": \"many\", \"id\": \"m%d\", \"payload\": \"%s\", \"in\": \"1h\"}" % (i, "x" * (i % 300)))' >many
is many_lines 'imported	20000' bash -c "'$belfry' import many | head -n 1"
is many_timers '20000' bash -c "'$belfry' export many | wc -l"
is no_bar_elsewhere 0 bash -c "'$belfry' import many 2>&1 >/dev/null | wc -c"
if has_terminal bars_on_a_terminal; then
terminal "$belfry" import many --topic other >screen
like a_bar_on_a_terminal '*import *[[]*[].#]*%*/s*imported*20000*' cat screen
terminal bash -c "'$belfry' export many >/dev/null" >screen
like a_bar_for_export '*export *[[]*[].#]*%*' cat screen
fi

# --- a crontab ---
cat >crontab <<'END'
# comments and variables
MAILTO=root
CRON_TZ="Asia/Bangkok"
30 9 * * 1-5  /usr/bin/report --all  # of the week
@daily /usr/bin/clean up
@reboot /usr/bin/start
* * * *
99 * * * * /usr/bin/never
CRON_TZ=UTC
*/5	*	*	*	*	echo tick
0	9	*	*	1-5	echo tabs alone
END
"$belfry" import --crontab crontab --topic cron >sums 2>told
is a_crontab_with_bad_lines 1 echo $?
is a_crontab_is_plans 'imported	4
replaced	0
unchanged	0
kept	0
left_out	2
bad	2' cat sums
like what_is_left_out_is_told '*line 2: left out: variables*MAILTO*line 6: left out: @reboot*' cat told
like what_is_bad_is_told '*line 7: expected five fields and a command*line 8: BADARG*' cat told
is rules_zones_and_commands '30 9 * * 1-5|Asia/Bangkok|/usr/bin/report --all  # of the week
@daily|Asia/Bangkok|/usr/bin/clean up
*/5 * * * *|UTC|echo tick
0 9 * * 1-5|UTC|echo tabs alone' bash -c "'$belfry' export cron | python3 -c '
import json, sys
plans = [json.loads(line) for line in sys.stdin]
order = [\"report\", \"clean\", \"tick\", \"tabs\"]
for p in sorted(plans, key=lambda p: [i for i, o in enumerate(order) if o in p[\"payload\"]]):
    print(\" \".join(p[\"cron\"].split()), p.get(\"tz\", \"UTC\"), p[\"payload\"], sep=\"|\")'"
"$belfry" import --crontab crontab --topic cron >/dev/null 2>&1
is a_crontab_again_changes_nothing 4 count cron
is it_says_so 4 sum unchanged --crontab crontab --topic cron
printf '0 9 * * * echo zone\n' >zones
"$belfry" import --crontab zones --topic zones --tz Europe/Berlin >/dev/null 2>&1
exits with_another_zone_a_plan_is_replaced 0 "line 1: replaced 'crontab-" \
    "$belfry" import --crontab zones --topic zones --tz Asia/Tokyo
is and_has_the_zone Asia/Tokyo bash -c "'$belfry' export zones |
    python3 -c 'import json, sys; print(json.loads(sys.stdin.read())[\"tz\"])'"
is unless_it_is_to_be_kept 1 sum kept --crontab zones --topic zones --tz UTC --conflict keep
exits a_mistyped_zone_of_a_crontab 2 "did you mean 'Europe/Berlin'" \
    "$belfry" import --crontab zones --topic zones --tz Berlin
printf 'TZ=Asia/Tokyo\nCRON_TZ=UTC 0 1 * * * echo one\n0 2 * * * echo two\n' >prefix
"$belfry" import --crontab prefix --topic prefix >/dev/null 2>&1 || fail "import of prefix: $?"
is a_zone_before_a_rule_is_for_the_rule_alone 'echo one:UTC echo two:Asia/Tokyo' \
    bash -c "'$belfry' export prefix | python3 -c '
import json, sys
print(*sorted(t[\"payload\"] + \":\" + t.get(\"tz\", \"UTC\") for t in map(json.loads, sys.stdin)))'"
echo '0 0 * * * true' >plain
exits a_crontab_needs_a_zone 1 'no time zone' "$belfry" import --crontab plain --topic cron
is a_zone_on_the_command_line 'imported	1' \
    bash -c "'$belfry' import --crontab plain --topic cron --tz Europe/Berlin | head -n 1"
echo '17 *	* * *	root    cd / && run-parts /etc/cron.hourly' >system
exits a_system_crontab_is_noticed 1 'give --system' \
    "$belfry" import --crontab system --topic system --tz UTC
echo '17 * * * * nobody run-it' >system2
if getent passwd nobody >/dev/null; then
like a_user_column_is_noticed "*warning: 'nobody' is a user here*" bash -c \
    "'$belfry' import --crontab system2 --topic system2 --tz UTC 2>&1 >/dev/null"
is a_program_is_no_user 0 bash -c "mkdir users && touch users/nobody && chmod +x users/nobody
    PATH=\$PWD/users:\$PATH '$belfry' import --crontab system2 --topic system2 --tz UTC 2>&1 >/dev/null |
        grep -c warning || true"
like a_directory_is_no_program "*warning: 'nobody' is a user here*" bash -c "mkdir -p folders/nobody
    PATH=\$PWD/folders:\$PATH '$belfry' import --crontab system2 --topic system2 --tz UTC 2>&1 >/dev/null"
fi
exits a_crontab_without_its_option 1 'a crontab needs --crontab FILE' "$belfry" import system2 --topic x
is a_system_crontab 'imported	1' \
    bash -c "'$belfry' import --crontab system --system --topic system --tz UTC | head -n 1"
is also_with_the_file_last 'unchanged	1' \
    bash -c "'$belfry' import --crontab --system system --topic system --tz UTC | sed -n 3p"
exits a_system_crontab_needs_a_file 2 'needs a value: --crontab' \
    "$belfry" import --crontab --system --topic system --tz UTC
like without_its_user '*"payload": "cd / && run-parts /etc/cron.hourly"*' "$belfry" export system
cat >percents <<'END'
0 1 * * * date +\%F >"/tmp/100\% \d\\"
0 2 * * * mail -s hello ann%Dear Ann,%goodbye
0 3 * * * echo \\% is bare
0 4 * * * echo \\\% is not
END
"$belfry" import --crontab percents --topic percents --tz UTC >sums 2>told
is a_bare_percent_is_refused '1 2' bash -c "echo $? \$(sed -n 's/^bad	//p' sums)"
like and_it_is_said_why '*line 2: a bare % starts*line 3: a bare %*' cat told
is an_escaped_percent_is_a_percent 'date +%F >"/tmp/100% \d\\"
echo \\% is not' bash -c "'$belfry' export percents | python3 -c '
import json, sys
print(\"\n\".join(sorted(json.loads(line)[\"payload\"] for line in sys.stdin)))'"
# The plan of a line that was edited or deleted goes on until it is cancelled.
printf '0 1 * * * echo one\n0 2 * * * echo two\n' >edited
"$belfry" schedule edited own --id own --cron '0 3 * * *' >/dev/null
"$belfry" schedule edited own --id crontab-timer --in 1d >/dev/null
exits a_first_crontab_is_alone 0 '' "$belfry" import --crontab edited --topic edited --tz UTC
is it_has_nothing_to_tell 0 bash -c "'$belfry' import --crontab edited --topic edited --tz UTC 2>&1 |
    grep -c 'earlier import' || true"
printf '0 1 * * * echo one\n0 4 * * * echo two\n' >edited
exits an_edited_line_leaves_a_plan 0 'of an earlier import is not in the file, and goes on: 0 2 * * * echo two' \
    "$belfry" import --crontab edited --topic edited --tz UTC
exits and_a_way_to_cancel_it 0 'belfry cancel edited crontab-' \
    "$belfry" import --crontab edited --topic edited --tz UTC
is a_part_of_a_file_knows_all_of_it 1 bash -c \
    "'$belfry' import --crontab edited --topic edited --tz UTC --start 2 2>&1 | grep -c 'earlier import'"
echo '0 5 * * *' >>edited
exits a_bad_line_cancels_nothing 1 '--prune has cancelled nothing, because line 3 is bad' \
    "$belfry" import --crontab edited --topic edited --tz UTC --prune
sed -i '$d' edited
sed '1s/.*/0 1 * * */' edited >broken
exits a_bad_line_before_the_start_cancels_nothing 1 '--prune has cancelled nothing, because line 1 is bad' \
    "$belfry" import --crontab broken --topic edited --tz UTC --prune --start 2
is all_plans_go_on 5 count edited
for id in crontab-nightly crontab-0123456789abcde crontab-0123456789abcdef0 crontab-0123456789abcdeg \
    crontab-0123456789ABCDEF; do
    "$belfry" schedule edited own --id "$id" --cron '0 3 * * *' >/dev/null
done
is a_pruned_crontab 'unchanged	2
cancelled	1' bash -c "'$belfry' import --crontab edited --topic edited --tz UTC --prune 2>/dev/null |
    grep -E 'unchanged|cancelled'"
json a_pruned_crontab_as_json 'j["cancelled"] == 0 and j["unchanged"] == 2' \
    "$belfry" import --crontab edited --topic edited --tz UTC --prune --json
is others_are_left 9 count edited
echo '# no plan' >comments
exits a_crontab_without_plans_of_a_new_topic 0 '' \
    "$belfry" import --crontab comments --topic without --tz UTC
exits and_pruned 0 '' "$belfry" import --crontab comments --topic without --tz UTC --prune

# Names are optional: the look for them ends after ten pages of timers. --prune reads all.
echo '0 1 1 6 * echo late' >late
"$belfry" import --crontab late --topic full --tz UTC >/dev/null 2>&1
python3 -c 'for i in range(10001): print("{\"payload\": \"x\", \"in\": \"5m\"}")' |
    "$belfry" import --topic full >/dev/null || fail "import of full: $?"
is names_are_looked_for_in_some_pages 0 bash -c \
    "'$belfry' import --crontab comments --topic full --tz UTC 2>&1 | grep -c 'earlier import' || true"
is pruning_reads_all_pages 'cancelled	1' bash -c \
    "'$belfry' import --crontab comments --topic full --tz UTC --prune 2>/dev/null | grep cancelled"

# A key without the permission to read imports, and has no names.
first=$BELFRY_SERVER
printf 'a-key-that-a-machine-has-made' >key
"$belfry" serve --hash-key writer write <key >keys || fail 'serve --hash-key'
serve guarded --store memory --keys keys
printf '0 1 * * * echo one\n' >one
exits a_key_that_only_writes 0 "line 1: imported 'crontab-" \
    "$belfry" import --crontab one --topic cron --tz UTC --key-file key
exits it_may_not_prune 6 NOPERM \
    "$belfry" import --crontab one --topic cron --tz UTC --prune --key-file key
export BELFRY_SERVER=$first
exits pruning_needs_a_crontab 2 '--prune needs --crontab' "$belfry" import people --prune

echo '0 0 9 * * * echo six' >six
exits six_fields_are_refused 1 "'*' looks like a sixth field" "$belfry" import --crontab six --topic six --tz UTC
echo '0 0 9 * * MON-FRI root echo six' >six
exits six_fields_of_the_system 1 "'MON-FRI' looks like a sixth field" \
    "$belfry" import --crontab six --topic six --tz UTC --system
# A user may be called as a weekday is. Only a namespace of mounts can have one here.
echo '0 9 * * * sun echo morning' >weekday
exits a_weekday_is_no_user 1 "'sun' looks like a sixth field" \
    "$belfry" import --crontab weekday --topic weekday --tz UTC --system
(cat /etc/passwd && echo 'sun:x:4711:4711::/:/bin/sh') >passwd
with_sun() { # runs a command where a user sun exists
    unshare --user --map-root-user --mount bash -c \
        'mount --bind passwd /etc/passwd && getent passwd sun >/dev/null && "$@"' with_sun "$@"
}
if with_sun true 2>/dev/null; then
    exits a_user_called_as_a_weekday 0 "line 1: imported 'crontab-" \
        with_sun "$belfry" import --crontab weekday --topic weekday --tz UTC --system
    like has_his_command '*"payload": "echo morning"*' "$belfry" export weekday
    exits without_users_it_is_a_field 1 "'sun' looks like a sixth field" \
        with_sun "$belfry" import --crontab weekday --topic weekday --tz UTC
else
    echo 'skip a_user_called_as_a_weekday: no namespace of mounts here'
fi
exits a_crontab_needs_a_topic 2 'needs --topic' "$belfry" import --crontab plain --tz UTC

# --- usage errors ---
exits no_such_file 1 'cannot read nowhere' "$belfry" import nowhere
exits no_such_topic 3 NOTFOUND "$belfry" export nobody
exits no_topic 2 'missing argument topic' "$belfry" export
exits a_state_that_is_none 2 BADARG "$belfry" export mail --state tired
exits a_conflict_that_is_none 2 'expected keep' "$belfry" import people --conflict maybe
exits a_start_that_is_none 2 'a number from 1' "$belfry" import people --start 0
exits two_files 2 'unexpected argument' "$belfry" import people people
exits a_zone_without_a_crontab 2 '--tz needs --crontab' "$belfry" import people --tz UTC
exits nobody_is_there 7 'cannot reach' "$belfry" import people --server 127.0.0.1:1
