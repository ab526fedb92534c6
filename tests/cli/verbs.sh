#!/usr/bin/env bash
# Every verb that connects to a server, with a virtual clock. Usage: verbs.sh PROGRAM
. "$(dirname "$0")/lib.sh"
serve first --store memory --clock virtual
is the_clock_is_set 2030-01-01T08:00:00Z "$belfry" clock --set 2030-01-01T08:00:00Z
json the_clock_as_json 'j == {"now_ms": 1893484800000}' "$belfry" clock --json

# --- ping, info ---
is ping_is_answered PONG "$belfry" ping
is ping_as_json '"PONG"' "$belfry" ping --json
exits the_default_port_is_named 7 'cannot reach 127.0.0.2:7878' "$belfry" ping --server 127.0.0.2
# A sanitized program does not even start with such a limit.
if (ulimit -v 200000 && "$belfry" version) >/dev/null 2>&1; then
    exits an_address_space_that_is_limited 1 'ulimit -v' \
        bash -c "ulimit -v 200000; '$belfry' serve --data small --resp 127.0.0.1:0 --http none"
fi
exits ping_without_a_server 7 'cannot reach' "$belfry" ping --server 127.0.0.1:1 --wait 30ms
like info_has_sections '# Server*belfry_version:*# Store*' "$belfry" info
json info_as_json 'j["store"] == "memory"' "$belfry" info store --json
# A client that waits is answered by a server that starts later.
"$belfry" ping --server "$room/late.socket" --wait 30s >late 2>&1 &
late=$!
started+=("$late")
python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
while True:
    c = s.accept()[0]
    words = c.makefile("rwb")
    while line := words.readline():
        if b"HELLO" in line: words.write(b"%0\r\n")
        if b"PING" in line: words.write(b"+PONG\r\n")
        words.flush()
' "$room/late.socket" &
started+=($!)
wait "$late" || fail 'ping --wait'
is ping_waits_for_a_server PONG cat late

# --- schedule, get ---
is schedule_says_the_id a "$belfry" schedule mail hello --id a --in 5m
json schedule_makes_an_id 'len(j["id"]) == 26' "$belfry" schedule other x --json --in 1d
is options_may_come_first b "$belfry" schedule --in=1m --id=b mail 'two words'
is a_payload_that_looks_like_an_option c "$belfry" schedule --id c --in 1d -- mail --x
printf '\377\000\n' >bytes
is a_payload_from_a_file d "$belfry" schedule mail --file bytes --id d --in 2d
is a_payload_from_standard_input e bash -c "'$belfry' schedule mail - --id e --in 3d <bytes"
is an_empty_payload f "$belfry" schedule mail '' --id f --in 4d
is headers_and_more g "$belfry" schedule mail x --id g --in 5d --header color=red --header 'a=b=c' \
    --priority 7 --group ann --correlation 42 --retry 5s,30s --lease 1m --expires 1h
is a_cron_plan h "$belfry" schedule mail x --id h --cron '30 10 * * 1-5' --tz Europe/Berlin
is an_interval i "$belfry" schedule mail x --id i --every 1h --count 3 --overlap allow

is get_has_lines_with_tabs 'id	a
topic	mail
state	scheduled
payload	hello
due_ms	1893485100000
priority	128
attempts	0
crashes	0
created_ms	1893484800000' "$belfry" get mail a
json get_as_json 'j["headers"] == {"color": "red", "a": "b=c"} and j["priority"] == 7 and
    j["group"] == "ann" and j["correlation"] == "42" and j["lease_ms"] == 60000' \
    "$belfry" get mail g --json
json bytes_are_in_base64 'j["payload_base64"] == "/wAK" and "payload" not in j' \
    "$belfry" get mail d --json
json bytes_came_in_whole 'j["payload_base64"] == "/wAK"' "$belfry" get mail e --json
json no_bytes_are_none 'j["payload"] == ""' "$belfry" get mail f --json
is bytes_are_escaped_in_lines '\xff\x00\n' field mail d payload
json a_plan 'j["cron"] == "30 10 * * 1-5" and j["tz"] == "Europe/Berlin"' "$belfry" get mail h --json
exits get_what_is_not_there 3 'NOTFOUND' "$belfry" get mail nobody

# --- list ---
is list_has_lines_with_tabs 'b	scheduled	1893484860000	0	two words
a	scheduled	1893485100000	0	hello' "$belfry" list mail --to 2030-01-01T08:30:00Z
json list_as_json '[t["id"] for t in j["timers"]] == ["b", "a"] and j["cursor"] is None' \
    "$belfry" list mail --to 2030-01-01T08:30:00Z --json
json a_page_says_where_it_goes_on 'len(j["timers"]) == 2 and len(j["cursor"]) > 0' \
    "$belfry" list mail --count 2 --json
cursor=$("$belfry" list mail --count 1 --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["cursor"])')
is a_cursor_goes_on 'a	scheduled	1893485100000	0	hello' \
    "$belfry" list mail --cursor "$cursor" --to 2030-01-01T08:30:00Z
for i in {1..105}; do printf 'SCHEDULE many x IN 1h ID n%d\r\n' "$i"; done >many
python3 -c '
import os, socket, sys
host, port = os.environ["BELFRY_SERVER"].split(":")
s = socket.create_connection((host, int(port)))
s.sendall(open("many", "rb").read())
n = 0
while n < 210:
    n += s.recv(4096).count(b"\n")'
