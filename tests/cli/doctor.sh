#!/usr/bin/env bash
# belfry doctor, on the data directory of a stopped server. Usage: doctor.sh PROGRAM
. "$(dirname "$0")/lib.sh"
serve doctor --data data
"$belfry" schedule mail hello --in 1h >/dev/null || fail schedule
"$belfry" schedule mail hello --every 1h --id plan >/dev/null || fail plan
exits a_folder_in_use_is_4 4 'in use' "$belfry" doctor data
kill "$server" && wait "$server"
json a_sound_folder 'j["sound"] and j["topics"] == 1 and j["timers"] == 1 and j["plans"] == 1' \
    "$belfry" doctor data --json
like a_sound_folder_in_lines 'topics	1
timers	1
*
sound	yes' "$belfry" doctor data
exits a_folder_that_is_not_there_is_3 3 'belfry: nowhere: no such directory' "$belfry" doctor nowhere
exits no_folder 2 'belfry doctor: missing FOLDER
usage:' "$belfry" doctor
exits two_folders 2 'belfry doctor: only one FOLDER can be checked; unexpected argument b
usage:' "$belfry" doctor a b
exits unknown_option 2 'belfry doctor: unknown option --bogus
usage:' "$belfry" doctor --bogus

# A server and the doctor have the same verdict of a tree whose file was deleted or emptied.
for what in missing empty; do
    rm -rf copy && cp -r data copy && rm copy/tree/data.mdb || fail copy
    [ $what = missing ] || : >copy/tree/data.mdb
    exits "doctor_if_the_tree_is_$what" 1 "tree/data.mdb is $what" "$belfry" doctor copy
    exits "serve_if_the_tree_is_$what" 1 "tree/data.mdb is $what" \
        "$belfry" serve --resp 127.0.0.1:0 --http none --data copy
    exits "serve_unchecked_if_the_tree_is_$what" 1 "tree/data.mdb is $what" \
        "$belfry" serve --resp 127.0.0.1:0 --http none --check-time 0ms --data copy
done

# All written bytes are checked, so any flipped byte is found.
python3 - <<'END' || fail 'no log to damage'
import glob, sys
for path in sorted(glob.glob("data/log*")):
    data = bytearray(open(path, "rb").read())
    at = data.find(b"hello")
    if at >= 0:
        data[at] ^= 1
        open(path, "wb").write(data)
        sys.exit(0)
sys.exit(1)
END
exits a_url_is_no_folder 2 'use --store URL' "$belfry" doctor redis://127.0.0.1
exits a_word_of_copy_is_not_printed 2 'a URL without an option' "$belfry" copy redis://u:secret@127.0.0.1 --to memory
exits damage_is_1 1 'data' "$belfry" doctor data
is damage_as_json False bash -c "'$belfry' doctor data --json | python3 -c 'import json, sys
print(json.load(sys.stdin)[\"sound\"])'"
