#!/usr/bin/env bash
# belfry next. Usage: next.sh PROGRAM
set -u
belfry=$1

fail() {
    printf 'FAILED %s\n' "$1" >&2
    exit 1
}

# is NAME WANTED COMMAND ...: checks the standard output of a command.
is() {
    local name=$1 wanted=$2 got
    shift 2
    got=$("$@" 2>/dev/null)
    [ "$got" = "$wanted" ] || fail "$name: got
$got
wanted
$wanted"
    printf 'ok   %s\n' "$name"
}

# refuses NAME STATUS WANTED COMMAND ...: checks the exit status, and a part of standard error.
refuses() {
    local name=$1 status=$2 wanted=$3 got
    shift 3
    got=$("$@" 2>&1 >/dev/null)
    [ $? -eq "$status" ] || fail "$name: exits with another status"
    case $got in *"$wanted"*) ;; *) fail "$name: got $got" ;; esac
    printf 'ok   %s\n' "$name"
}

from=(--from 2026-03-27T00:00:00Z)
is a_rule_in_a_zone_with_a_note 'At 02:30, Europe/Berlin time.
  2026-03-27T01:30:00Z  2026-03-27T02:30:00+01:00[Europe/Berlin]
  2026-03-28T01:30:00Z  2026-03-28T02:30:00+01:00[Europe/Berlin]
  2026-03-29T01:00:00Z  2026-03-29T03:00:00+02:00[Europe/Berlin]
note: 2026-03-29: 02:30 does not exist, runs at 03:00' \
    "$belfry" next '30 2 * * *' --tz Europe/Berlin "${from[@]}" -n 3
is as_json '{"rule": "30 2 * * *", "sentence": "At 02:30, Europe/Berlin time.", "times": ["2026-03-27T01:30:00Z", "2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"], "notes": ["2026-03-29: 02:30 does not exist, does not run"]}' \
    "$belfry" next '30 2 * * *' --tz Europe/Berlin "${from[@]}" -n 3 --gap skip --json
is json_quotes_what_it_must '{"rule": "0 0 * * \t0", "sentence": "At 00:00 on Sunday, UTC.", "times": [], "notes": []}' \
    sh -c "$belfry next '0 0 * * 	0' -n 0 --json | sed 's/\\\\u0009/\\\\t/'"
is an_interval 'Every 1h30m.
  2026-03-27T01:30:00Z
  2026-03-27T03:00:00Z' "$belfry" next 90m "${from[@]}" -n 2
is a_step_that_does_not_go_into_an_hour \
    'At every 7th minute from 0 to 56 of every hour, UTC.
  2026-01-01T00:56:00Z
  2026-01-01T01:00:00Z
  2026-01-01T01:07:00Z' "$belfry" next '*/7 * * * *' --from 2026-01-01T00:50:00Z -n 3
is every_interval 'Every 5m.
  2026-03-27T00:05:00Z' "$belfry" next '@every 5m' "${from[@]}" -n 1
is from_a_local_time 'At 00:00, UTC.
  2026-06-02T00:00:00Z' "$belfry" next @daily --from '2026-06-01T09:00[Asia/Bangkok]' -n 1
is a_fold_both_times 'At 02:30, Europe/Berlin time.
  2026-10-25T00:30:00Z  2026-10-25T02:30:00+02:00[Europe/Berlin]
  2026-10-25T01:30:00Z  2026-10-25T02:30:00+01:00[Europe/Berlin]
note: 2026-10-25: 02:30 occurs twice, runs both times' \
    "$belfry" next '30 2 * * *' --tz Europe/Berlin --from 2026-10-24T12:00:00Z -n 2 --fold both

if "$belfry" next FREQ=DAILY >/dev/null 2>&1; then
    is a_recurrence_rule 'Every week on Monday at 09:00, Europe/Berlin time.
  2026-03-30T07:00:00Z  2026-03-30T09:00:00+02:00[Europe/Berlin]