is list_turns_pages 105 bash -c "'$belfry' list many | wc -l"
json list_turns_pages_as_json 'len(set(t["id"] for t in j["timers"])) == 105' \
    "$belfry" list many --json
exits list_names_its_states 2 "'x' is not one of scheduled, ready, leased, blocked, done, dead, cancelled, expired, skipped, plan" \
    "$belfry" list mail --state x
exits purge_names_its_states 2 "'x' is not one of scheduled, ready, done, dead, cancelled, expired, skipped" \
    "$belfry" purge mail --state x
exits purge_of_a_state_that_it_does_not_take 2 'leased or blocked timers cannot be purged' \
    "$belfry" purge mail --state leased
is list_of_a_state_has_none '' "$belfry" list mail --state dead

# --- on a terminal ---
"$belfry" schedule now $'\e[31mred' --id control >/dev/null
if has_terminal what_a_terminal_shows; then
like a_table_on_a_terminal 'STATE*DUE*ID*PAYLOAD
scheduled  2030-01-01T08:01:00Z*b *two words*' terminal "$belfry" list mail --count 1
like times_on_a_terminal '*due *2030-01-01T08:05:00Z*' terminal "$belfry" get mail a
like colors_on_a_terminal $'*\e\\[32mready\e\\[0m*' terminal "$belfry" get now control
like no_color_if_so_asked '*ready*' terminal env NO_COLOR=1 "$belfry" get now control
is no_color_at_all 0 bash -c "$(declare -f terminal); terminal env NO_COLOR=1 '$belfry' get now \
    control | grep -c $'\e'; true"
is nothing_from_outside_reaches_a_terminal 'payload          \x1b[31mred' \
    bash -c "$(declare -f terminal); terminal '$belfry' get now control | grep ^payload"
like bars_on_a_terminal '*2030-01-01T08:00:00Z*###*' terminal "$belfry" agenda --to 2030-01-01T12:00:00Z
is bars_fit_the_terminal yes bash -c "$(declare -f terminal); terminal env NO_COLOR=1 '$belfry' \
    agenda --to 2030-01-01T12:00:00Z | awk 'length > 80 {exit 1}' && echo yes"
fi

# --- agenda, explain, topics ---
is agenda_has_lines_with_tabs '1893484800000	3
1893488400000	107' "$belfry" agenda --from 2030-01-01T08:00:00Z --to 2030-01-01T10:00:00Z
json agenda_as_json 'j["steps"][0] == {"start_ms": 1893484800000, "count": 2}' \
    "$belfry" agenda --topic mail --from 2030-01-01T08:00:00Z --to 2030-01-01T10:00:00Z --json
like explain_has_sentences 'The timer is scheduled: due at 2030-01-01T08:05:00Z, in 5m.*' \
    "$belfry" explain mail a
json explain_as_json 'j["lines"][0].startswith("The timer is scheduled")' "$belfry" explain mail a --json
json explain_has_a_reason_for_programs \
    'j["reason"] == "time" and j["until_ms"] == 1893485100000 and j["by"] is None' \
    "$belfry" explain mail a --json
like explain_has_a_reason_if_asked 'reason	time
until_ms	1893485100000
The timer is scheduled: *' "$belfry" explain mail a --reason
exits explain_what_is_not_there 3 NOTFOUND "$belfry" explain mail nobody
is topics_have_counts 'mail	9	0	0	0	
many	105	0	0	0	
now	0	1	0	0	
other	1	0	0	0	' "$belfry" topics
json topics_as_json '[t["topic"] for t in j["topics"]] == ["mail", "many", "now", "other"]' \
    "$belfry" topics --json
json one_topic 'j["topic"] == "mail" and j["scheduled"] == 9 and j["lease"] == "30s"' \
    "$belfry" topics mail --json
exits a_topic_that_is_not_there 3 'does not exist' "$belfry" topics nobody

# --- cancel, reschedule ---
is cancel_counts 2 "$belfry" cancel mail a b nobody
json cancel_as_json 'j == {"cancelled": 1}' "$belfry" cancel mail c --json
exits cancel_what_is_not_there 3 "has no unfinished timer 'a'" "$belfry" cancel mail a
is reschedule_moves 1 "$belfry" reschedule mail d --at 2030-01-01T08:30:00Z
is reschedule_has_moved 1893486600000 field mail d due_ms
exits reschedule_what_is_not_there 3 "has no scheduled or ready timer 'a'" "$belfry" reschedule mail a --in 1h

# --- claim, ack, fail, release, extend ---
token() { # of the next delivery of a topic
    "$belfry" claim "$1" --lease 10s --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["deliveries"][0]["token"])'
}
exits claim_nothing 8 '' "$belfry" claim work
exits claim_waits 8 '' "$belfry" claim work --wait 30ms
"$belfry" schedule work hi --id w1 --header k=v >/dev/null
json claim_as_json 'len(j["deliveries"]) == 1 and j["deliveries"][0]["payload"] == "hi" and
    j["deliveries"][0]["headers"] == {"k": "v"} and j["deliveries"][0]["attempt"] == 1' \
    "$belfry" claim work --lease 10s --json
