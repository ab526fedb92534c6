#!/usr/bin/env bash
# examples/pipeline: a build that survives kill -9. Usage: pipeline.sh PROGRAM
set -u
program=$(realpath "$1")
folder=$(mktemp -d)
runner=
trap '[ -n "$runner" ] && kill -9 "$runner" 2>/dev/null; rm -rf "$folder"' EXIT

fail() {
    printf 'FAILED %s\n' "$1" >&2
    [ -f "$folder/said" ] && cat "$folder/said" >&2
    exit 1
}

ok() {
    printf 'ok   %s\n' "$1"
}

# count LINE: how often a task has begun.
count() {
    grep -c "^build/$1, " "$folder/said"
}

last() {
    tail -1 "$folder/said"
}

wanted="program: main.o(-O2) util.o(-O2)"

"$program" "$folder/data" >"$folder/said" 2>&1 || fail "the build fails"
[ "$(last)" = "$wanted" ] || fail "the result is another"
for task in configure compile-main compile-util link; do
    [ "$(count $task)" = 1 ] || fail "$task did not run once"
done
ok a_build_runs_and_hands_on_its_results

"$program" "$folder/data" >"$folder/said" 2>&1 || fail "the finished build is not found"
[ "$(last)" = "$wanted" ] || fail "the result is lost"
! grep -q "^build/" "$folder/said" || fail "a finished build runs again"
ok a_finished_build_is_not_run_again

"$program" "$folder/data" --again >"$folder/said" 2>&1 || fail "the build does not run again"
[ "$(last)" = "$wanted" ] && [ "$(count link)" = 1 ] || fail "the build did not run again"
ok a_finished_build_is_replaced

# Killed while both compilers run; the first task is done by then.
"$program" "$folder/killed" --slow 1000 >"$folder/said" 2>&1 &
runner=$!
tries=0
until [ "$(count compile-main)" = 1 ] && [ "$(count compile-util)" = 1 ]; do
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || fail "the compilers do not begin"
    sleep 0.02
done
kill -9 "$runner"
wait "$runner" 2>/dev/null
runner=
"$program" "$folder/killed" >>"$folder/said" 2>&1 || fail "the build does not continue"
[ "$(last)" = "$wanted" ] || fail "the result after kill -9 is another"
[ "$(count configure)" = 1 ] || fail "what was done is done again"
[ "$(count compile-main)" = 2 ] && [ "$(count compile-util)" = 2 ] || fail "the compilers are lost"
[ "$(count link)" = 1 ] || fail "link did not run once"
ok a_killed_build_continues