note: what the rule leaves out, such as the second, comes from --at, or from when the timer is scheduled' \
        "$belfry" next 'FREQ=WEEKLY;BYDAY=MO;BYHOUR=9' --tz Europe/Berlin "${from[@]}" -n 1
else
    refuses a_recurrence_rule_without_libical 2 'not a rule' "$belfry" next FREQ=DAILY
fi

refuses a_bad_rule_with_a_mark_below_it 2 'expected an hour from 0 to 23
    0 25 * * *
      ^' "$belfry" next '0 25 * * *'
refuses a_bad_time 2 'is not a time' "$belfry" next @daily --from someday
is a_zone_before_a_rule 'At 09:00, Asia/Tokyo time.' bash -c \
    "'$belfry' next 'TZ=Asia/Tokyo 0 9 * * *' -n 0"
is what_it_ran_last 'At 09:00 on Monday to Friday, Europe/Berlin time.
  2026-06-01T07:00:00Z  2026-06-01T09:00:00+02:00[Europe/Berlin]
  2026-05-29T07:00:00Z  2026-05-29T09:00:00+02:00[Europe/Berlin]' "$belfry" next --back \
    '0 9 * * 1-5' --tz Europe/Berlin --from 2026-06-01T07:00:00Z -n 2
is a_leap_day_ago 'At 00:00 on day 29 of the month in February, UTC.
  2024-02-29T00:00:00Z' "$belfry" next --back '0 0 29 2 *' --from 2026-06-01T07:00:00Z -n 1
is dense_times_ago '2026-06-01T07:00:00Z 2026-06-01T06:59:59Z' bash -c "'$belfry' next --back \
    '* * * * * *' --from 2026-06-01T07:00:00Z -n 5000 | sed 1d | head -n 2 | xargs"
is as_many_as_were_asked_for 5001 bash -c "'$belfry' next --back '* * * * * *' -n 5000 | wc -l"
refuses an_interval_has_no_past 2 'a recurrence rule with DTSTART' "$belfry" next --back 5m
if "$belfry" next FREQ=DAILY >/dev/null 2>&1; then
is a_rule_with_its_start 'Every week on Thursday at 09:00, Asia/Tokyo time.
  2026-05-28T00:00:00Z  2026-05-28T09:00:00+09:00[Asia/Tokyo]' "$belfry" next --back \
    'DTSTART;TZID=Asia/Tokyo:20260101T090000 FREQ=WEEKLY' --from 2026-06-01T07:00:00Z -n 1
fi
if "$belfry" next 'FREQ=DAILY' >/dev/null 2>&1; then
    is a_recurrence_rule_has_notes 'note: 2026-03-29: 02:30 does not exist, runs at 03:00' \
        bash -c "'$belfry' next 'FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0' --tz Europe/Berlin \
            --from 2026-03-28T00:00:00Z -n 2 | grep ^note"
fi
is a_rule_with_a_hash_has_a_note 'note: H depends on the id of the timer: a timer has other times than these' \
    bash -c "'$belfry' next 'H 9 * * *' | grep ^note"
is a_whole_recurrence_rule_has_no_note 0 bash -c \
    "'$belfry' next 'FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0' 2>/dev/null | grep -c ^note || true"
is a_thursday_has_no_note 0 bash -c "'$belfry' next '0 9 * * THU' | grep -c ^note || true"
is a_rule_of_quartz_has_a_note 'note: numbers of weekdays are those of cron, 1 is Monday; in Quartz 1 is Sunday: write names, such as MON-FRI' \
    bash -c "'$belfry' next '0 0 9 ? * 2-6' | grep ^note"