is the_lease_ends 2030-01-01T08:00:11Z "$belfry" clock --advance 11s
like claim_has_lines_with_tabs '*	work	w1	1	1893484800000	hi' "$belfry" claim work --lease 10s
is the_lease_ends_again 2030-01-01T08:00:22Z "$belfry" clock --advance 11s
token=$(token work)
is extend_says_what_is_left 60000 "$belfry" extend "$token" 1m
json extend_as_json 'j == {"lease_ms": 10000}' "$belfry" extend "$token" --json
is release_gives_back 1 "$belfry" release "$token"
exits release_twice 4 STALE "$belfry" release "$token"
token=$(token work)
like fail_says_when 'scheduled	1893485122000' "$belfry" fail "$token" --in 5m --reason 'no ink'
exits fail_twice 4 STALE "$belfry" fail "$token"
is the_delay_passes 2030-01-01T08:05:22Z "$belfry" clock --advance 5m
is an_attempt_was_spent 1 field work w1 attempts
json fail_dead 'j == {"state": "dead", "due_ms": None}' "$belfry" fail "$(token work)" --dead --json
is revive_makes_due_again 1 "$belfry" revive work w1
exits revive_what_is_not_dead 3 "has no dead timer 'w1'" "$belfry" revive work w1
token=$(token work)
is ack_counts 1 "$belfry" ack "$token" --result fine
exits ack_twice 4 '' "$belfry" ack "$token"

# --- topics ---
exits pause_says_nothing 0 '' "$belfry" pause work
"$belfry" schedule work x --id p --retry 1h >/dev/null
exits a_paused_topic_delivers_nothing 8 '' "$belfry" claim work
is topics_say_so 'work	0	1	0	0	paused' bash -c "'$belfry' topics | grep ^work"
json resume_as_json 'j == {"ok": True}' "$belfry" resume work --json
like a_resumed_topic_delivers '*	work	p	*' "$belfry" claim work --lease 1s
is purge_counts 105 "$belfry" purge many --state scheduled
exits configure_says_nothing 0 '' "$belfry" configure small depth=1 retention=1h
json configure_has_set 'j["depth"] == "1" and j["retention"] == "1h"' "$belfry" topics small --json
exits configure_wants_pairs 2 NAME=VALUE "$belfry" configure small depth
"$belfry" schedule small x --in 1h >/dev/null
exits full_is_5 5 FULL "$belfry" schedule small y --in 1h
exits conflict_is_4 4 CONFLICT "$belfry" schedule mail x --id d --conflict reject

# --- usage errors ---
exits a_bad_value_is_2 2 'not a duration' "$belfry" schedule mail x --in 5x
exits a_delay_without_a_unit 2 'expected a unit' "$belfry" schedule mail x --in 5
exits an_interval_without_a_unit 2 'expected a unit' "$belfry" schedule mail x --every=300
exits a_positional_duration_without_a_unit 2 'expected a unit' "$belfry" extend token 30
exits a_timeout_without_a_unit 2 'expected a unit' "$belfry" topics --timeout 5
exits a_number_is_no_policy 2 'max(5) for 5 attempts' "$belfry" schedule mail x --retry 3
exits a_list_without_units 2 'expected a unit' "$belfry" schedule mail x --retry 5000,30000
exits a_list_with_one_unit 2 'expected a unit' "$belfry" schedule mail x --retry '5s,30000 max(3)'
exits a_setting_without_a_unit 2 'expected a unit' "$belfry" configure mail LEASE=5
exits a_policy_has_a_grammar 2 'exp(10s,2,1h), fixed(30s) or a list' "$belfry" schedule mail x --retry 'expo(10s,2,1h)'
exits an_exp_needs_three 2 'exp(10s,2,1h)' "$belfry" schedule mail x --retry 'exp(10s)'
exits zeros_are_no_interval 2 'from 1 to 31' "$belfry" schedule mail x --cron '0 0 0 0 0'
exits an_option_without_dashes 2 'did you mean --in?' "$belfry" schedule mail hello in 5m
exits an_option_with_one_dash 2 'did you mean --in?' "$belfry" schedule mail hello -in 5m
exits a_mistyped_retry 2 'did you mean --retry?' "$belfry" schedule mail hello --retires 5s
exits a_mistyped_setting 2 "did you mean lease?" "$belfry" configure mail leese=5
exits an_unknown_setting 2 'the settings are lease, ' "$belfry" configure mail qqqqqqqqqq=5
exits too_many_steps 2 'give a longer --step' "$belfry" agenda --from 2026-01-01T00:00:00Z --to 2027-01-01T00:00:00Z --step 1m
exits a_server_is_no_store 2 'use --store URL' "$belfry" list mail --server redis://127.0.0.1:6379
exits a_server_is_no_page 2 'the port of --resp' "$belfry" list mail --server http://127.0.0.1:7879
exits a_setting_that_is_no_policy 2 'max(5) for 5 attempts' "$belfry" configure mail retry=5
exits a_time_in_seconds 2 'looks like seconds' "$belfry" schedule mail x --at 1795000000
exits serve_needs_a_unit 2 '1ms to 1h' "$belfry" serve --durability-interval 5
is zero_needs_no_unit zero "$belfry" schedule mail x --id zero --in 0 --retry '0,1s max(3)'
is fixed_delays fixed "$belfry" schedule mail x --id fixed --in 1h --retry 'fixed(1s) max(3)'
is the_default_with_fewer_attempts '' bash -c "'$belfry' configure limited 'retry=max(3)' >/dev/null"
json is_kept_in_full 'j["retry"] == "exp(10s,2,1h) jitter(0.1) max(3)"' \
    "$belfry" topics limited --json
