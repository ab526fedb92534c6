#!/usr/bin/env bash
# Help of the scripts prints their usage and touches nothing, and a build that cannot be configured
# keeps the old one. Usage: test_scripts.sh SCRIPT_FOLDER
set -u
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
cp -r "$1" "$room/script"
mkdir "$room/build"
echo kept >"$room/build/marker"
before=$(cd "$room" && find . | sort)

# prints_usage SCRIPT ARGUMENT ...
prints_usage() {
    local got
    got=$(cd / && "$room/script/$1" "${@:2}" 2>&1) || { echo "FAILED $*: exits with $?: $got"; exit 1; }
    case $got in
    *"script/$1"*) ;;
    *) echo "FAILED $*: prints no usage: $got"; exit 1 ;;
    esac
    [ "$(cd "$room" && find . | sort)" = "$before" ] || { echo "FAILED $*: changes files"; exit 1; }
    echo "ok   $*"
}

for script in bench build check fuzz server setup test; do
    for word in --help -h help; do
        prints_usage $script $word
    done
done
prints_usage build --prefix /usr --help

# Without a meson.build, meson setup fails whatever the options are.
printf '#!/bin/sh\n' >"$room/script/setup"
for options in '-Dnosuch=1' '--prefix /usr'; do
    # shellcheck disable=SC2086
    ! "$room/script/build" $options >"$room/output" 2>&1 || { echo "FAILED build $options: exits with 0"; exit 1; }
    [ "$(cat "$room/build/marker")" = kept ] || { echo "FAILED build $options: deletes build"; exit 1; }
    rm -rf "$room/.build" "$room/output"
    [ "$(cd "$room" && find . | sort)" = "$before" ] || { echo "FAILED build $options: leaves files"; exit 1; }
    echo "ok   build $options keeps the old build"
done