is also_with_years 1 bash -c "'$belfry' next '0 0 9 ? * 6#3 2030' | grep -c ^note"
is names_of_weekdays_have_no_note 0 bash -c "'$belfry' next '0 0 9 ? * MON#2' | grep -c ^note || true"
is numbers_without_a_question_mark_have_none 0 bash -c "'$belfry' next '0 9 * * 2-6' | grep -c ^note || true"
is the_note_as_json 1 bash -c "'$belfry' next '0 0 9 ? * 2-6' --json | grep -c Quartz"
is a_step_beyond_its_field_has_a_note 1 bash -c "'$belfry' next '*/90 * * * *' | grep -c '^note: a step'"
is a_step_within_its_field_has_none 0 bash -c "'$belfry' next '*/59 */23 * * *' | grep -c ^note || true"
refuses a_number_as_a_rule 2 'expected a unit, as in 5m or 300s' "$belfry" next 300
refuses seconds_in_from 2 'looks like seconds' "$belfry" next @daily --from 1798761600
is milliseconds_in_from '  2027-01-02T00:00:00Z' bash -c "'$belfry' next @daily --from 1798761600000 -n 1 | sed 1d"
refuses an_abbreviation_of_a_zone 2 'PST is not a time zone name; give that of a place, for example America/Los_Angeles' \
    "$belfry" next @daily --tz PST
refuses an_abbreviation_with_a_similar_zone 2 'Europe/Moscow' "$belfry" next @daily --tz MSK
refuses an_offset 2 'ahead of UTC all year Etc/GMT-1, which has the opposite sign' "$belfry" next @daily --tz GMT+1
refuses an_offset_to_the_west 2 'behind UTC all year Etc/GMT+5' "$belfry" next @daily --tz UTC-05:00
refuses an_offset_with_minutes 2 '+05:30 is not a time zone name; give that of a place' "$belfry" next @daily --tz +05:30
refuses two_zones 2 'begins with one' "$belfry" next 'CRON_TZ=UTC 0 9 * * *' --tz UTC
refuses a_zone_in_small_letters 2 "did you mean 'Europe/Berlin'" "$belfry" next @daily --tz europe/berlin
refuses a_city 2 "did you mean 'Europe/Berlin'" "$belfry" next @daily --tz Berlin
refuses a_sentence 2 "type belfry next '@every 5m'" "$belfry" next 'every 5 minutes'
refuses an_every_in_words 2 "type belfry next '@every 5m'" "$belfry" next '@every 5 minutes'
refuses another_sentence 2 'five fields, e.g. */5 * * * *' "$belfry" next 'each monday'
refuses a_local_time_without_a_zone 2 'give its zone with --tz' "$belfry" next @daily --from 2026-06-01T09:00:00
refuses a_zone_that_does_not_exist 2 'expected the name of a time zone' "$belfry" next @daily --tz Nowhere/Atall
refuses a_zone_that_is_a_path 2 'the name of a time zone' "$belfry" next @daily --tz ../../etc/passwd
refuses a_bad_number 2 '-n x' "$belfry" next @daily -n x
refuses a_number_too_large 2 '-n 99999' "$belfry" next @daily -n 99999
refuses a_bad_policy 2 '--gap maybe' "$belfry" next @daily --gap maybe
refuses zeros_are_no_interval 2 'a day from 1 to 31' "$belfry" next '0 0 0 0 0'
refuses nor_are_two 2 'five fields' "$belfry" next '0 0'
refuses an_option_for_the_rule 2 "belfry next: unknown option --cron: the rule is a word" "$belfry" next --cron '0 9 * * 1'
refuses an_unknown_option_of_next 2 'belfry next: unknown option --zzz' "$belfry" next @daily --zzz
refuses an_option_of_next_without_its_value 2 'belfry next: option needs a value: --tz' "$belfry" next @daily --tz
refuses no_rule 2 'usage:' "$belfry" next
refuses two_rules 2 'quote the rule' "$belfry" next 0 9 1
refuses an_unknown_verb 2 "unknown verb 'nxt'" "$belfry" nxt
is help_fits_a_screen yes sh -c "[ \$($belfry next --help | wc -l) -lt 24 ] && echo yes"
is the_version "belfry $2" "$belfry" version