json help_lists_the_settings 'open("listed").read().split() == list(j)[-15:-6]' bash -c \
    "'$belfry' help configure | grep -v 'on Redis\|layout faststream' |
        sed -n 's/^      \([a-z_]*\) .*/\1/p' >listed
    '$belfry' topics limited --json"
exits a_bad_topic_is_2 2 BADARG "$belfry" schedule 'a b' x
exits an_option_that_is_none 2 'unknown option --bogus' "$belfry" list mail --bogus
exits an_option_in_capitals 2 'unknown option --IN' "$belfry" schedule mail x --IN 5m
exits an_option_without_its_value 2 'needs a value: --in' "$belfry" schedule mail x --in
exits a_flag_with_a_value 2 'takes no value: --dead' "$belfry" fail token --dead=1
exits a_short_option 2 'unknown option -x' "$belfry" list mail -x
exits a_word_that_is_missing 2 'missing argument id' "$belfry" cancel mail
exits a_word_too_many 2 'unexpected argument c' "$belfry" get a b c
exits a_header_without_a_value 2 NAME=VALUE "$belfry" schedule mail x --header color
exits a_wait_that_is_none 2 'not a duration' "$belfry" claim mail --wait soon
exits a_file_that_is_not_there 1 'cannot read nowhere' "$belfry" schedule mail --file nowhere
like a_rate_by_unit '*rate	10/1s*' "$belfry" limit api --rate 10/s
if has_terminal a_breaker_on_a_terminal; then
like a_breaker_on_a_terminal '*breaker *state closed, failures 0, opens_at*' terminal "$belfry" limit api
fi
like a_rate_by_minute '*rate	600/1m*' "$belfry" limit api --rate 600/m
exits a_rate_by_nothing 2 "expected n/duration" "$belfry" limit api --rate 10/
exits a_burst_without_a_rate 0 '--burst has no effect without a rate' "$belfry" limit calm --burst 5
exits a_limit_with_the_name_of_a_topic 0 'belfry configure mail concurrency=N' \
    "$belfry" limit mail --concurrency 5
is a_resource_that_is_known_has_no_hint '' bash -c "'$belfry' limit mail --concurrency 0 2>&1 >/dev/null"
"$belfry" limit mail --delete >/dev/null
exits clearing_a_mistyped_resource 3 "resource 'apj' does not exist; did you mean 'api'?" \
    "$belfry" limit apj --clear
exits showing_an_unknown_resource 3 'belfry limit shows the resources' "$belfry" limit elsewhere
exits a_duration_for_at 2 "did you mean --in '5m'?" "$belfry" schedule mail x --at 5m
exits a_local_time_for_in 2 "did you mean --at 'tomorrow 09:00'?" "$belfry" schedule mail x --in 'tomorrow 09:00'
exits an_interval_for_cron 2 "did you mean --every '5m'?" "$belfry" schedule mail x --cron '@every 5m'
exits an_interval_with_a_name 2 "did you mean --every '5m'?" "$belfry" schedule mail x --every '@every 5m'
exits a_name_for_every 2 "did you mean --cron '@daily'?" "$belfry" schedule mail x --every @daily
exits a_rule_for_every 2 "did you mean --cron '0 9 * * *'?" "$belfry" schedule mail x --every '0 9 * * *'
exits a_recurrence_for_cron 2 "did you mean --rrule 'FREQ=DAILY'?" "$belfry" schedule mail x --cron FREQ=DAILY
exits two_times_at_once 2 'exclude each other' "$belfry" schedule mail x --in 1m --at 1893484800000
exits an_interval_in_words 2 "did you mean --every '5 minutes'?" \
    "$belfry" schedule mail x --every 'every 5 minutes'
exits an_interval_in_words_for_cron 2 "did you mean --every '5 minutes'?" \
    "$belfry" schedule mail x --cron 'every 5 minutes'
exits a_name_without_its_sign 2 "did you mean --cron '@daily'?" "$belfry" schedule mail x --cron daily
exits no_time_at_all 2 'needs --in or --at' "$belfry" reschedule mail x
exits options_have_the_names_typed 2 '--count needs --every, --cron or --rrule' \
    "$belfry" schedule mail x --count 3
exits a_value_keeps_its_words 2 "ERR --gap and --fold need --at, --every, --cron or --rrule" \
    "$belfry" schedule mail x --gap next
exits a_quoted_value_is_not_an_option 2 "--gap: 'IN' is not one of next, skip" \
    "$belfry" schedule mail x --cron @daily --gap IN
exits the_place_in_a_rule '2' '    0 25 * * *
      ^' "$belfry" schedule mail x --cron '0 25 * * *'
exits clocks_do_not_go_back 2 BADARG "$belfry" clock --set 2029-01-01T00:00:00Z
exits a_verb_of_other_servers 2 'send SIGTERM' "$belfry" stop
exits a_verb_that_starts 2 'belfry serve' "$belfry" start
exits a_verb_for_logs 2 'journalctl' "$belfry" logs
exits a_verb_that_follows 2 'belfry top' "$belfry" tail
exits a_verb_of_other_queues 2 'belfry claim TOPIC, or belfry work' "$belfry" reserve
exits an_option_of_other_queues 2 'did you mean --retry?' "$belfry" schedule mail x --max-attempts 3
exits another_name_of_the_delay 2 'did you mean --in?' "$belfry" schedule mail x --delay 3s
exits an_option_for_a_word 2 'the topic is a word without an option' "$belfry" schedule x --queue mail
exits a_time_of_day_for_cron 2 'expected five fields' "$belfry" schedule mail x --cron 9:00
exits the_zone_of_the_machine_by_name 2 'this machine is in Asia/Tokyo' \
    env TZ=Asia/Tokyo "$belfry" next @daily --tz local
