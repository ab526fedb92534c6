#!/usr/bin/env bash
# belfry bench: its results, its clean-up and its errors. Usage: bench.sh PROGRAM
. "$(dirname "$0")/lib.sh"
serve bench --store memory

left() { # how many timers its topics hold, in any state
    "$belfry" topics --json | python3 -c 'import json, sys
names = ["scheduled", "ready", "leased", "blocked", "done", "dead", "cancelled", "expired", "plans"]
print(sum(t.get(n, 0) for t in json.load(sys.stdin)["topics"] for n in names))'
}

# --- results ---
json every_row_has_all_timers 'j["timers"] == 3000 and j["bytes"] == 10 and
    list(j["results"]) == ["schedule", "claim", "ack", "schedule_later", "cancel"] and
    all(r["count"] == 3000 and r["per_second"] > 0 and r["seconds"] > 0
        for r in j["results"].values())' "$belfry" bench -n 3000 -b10 -c 3 --pipeline=16 --json
json quantiles_grow 'all(0 < l["p50"] <= l["p90"] <= l["p99"] <= l["p999"] <= l["max"]
    for l in (r["latency_us"] for r in j["results"].values()))' "$belfry" bench -n 2000 --json
is nothing_is_left 0 left
is its_topics_are_its_own 'bench/due bench/later' bash -c "'$belfry' topics | cut -f 1 | xargs"
like a_name_has_topics_of_its_own 'bench/due bench/later bench/n/due bench/n/later' \
    bash -c "'$belfry' bench -n 10 --name n >/dev/null && '$belfry' topics | cut -f 1 | xargs"
json fewer_timers_than_connections 'j["connections"] == 2 and j["results"]["ack"]["count"] == 2' \
    "$belfry" bench -n 2 -c 100 --json
json a_pipeline_of_one 'j["results"]["cancel"]["count"] == 50' "$belfry" bench -n 50 -p 1 --json
json a_long_pipeline 'j["results"]["ack"]["count"] == 5000' "$belfry" bench -n 5000 -p 10000 --json
json no_payload 'j["results"]["ack"]["count"] == 50' "$belfry" bench -n 50 -b 0 --json
json large_payloads 'j["results"]["ack"]["count"] == 20' \
    "$belfry" bench -n 20 -b 1000000 -c 2 --json
is lines_have_tabs 'schedule 8
claim 8
ack 8
schedule_later 8
cancel 8' bash -c "'$belfry' bench -n 100 | awk -F '\t' '{print \$1, NF}'"

# --- on a terminal ---
if has_terminal what_a_terminal_shows; then
terminal "$belfry" bench -n 2000 >screen
like there_is_a_table '*PER SECOND*P99.9*schedule *2,000 *cancel *' cat screen
like there_is_a_bar '*schedule *[[]*[].#]*%*/s*' cat screen
is lines_fit_a_terminal yes bash -c "tr '\r' '\n' <screen | sed 's/\x1b\[K//g' |
    awk 'length > 80 {exit 1}' && echo yes"
fi
is no_bar_without_a_terminal 0 bash -c "'$belfry' bench -n 100 2>&1 >/dev/null | wc -c"

# --- topics that are not empty, limits ---
"$belfry" schedule bench/later mine --id mine --in 1h >/dev/null
exits topics_must_be_empty 4 'bench/later holds 1 timer:' "$belfry" bench -n 10
is what_is_there_is_left_alone 1 left
is purge_removes_it 1 "$belfry" bench --purge
is and_it_is_gone 0 left
"$belfry" schedule bench/due x >/dev/null
"$belfry" claim bench/due >/dev/null
json purge_removes_what_is_leased 'j == {"purged": 1}' "$belfry" bench --purge --json
is it_is_gone_too 0 left
"$belfry" configure --create bench/small/due depth=10
exits a_limit_is_5 5 FULL "$belfry" bench -n 1000 --name small
is after_an_error_nothing_is_left 0 left
"$belfry" pause --create bench/small/due
"$belfry" configure --create bench/small/due depth=0
exits a_topic_that_is_paused 1 'claimed 0 of 100 timers' \
    "$belfry" bench -n 100 --name small
is nothing_is_left_then_either 0 left

# --- stopped by a signal ---
for signal in INT TERM; do
    "$belfry" bench -n 10000000 -p 10 >out 2>err &
    bench=$!
    started+=("$bench")
    eventually "timers of a bench that is to be stopped" \
        bash -c "'$belfry' topics | grep -q '^bench/due	[0-9]*	[1-9]'"
    kill -"$signal" "$bench"
    wait "$bench"
    is "SIG${signal}_stops_it" 1 echo $?
    is "SIG${signal}_leaves_nothing" 0 left
    is "SIG${signal}_shows_what_was_measured" schedule cut -f 1 out
    like "SIG${signal}_says_so" '*stopped by a signal*' cat err
done

# --- usage errors ---
exits no_timers 2 'a number from 1 to' "$belfry" bench -n 0
exits too_many_connections 2 'from 1 to 1000' "$belfry" bench --connections 1001
exits a_number_that_is_none 2 'expected a number' "$belfry" bench --bytes=5x
exits a_value_that_is_missing 2 'needs a value: --pipeline' "$belfry" bench --pipeline
exits an_option_that_is_none 2 'unknown option --bogus' "$belfry" bench --bogus
exits a_letter_that_is_none 2 'unknown option -x' "$belfry" bench -x
exits a_word_too_many 2 'unexpected argument word' "$belfry" bench word
exits a_flag_with_a_value 2 'takes no value: --purge' "$belfry" bench --purge=1
exits a_name_that_is_no_topic 2 BADARG "$belfry" bench --name 'a b'
exits a_name_that_is_too_long 2 'too long' "$belfry" bench --name "$(printf 'n%.0s' {1..200})"
exits a_payload_too_large 2 BADARG "$belfry" bench -n 5 -b 60000000
is after_that_nothing_is_left 0 left
exits nobody_is_there 7 'cannot reach' "$belfry" bench --server 127.0.0.1:1
is help_fits_a_screen yes bash -c "[ \$('$belfry' help bench | wc -l) -le 24 ] && echo yes"

# --- a server that stops, and one that requires a key ---
"$belfry" bench -n 10000000 >out 2>err &
bench=$!
started+=("$bench")
eventually timers_of_a_bench bash -c "'$belfry' topics | grep -q '^bench/due	[0-9]*	[1-9]'"
kill -KILL "$server"
wait "$bench"
is a_server_that_goes_away_is_7 7 echo $?
like it_says_what_may_be_left '*may still hold timers*' cat err
printf 'a-key-that-a-machine-has-made' >key
"$belfry" serve --hash-key writer read,write,work <key >keys || fail 'serve --hash-key'
serve second --store memory --keys keys
exits a_key_that_may_not_purge_is_6 6 NOPERM "$belfry" bench -n 10 --key-file key
