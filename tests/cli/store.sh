#!/bin/bash
# The verbs on a store on Redis, without a server: belfry VERB --store URL; and belfry doctor --store.
. "$(dirname "$0")/lib.sh"

program=${BEL_TEST_REDIS_SERVER:-$(command -v redis-server)}
if [ -z "$program" ]; then
    echo "SKIPPED: there is no redis-server here (package redis-server)"
    exit 77
fi
unset BELFRY_SERVER

# start_redis NAME FLAG ...: starts a Redis server on a Unix socket in a folder of its own; $url.
start_redis() {
    local name=$1
    shift
    mkdir "$room/$name"
    (cd "$room/$name" && exec "$program" --port 0 --unixsocket "$room/$name/s" --save "" \
        --dir "$room/$name" "$@") >"$room/$name.log" 2>&1 &
    started+=("$!")
    eventually "the Redis server $name" test -S "$room/$name/s"
    url="unix://$room/$name/s"
}

# on COMMAND ...: runs a verb on the store.
on() {
    "$belfry" "$@" --store "$url"
}

start_redis plain

is schedule a on schedule mail hello --id a --in 1h
is options_before_the_verb b "$belfry" --store "$url" schedule mail "second one" --id b
is topics "mail	1	1	0	0	" on topics
json list 'j["timers"][0]["id"] == "b" and len(j["timers"]) == 2' on list mail --json
is reschedule 1 on reschedule mail a --in 0s
token=$(on claim mail --lease 1m | head -n 1 | cut -f 1) || fail "claim"
is ack 1 on ack "$token"
exits a_token_that_was_used 4 STALE on release "$token"
exits an_unknown_timer 3 NOTFOUND on explain mail nothing
is cancel 1 on cancel mail a
is configure "" on configure mail lease=1m
is pause "" on pause mail
is resume "" on resume mail
like ping "PONG*" on ping
like info "*store:redis*store_namespace:belfry*" on info
is a_plan p on schedule cron x --id p --every 1h
json agenda 'sum(step["count"] for step in j["steps"]) >= 24' on agenda --json
is purge 1 on purge cron --state scheduled

# What takes more than one connection.
for i in 1 2 3 4 5; do on schedule work "<$i>" --id "w$i" >/dev/null || fail "schedule work"; done
"$belfry" work work --store "$url" -j 3 -- sh -c 'line=$(cat); echo "$line" >>"$0"' "$room/worked" \
    2>"$room/work.log" &
worker=$!
started+=("$worker")
touch "$room/worked"
worked() { [ "$(wc -l <"$room/worked")" -eq 5 ]; }
eventually "the work" worked
kill "$worker"
wait "$worker"
is work_ends_by_a_signal 0 echo $?
is all_was_worked "<1> <2> <3> <4> <5>" echo $(sort "$room/worked")
is nothing_is_left "" on list work
json bench 'True' on bench --timers 300 -c 3 --json
printf '{"id": "i1", "payload": "x"}\n{"id": "i2", "payload": "y"}\n' >"$room/lines"
on import "$room/lines" --topic in >/dev/null 2>"$room/errors" || fail "import: $(cat "$room/errors")"
json export 'j["id"] == "i1"' sh -c '"$0" export in --store "$1" | head -n 1' "$belfry" "$url"

# What is not there, and what is wrong.
exits jobs_are_not_supported 2 "UNSUPPORTED JOB LIST is not supported by a store on Redis" on job list
exits groups_are_not_supported 2 UNSUPPORTED on schedule mail x --group g
exits backup_needs_a_folder 2 "needs a store in a data directory" on backup "$room/copy"
exits top_shows_servers 2 "not of a store" on top --json
exits a_server_and_a_store 2 "exclude each other" on list mail --server 7878
for name in 'a b' '{a}' "$(printf '%065d' 0)"; do
    exits a_wrong_namespace 2 "is not a namespace" on list mail --store-namespace "$name"
    exits a_wrong_namespace_in_a_variable 2 "is not a namespace" \
        env BELFRY_STORE="$url" BELFRY_STORE_NAMESPACE="$name" "$belfry" list mail
done
exits a_namespace_alone 2 "need --store" "$belfry" list mail --store-namespace n
exits no_url 2 "--store" "$belfry" list mail --store nonsense
exits an_unreachable_store 7 "cannot connect" "$belfry" list mail --store "unix://$room/nothing"
is a_namespace_of_its_own "" "$belfry" topics --store "$url" --store-namespace other

# A URL in the variable, as belfry serve has it.
in_variable() { BELFRY_STORE=$url "$belfry" "$@"; }
is the_variable b in_variable schedule mail hello --id b --in 1h
is the_variable_of_a_namespace "" env BELFRY_STORE_NAMESPACE=other BELFRY_STORE="$url" "$belfry" topics
exits the_word_memory_is_no_store 7 "cannot reach 127.0.0.1:1" env BELFRY_STORE=memory BELFRY_SERVER=127.0.0.1:1 "$belfry" topics
exits two_variables 2 "BELFRY_SERVER and BELFRY_STORE are both set" \
    env BELFRY_SERVER=127.0.0.1:1 BELFRY_STORE="$url" "$belfry" topics
exits the_server_is_nearer 7 "cannot reach 127.0.0.1:1" in_variable topics --server 127.0.0.1:1
like the_variable_of_doctor "*usable	*" in_variable doctor
is a_capital_scheme "" "$belfry" topics --store "UNIX${url#unix}" --store-namespace other
exits a_server_of_redis 2 "this is a Redis server" "$belfry" list mail --server "$room/plain/s"

start_redis closed --requirepass correct-horse
printf 'correct-horse\n' >"$room/password"
is a_password_file x "$belfry" schedule t p --id x --store "$url" --store-password-file "$room/password"
exits no_password 6 NOAUTH on list t
cp "$room/password" "$room/pass word&file=1%"
is a_password_file_of_any_name y "$belfry" schedule t p --id y --store "$url" \
    --store-password-file "$room/pass word&file=1%"
printf 'wrong\n' >"$room/password"
exits a_wrong_password 6 WRONGPASS on list t --store-password-file "$room/password"
exits a_wrong_password_of_doctor 6 WRONGPASS on doctor --store-password-file "$room/password"
exits a_wrong_password_of_a_copy 6 WRONGPASS "$belfry" copy --from "$url?password_file=$room/password" \
    --to "embedded:$room/copied"

start_redis evicting --maxmemory 50mb --maxmemory-policy allkeys-lru
exits an_evicting_store 1 "maxmemory-policy is allkeys-lru" on list t
exits doctor_refuses 1 "" on doctor
json doctor_names_it '[f["level"] for f in j["findings"] if f["about"] == "eviction"] == ["refused"]
    and not j["usable"] and "noeviction" in j["findings"][0]["do"]' \
    sh -c '"$0" doctor --json --store "$1" || test $? = 1' "$belfry" "$url"

start_redis durable --appendonly yes
like doctor_is_content "server	*appendonly	yes*usable	yes" on doctor
exits doctor_of_two 2 "exclude each other" "$belfry" doctor folder --store "$url"
exits doctor_without_a_value 2 "needs a value" "$belfry" doctor --store
exits doctor_cannot_reach 7 "cannot connect" "$belfry" doctor --store "unix://$room/nothing"