exits a_mistyped_verb 2 "did you mean 'schedule'" "$belfry" scedule
exits a_verb_that_is_none 2 'belfry help lists' "$belfry" frobnicate
exits a_mistyped_option 2 'did you mean --in?' "$belfry" schedule mail x --inn 5m
exits a_mistyped_option_of_all_verbs 2 'did you mean --json?' "$belfry" list mail --jason
exits a_mistyped_option_of_bench 2 'did you mean --timers?' "$belfry" bench --timer 5
exits a_zone_without_its_continent 2 "did you mean 'Europe/Berlin'" \
    "$belfry" schedule mail x --cron '0 9 * * *' --tz berlin
exits a_zone_of_an_interval 2 '--tz has no effect on --every' \
    "$belfry" schedule mail x --every 1h --tz Europe/Berlin
exits a_zone_of_next 2 "did you mean 'America/New_York'" "$belfry" next @daily --tz America/NewYork
exits a_zone_that_is_none 2 'e.g. Europe/Berlin' "$belfry" next @daily --tz Nowhere/Atall
exits a_mistyped_topic 3 "topic 'mial' does not exist; did you mean 'mail'" "$belfry" get mial a
exits a_mistyped_topic_of_topics 3 "did you mean 'mail'" "$belfry" topics mial
exits a_list_of_a_mistyped_topic 3 "did you mean 'mail'" "$belfry" list mial
exits a_topic_that_is_none 3 "topic 'quite-else' does not exist" "$belfry" cancel quite-else a
exits an_empty_topic_is_no_mistake 3 "NOTFOUND topic 'mail' has no timer 'nobody'" "$belfry" get mail nobody
exits a_rule_without_quotes 2 'quote the rule' "$belfry" schedule mail x --cron 0 9 1 1 1
exits a_verb_of_other_programs 2 "did you mean 'schedule'?" "$belfry" enqueue mail x
exits an_option_of_other_programs 2 'did you mean --in?' "$belfry" schedule mail x --delay 5m
exits ack_of_a_wrong_token 4 'no lease has this token' "$belfry" ack garbage
exits an_unknown_section 2 'the sections are server' "$belfry" info nosuch
is purge_offers_no_state_that_fails 0 bash -c "'$belfry' help purge | grep -cE 'leased|blocked'; true"
exits pause_of_a_mistyped_topic 3 "did you mean 'mail'" "$belfry" pause mial
exits configure_of_a_mistyped_topic 3 "did you mean 'mail'? --create creates the topic" \
    "$belfry" configure mial lease=1m
exits nothing_was_configured 3 'does not exist' "$belfry" topics mial
exits configure_in_advance 0 '' "$belfry" configure quite-new lease=1m
exits configure_creates_if_told 0 '' "$belfry" configure maill lease=1m --create
exits configure_again 0 '' "$belfry" configure maill lease=2m
is help_names_the_states_once 1 bash -c "'$belfry' help list | grep -c '^    --state'"
like help_names_the_states '*scheduled, ready, *dead,*or plan: only plans*' "$belfry" help list
exits pause_creates_if_told 0 '' "$belfry" pause pausd --create
exits resume_of_it 0 '' "$belfry" resume pausd
exits resume_creates_nothing 2 'unknown option --create' "$belfry" resume pausd --create
exits a_claim_of_a_mistyped_topic 8 "topic 'mial' does not exist yet; did you mean 'mail'" \
    "$belfry" claim pausd mial --wait 1ms
exits a_claim_of_a_topic_says_nothing 8 '' bash -c "'$belfry' claim pausd 2>&1 | grep . && exit 1
    exit 8"

# --- durations and times as people type them ---
before=$BELFRY_SERVER before_server=$server
serve human --store memory --clock virtual
"$belfry" clock --set 2030-01-01T08:00:00Z >/dev/null
due() { # schedules with some options, and prints the due
    "$belfry" schedule human x --id h "$@" >/dev/null && field human h due_ms
}
is a_duration_in_words 1893485100000 due --in '5 minutes'
is a_duration_with_a_long_unit 1893485100000 due --in 5min
is a_local_time_with_a_zone 1906560000000 due --at '2030-06-01 18:00' --tz Europe/Berlin
json the_zone_is_of_the_time_alone '"tz" not in j' "$belfry" get human h --json
is an_interval_from_a_local_time 1906560000000 \
    due --every '1 hour' --at '2030-06-01T18:00' --tz Europe/Berlin
is a_rule_has_the_zone_too Europe/Berlin bash -c "'$belfry' schedule human x --id h \
    --cron '0 9 * * *' --at '2030-06-01 18:00' --tz Europe/Berlin >/dev/null; '$belfry' get human h |
    sed -n 's/^tz	//p'"
is a_local_time_of_reschedule 1906560000000 bash -c "'$belfry' schedule human x --id h >/dev/null
    '$belfry' reschedule human h --at '2030-06-01 18:00' --tz Europe/Berlin >/dev/null
    '$belfry' get human h | sed -n 's/^due_ms	//p'"
exits a_local_time_without_a_zone 2 "give its zone with --tz" \
    "$belfry" schedule human x --at 'tomorrow 09:00'
