#!/usr/bin/env bash
# The jobs in examples/jobs, from submission to the last task, with belfry work and a virtual clock.
# Usage: jobs.sh PROGRAM EXAMPLES
. "$(dirname "$0")/../cli/lib.sh"
examples=$(realpath "$2")
mkdir bin && ln -s "$belfry" bin/belfry
PATH="$PWD/bin:$PATH"
serve jobs --store memory --clock virtual

work() { # LOG ARGUMENT ...: starts a worker; its process id is $worker
    local log=$1
    shift
    "$belfry" work "$@" >"$log" 2>&1 &
    worker=$!
    started+=("$worker")
}

state_is() { [ "$("$belfry" job list --json | tr '}' '\n' | grep -c "\"id\": \"$1\", \"state\": \"$2\"")" = 1 ]; }
task_is() { "$belfry" get etl "$1" --json | grep -q "\"state\": \"$2\""; }

# --- the pipeline ---
mkdir nightly
is pipeline_is_submitted nightly "$belfry" job submit "$examples/nightly.json"
work etl.log etl -j 4 --result -- "$examples/etl.sh" "$room/nightly"
eventually "the first attempt to fail" task_is nightly/fetch scheduled
"$belfry" clock --advance 10s >/dev/null # shorter than a lease
eventually "the pipeline to end" state_is nightly done
is report_has_the_result_before_it 'loaded {"load":"24"}' cat nightly/report
is alarm_is_skipped skipped bash -c \
    "'$belfry' get etl nightly/alarm --json | sed 's/.*\"state\": \"\([a-z]*\)\".*/\1/'"
[ ! -e nightly/alarm ] || fail "the alarm has run"
like picture_has_every_task '*done*100 %*fetch*clean-eu*clean-us*load*report*alarm*skipped*' \
    "$belfry" job get nightly
like watch_of_an_ended_job_ends '*nightly/load	done*nightly	done (1 skipped)	100 %' "$belfry" job watch nightly
kill "$worker" && wait "$worker"

# --- the crawl ---
mkdir api
is crawl_is_submitted crawl bash -c "'$examples/crawl.sh' 14 | '$belfry' job submit -"
work crawl.log crawl -j 4 --result -- "$examples/fetch.sh" "$room/api" 3
steps=0
until state_is crawl failed; do # page 13 does not exist, and nothing but total comes after it
    state_is crawl done && break
    "$belfry" clock --advance 1s >/dev/null
    steps=$((steps + 1))
    [ $steps -lt 600 ] || fail "the crawl does not end: $("$belfry" job get crawl)"
    sleep 0.05
done
is total_has_all_pages_but_the_missing_one '13 pages, sum 920' bash -c \
    "'$belfry' get crawl crawl/total --json | sed 's/.*\"result\": \"\([^\"]*\).*/\1/'"
is no_second_has_more_requests_than_allowed 0 bash -c \
    'for second in api/*; do ls "$second" | wc -l; done | awk "\$1 > 3 {n++} END {print n + 0}"'
grep -q '429 too many requests' crawl.log || fail "the API was never at its limit"
