#!/usr/bin/env bash
# Runs a small example in an empty folder and compares what it prints. Usage: small.sh NAME PROGRAM
set -u
name=$1 program=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

case $name in
durable) wanted='the tea is ready' ;;
threads) wanted="the phone will not ring
tea, on the worker's thread" ;;
wheel) wanted='40 ms  bread
80 ms  bell
80 ms  tea' ;;
*) wanted='no example has this name' ;;
esac

got=$("$program")
status=$?
[ $status -eq 0 ] && [ "$got" = "$wanted" ] && printf 'ok   %s\n' "$name" && exit 0
printf 'FAILED %s exits with %d and prints\n%s\nwanted\n%s\n' "$name" $status "$got" "$wanted" >&2
exit 1