exits a_date_that_does_not_exist 2 'not a date that exists' \
    "$belfry" schedule human x --at '2030-02-30 09:00' --tz UTC
exits a_time_that_is_none 2 "or 18:00, 'tomorrow 09:00'" "$belfry" schedule human x --at tomorow
exits a_day_without_a_time 2 "needs a time of day, as in 'tomorrow 09:00'" \
    "$belfry" schedule human x --at 'tomorrow'
exits a_date_without_a_time 2 "needs a time of day, as in '2030-12-24 09:00'" \
    "$belfry" schedule human x --at 2030-12-24 --tz UTC
# The clock of the server says what today is, and now: it shows another year than this machine's.
is a_time_of_the_servers_day 1893513600000 due --at 17:00 --tz Europe/Berlin
is the_next_day_of_the_server 1893571200000 due --at 'tomorrow at 9am' --tz Europe/Berlin
is a_distance_from_the_servers_now 1893492000000 due --at +2h
is a_distance_in_any_zone 1893492000000 due --at +2h --tz Europe/Berlin
is a_distance_in_words 1893485100000 due --at 'in 5 minutes'
is now_is_the_servers 1893484800000 due --at now
is a_list_up_to_a_distance 'h	ready	1893484800000	0	x' "$belfry" list human --to +1m
is distances_in_an_agenda 1893492000000 bash -c "'$belfry' schedule human x --id h --every 1h \
    --at now --until +30d >/dev/null; '$belfry' agenda --topic human --from +2h --to +3h | cut -f 1"
like a_local_time_of_next '*2030-06-02T07:00:00Z*' \
    "$belfry" next '0 9 * * *' --tz Europe/Berlin --from '2030-06-01 18:00' -n 1
is a_zone_in_the_rule_is_that_of_local_times 1906560000000 due --cron 'TZ=Europe/Berlin 0 9 * * *' \
    --at '2030-06-01 18:00'
if has_terminal the_zone_of_the_machine; then
terminal env TZ=Asia/Tokyo "$belfry" schedule human x --id h --at '2030-06-01 18:00' >/dev/null
is the_zone_of_the_machine 1906534800000 field human h due_ms
fi

# --- nothing to show ---
if has_terminal nothing_on_a_terminal; then
full=$BELFRY_SERVER full_server=$server
serve empty --store memory
like no_topics 'no topics; belfry schedule*' terminal "$belfry" topics
like no_timers 'no timers*' terminal "$belfry" list mail
like no_resources 'no resources; belfry limit*' terminal "$belfry" limit
like no_jobs 'no jobs*' terminal "$belfry" job list
like nothing_is_due 'nothing is due*no timer is scheduled*' terminal "$belfry" agenda
BELFRY_SERVER=$full server=$full_server
fi
exits a_setting_that_is_missing 2 'NAME=VALUE, e.g. lease=1m' "$belfry" configure mail

# --- plans in lists ---
"$belfry" schedule plans x --id daily --cron '30 10 * * *' --tz Europe/Berlin >/dev/null
"$belfry" schedule plans x --id timer --in 1h >/dev/null
is plans_alone 'daily	scheduled	1893490200000	0	x	cron 30 10 * * * Europe/Berlin' \
    "$belfry" list plans --state plan
json plans_alone_as_json '[t["id"] for t in j["timers"]] == ["daily"]' \
    "$belfry" list plans --state plan --json
is timers_are_not_marked 'timer	scheduled	1893488400000	0	x' bash -c "'$belfry' list plans | head -n 1"
if has_terminal plans_on_a_terminal; then
like plans_are_marked_on_a_terminal '*plan *daily *' terminal "$belfry" list plans
fi

# --- what is due next ---
"$belfry" schedule plans2 x --id late --at 2030-01-01T07:00:00Z >/dev/null
upcoming() { # what is due next, of two topics
    "$belfry" agenda --next 1000 | cut -f 2- | grep ^plans
}
is overdue_ones_are_first 'plans2	late	
plans	timer	
plans	daily	At 10:30, Europe/Berlin time.' upcoming
is over_all_topics late bash -c "'$belfry' agenda --next 1 | cut -f 3"
"$belfry" schedule plans x --id nine --rrule 'FREQ=DAILY;BYHOUR=9' --at 2030-01-05T09:07:30Z >/dev/null
is a_sentence_has_what_the_start_gives 'plans	nine	Every day at 09:07:30, UTC.' \
    bash -c "'$belfry' agenda --next 1000 | cut -f 2- | grep nine"
json the_next_as_json 'j["next"][0] == {"due_ms": 1893481200000, "topic": "plans2", "id": "late"}' \
    "$belfry" agenda --json
echo '{"id": "hourly", "every": "1h", "tasks": [{"id": "a", "topic": "plans"}]}' |
    "$belfry" job submit - >/dev/null
is a_recurring_job_is_due '	hourly	Every 1h.' \
    bash -c "'$belfry' agenda --next 1000 | cut -f 2- | grep hourly"
json a_recurring_job_as_json \
    '[n["sentence"] for n in j["next"] if n.get("job") == "hourly" and "topic" not in n] == ["Every 1h."]' \
    "$belfry" agenda --next 1000 --json
is a_recurring_job_has_no_topic 0 \
    bash -c "'$belfry' agenda --topic plans --next 1000 | { grep -c hourly || true; }"
