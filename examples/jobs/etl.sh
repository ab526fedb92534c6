#!/bin/sh
# A step of the pipeline in nightly.json, for belfry work:
#
#     belfry job submit nightly.json
#     belfry work etl -j 4 --result -- ./etl.sh FOLDER
#     belfry job watch nightly
#
# The files of the pipeline are in FOLDER. What a step prints is its result, which the steps after it
# find in $BELFRY_RESULTS. A step may run twice, so it writes its file anew and moves it into place.
set -eu
folder=$1
put() { cat >"$folder/$1.$$" && mv "$folder/$1.$$" "$folder/$1"; }

case $BELFRY_TASK in
fetch)
    # Fails once, as sources do at night; the retry policy of the job brings it back.
    [ "$BELFRY_ATTEMPT" -gt 1 ] || { echo "the source is not ready" >&2; exit 1; }
    printf '%s\n' 'eu 10' 'us 7' 'eu x' 'us 5' 'eu 2' 'us y' | put raw
    echo 6
    ;;
clean-*)
    region=${BELFRY_TASK#clean-}
    grep "^$region [0-9]*$" "$folder/raw" | put "$region"
    wc -l <"$folder/$region"
    ;;
load)
    cat "$folder/eu" "$folder/us" | put table
    awk '{sum += $2} END {print sum}' "$folder/table"
    ;;
report)
    printf 'loaded %s\n' "$(cat "$BELFRY_RESULTS")" | put report
    ;;
alarm)
    echo "the load has failed: $BELFRY_JOB" | put alarm
    ;;
esac