"$belfry" job cancel hourly >/dev/null
exits no_number_of_next 2 'from 1 to 1000' "$belfry" agenda --next 0
if has_terminal what_is_next_on_a_terminal; then
like what_is_next_on_a_terminal '*NEXT *LEFT *TOPIC *ID *PLAN*07:00:00Z * 1h ago *plans2 *late*' \
    terminal "$belfry" agenda
like only_what_is_next_on_a_terminal 'NEXT *LEFT *TOPIC *ID *PLAN*07:00:00Z * 1h ago *plans2 *late*' \
    terminal "$belfry" agenda --next 1
fi
BELFRY_SERVER=$before server=$before_server

# --- other names, and options before the verb ---
like ls_is_list '*fixed*' "$belfry" ls mail
like status_is_info '*belfry_version*' "$belfry" status
like ps_is_topics '*mail*' "$belfry" ps
json options_before_the_verb '"timers" in j' "$belfry" --server "$BELFRY_SERVER" --json ls mail
json with_an_equals_sign '"timers" in j' "$belfry" --timeout=5s --json list mail
is a_port_alone PONG "$belfry" ping --server "${BELFRY_SERVER#*:}"
is a_colon_and_a_port PONG "$belfry" --server ":${BELFRY_SERVER#*:}" ping
exits an_unknown_option_before_the_verb 2 'before the verb' "$belfry" --bogus list mail
like help_of_an_alias '*usage: belfry list*' "$belfry" help ls

# --- commands that the server refuses ---
head -c 1048577 /dev/zero >large
exits a_payload_too_large_is_2 2 'at most 1048576 bytes' "$belfry" schedule small --file large
exits a_backup_to_a_relative_path 2 "'copy' is a relative path; give an absolute one" \
    "$belfry" backup copy
exits a_backup_of_memory_is_2 2 'UNSUPPORTED not' "$belfry" backup "$room/copy"
virtual=$BELFRY_SERVER virtual_server=$server
serve disk --data data
exits a_clock_of_the_system_is_2 2 '--clock virtual' "$belfry" clock --advance 1s
"$belfry" backup "$room/copy" >/dev/null || fail "backup: $?"
is backup_leaves_a_copy yes bash -c "[ -e '$room/copy' ] && echo yes"
BELFRY_SERVER=$virtual server=$virtual_server

# --- help ---
for verb in serve schedule cancel reschedule get list claim ack fail release extend work topics \
    configure pause resume revive purge agenda explain clock backup doctor copy next bench completion \
    export import top job; do
    "$belfry" help "$verb" >help || fail "help $verb: exits with $?"
    grep -q "^usage: belfry $verb" help || fail "help $verb: $(cat help)"
    [ "$(wc -l <help)" -le 46 ] || fail "help $verb does not fit a screen"
    [ "$(tail -n 3 help | head -n 1)" = examples: ] || fail "help $verb has no two examples"
    tail -n 2 help | sed 's/^    //' >>examples
    "$belfry" "$verb" --help | cmp -s - help || [ "$verb" = topics ] || fail "$verb --help differs"
    "$belfry" help | grep -q "^    $verb " || fail "help does not list $verb"
done
echo 'ok   help_has_every_verb'
before=$BELFRY_SERVER before_server=$server
serve examples --store memory --clock virtual
"$belfry" schedule mail x --id welcome-7 >/dev/null
token=none
mkdir bin && ln -s "$belfry" bin/belfry
printf '0 9 * * * true\n' >crontab.txt
while read -r line; do
    case $line in *' serve '* | *' work '* | *' top'* | *' bench '* | *' backup '* | *'>~'*) continue ;; esac
    (PATH="$PWD/bin:$PATH" eval "$line") >/dev/null 2>errors </dev/null
    [ $? -ne 2 ] || fail "the example $line: $(cat errors)"
done <examples
echo 'ok   examples_are_understood'
BELFRY_SERVER=$before server=$before_server
is help_fits_a_screen yes bash -c "[ \$('$belfry' help | wc -l) -le 50 ] && echo yes"
like help_has_groups '*
Working
    work *
Servers and their data
    serve *' "$belfry" help
like help_of_help '*usage: belfry VERB*' "$belfry" help help
exits help_for_what_is_no_verb 2 'unknown verb' "$belfry" help nothing
json version_as_json '"version" in j' "$belfry" version --json

# --- what is missing or mistyped ---
exits a_list_of_an_unknown_topic 3 "topic 'nosuch' does not exist" "$belfry" list nosuch
exits a_purge_of_an_unknown_topic 3 "topic 'nosuch' does not exist" "$belfry" purge nosuch
exits the_limits_of_an_unknown_resource 3 "the resource 'nosuch' has no limits" "$belfry" limit nosuch --delete
"$belfry" schedule stars x --in 1h --id one >/dev/null
exits a_star_is_no_id 3 'cancel takes ids, and * is none' "$belfry" cancel stars '*'
exits a_long_limit_is_cut 0 '--until 48h is longer than 24h: the limit ends in 24h' "$belfry" limit cut --until 48h
is a_limit_of_a_day_is_not '' bash -c "'$belfry' limit whole --until 24h 2>&1 >/dev/null"
is limits_are_lines_of_columns '-	0	0	0	closed	-	lines' bash -c \
    "'$belfry' limit lines --breaker 7 >/dev/null; '$belfry' limit | grep lines"
"$belfry" limit cut --delete >/dev/null
"$belfry" limit whole --delete >/dev/null
if has_terminal a_topic_that_is_new; then
like a_topic_like_another "*the topic 'starz' is new; did you mean 'stars'?*" terminal "$belfry" schedule starz x
is a_topic_that_is_known_has_no_note 0 bash -c "$(declare -f terminal); terminal '$belfry' schedule stars x | grep -c new || true"
fi
is nothing_is_said_in_a_pipe '' bash -c "'$belfry' schedule stairs x 2>&1 >/dev/null"
exits a_zone_that_is_not_used 2 "did you mean 'Europe/Berlin'" "$belfry" schedule stars x --at +1h --tz Europe/Berln
exits a_zone_of_a_list 2 "did you mean 'Europe/Berlin'" "$belfry" list stars --tz Europe/Berln
exits a_city_for_a_local_time 2 "did you mean 'Europe/Berlin'" "$belfry" schedule stars x --at 09:00 --tz Berlin
exits an_abbreviation_for_a_local_time 2 'for example Europe/Berlin' "$belfry" schedule stars x --at 09:00 --tz CEST
exits a_zone_of_an_instant 2 'the time of --at is the same in every zone' \
    "$belfry" schedule stars x --at 2031-01-01T00:00:00Z --tz Europe/Berlin
exits two_due_times 2 'give one of them' "$belfry" schedule stars x --in 5m --at 10:00
exits a_rule_of_quartz 0 'note: numbers of weekdays are those of cron' \
    "$belfry" schedule stars x --cron '0 0 9 ? * 2-6' --id quartz
like topics_help_has_its_name '*or: belfry topics NAME:*' "$belfry" topics --help
like configure_help_has_partitions '*partitions *' "$belfry" configure --help
is backup_offers_no_store 0 bash -c "'$belfry' backup --help | grep -c -- --store || true"

exits a_duration_names_its_option 2 '--in: not a duration: expected a unit' "$belfry" schedule stars x --in 5
exits a_duration_in_capitals 2 'did you mean 5m?' "$belfry" schedule stars x --in 5M
exits a_setting_is_named 2 'lease: not a duration' "$belfry" configure stars lease=5
exits no_retry 2 'for one attempt and no retry: max(1)' "$belfry" schedule stars x --retry none
exits a_reserved_word 2 "'wait' is a reserved word" "$belfry" list wait
exits two_payloads 2 'the payload is that of --file' "$belfry" schedule stars hi --file /dev/null
exits a_payload_with_a_minus 2 'comes after --' "$belfry" schedule stars -5
exits an_hour_alone 2 'write 9:00, or 9am' "$belfry" schedule stars x --at 9
exits a_zone_in_brackets 2 "did you mean 'Europe/Berlin'" \
    "$belfry" schedule stars x --at '2031-01-01T09:00[Europe/Berln]'
is a_time_without_seconds 1925028000000 bash -c \
    "'$belfry' schedule stars x --id short --at '2031-01-01 11:00 +1' >/dev/null; '$belfry' get stars short |
        sed -n 's/^due_ms	//p'"
exits a_server_is_no_store 2 'use --server HOST:PORT' "$belfry" list stars --store "redis://$BELFRY_SERVER"
like help_of_its_help '*usage: belfry VERB*' "$belfry" help --help
if has_terminal a_time_in_the_past; then
like a_time_in_the_past '*in the past, so the timer is due at once*' \
    terminal "$belfry" schedule stars x --at 2020-01-01T00:00Z
fi

# --- connecting, and keys ---
exits nobody_is_there 7 'start a server with belfry serve' "$belfry" topics --server 127.0.0.1:1
exits an_address_that_is_none 2 'not an address' "$belfry" topics --server :::
exits a_path_where_nobody_is 7 'cannot reach ./nowhere' "$belfry" topics --server ./nowhere
python3 -c '
import socket, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
time.sleep(100)' >mute &
started+=($!)
eventually a_mute_server test -s mute
exits a_server_that_does_not_answer 8 'no reply' \
    "$belfry" topics --server "127.0.0.1:$(cat mute)" --timeout 50ms
kill "$server" && wait "$server"
exits the_server_has_gone 7 'cannot reach' "$belfry" topics

printf 'a-key-that-a-machine-has-made' >key
printf 'another-key-that-nobody-knows' >wrong
"$belfry" serve --hash-key reader read <key >keys || fail 'serve --hash-key'
serve second --store memory --keys keys
exits without_a_key 6 NOAUTH "$belfry" topics
exits without_a_key_the_way_is_shown 6 'give a key with --key-file' "$belfry" topics
exits with_a_wrong_key 6 '' "$belfry" topics --key-file wrong
exits a_key_is_not_repeated 6 '' bash -c "! '$belfry' topics --key-file wrong 2>&1 | grep another-key \
    && exit 6"
is with_a_key '' "$belfry" topics --key-file key
export BELFRY_KEY_FILE=key
is with_a_key_in_the_environment '' "$belfry" topics
exits not_allowed_is_6 6 NOPERM "$belfry" schedule mail x
exits work_is_not_allowed 6 NOPERM "$belfry" work mail -- true
exits a_key_file_that_is_not_there 1 'cannot read the key' "$belfry" topics --key-file nowhere
unset BELFRY_KEY_FILE
serve third --store memory --http 127.0.0.1:0
exits the_port_of_http_is_named 1 'is it the port of HTTP?' \
    "$belfry" topics --server "127.0.0.1:$(sed -n 's/^http //p' third.port)"
