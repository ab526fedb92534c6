#!/usr/bin/env bash
# belfry completion, as bash uses it. Usage: completion.sh PROGRAM
. "$(dirname "$0")/lib.sh"
serve completion --store memory
"$belfry" schedule mail x --in 1h >/dev/null
"$belfry" schedule market x --in 1h >/dev/null
"$belfry" schedule other x --in 1h >/dev/null
mkdir bin && ln -s "$belfry" bin/belfry
export PATH="$room/bin:$PATH"
"$belfry" completion bash >script || fail 'completion bash'
. ./script || fail 'bash does not read it'
complete -p belfry >/dev/null || fail 'bash does not know of it'

offered() { # WORD ...: what is offered for the last of the words, in order
    COMP_WORDS=(belfry "$@") COMP_CWORD=$#
    _belfry
    printf '%s\n' "${COMPREPLY[@]}" | sort | xargs
}

is verbs_are_completed 'schedule' offered sch
is verbs_that_begin_alike 'release reschedule resume revive' offered re
is no_verb_begins_so '' offered xyz
is options_are_completed '--conflict --correlation --count --cron' offered schedule mail x --c
is an_option_is_in_small_letters '--in' offered reschedule mail a --i
is options_of_all_verbs '--server --state --store --store-namespace --store-password-file' offered list mail --s
is words_of_an_option 'delay rate' offered schedule mail x --mode ''
is words_that_begin_so 'reject replace' offered schedule mail x --conflict re
is states 'scheduled skipped' offered list mail --state s
is plans_are_a_state 'plan' offered list mail --state p
is a_value_that_nobody_knows '' offered schedule mail x --id ''
is a_flag_has_no_value '--dead' offered fail token --de
is topics_are_asked_for 'mail market' offered schedule ma
is topics_of_a_worker 'mail market other' offered work ''
is a_topic_behind_a_topic 'other' offered claim mail o
"$belfry" schedule mail x --id welcome --in 1h >/dev/null
"$belfry" schedule mail x --id wedding --every 1h >/dev/null
"$belfry" schedule market x --id west --in 1h >/dev/null
is a_topic_before_an_id 'mail market' offered get ma
is ids_of_the_topic 'wedding welcome' offered get mail we
is ids_of_another_topic 'west' offered cancel market we
is an_id_behind_an_id 'wedding welcome' offered cancel mail some we
is no_ids_of_a_worker '' offered work mail we
is options_after_an_id '--in' offered reschedule mail welcome --i
touch path1 path2
is paths 'path1 path2' offered schedule mail --file path
is paths_of_a_folder 'path1 path2' offered doctor path
is a_key_file 'path1 path2' offered topics --key-file path
is subcommands_of_job 'pause' offered job pa
is a_file_of_a_job 'path1 path2' offered job submit path
echo '{"id": "nightly", "tasks": [{"id": "a", "topic": "other"}]}' | "$belfry" job submit - >/dev/null
is ids_of_jobs 'nightly' offered job watch ni
"$belfry" limit api/search --concurrency 2 >/dev/null
"$belfry" limit mailgun --rate 5/s >/dev/null
is resources 'api/search mailgun' offered limit ''
is resources_that_begin_so 'mailgun' offered limit ma
is no_second_resource '' offered limit api ma
is a_topic_before_a_setting 'mail market' offered configure ma
is settings_of_a_topic 'retention= retention_dead= retry=' offered configure mail re
is a_setting_behind_a_setting 'lease=' offered configure mail depth=5 le
is all_subcommands_of_job 'cancel explain get list pause resume submit watch' offered job ''
is ids_of_jobs_to_cancel 'nightly' offered job cancel ''
is states_of_jobs 'paused' offered job list --state pa
is options_of_bench '--bytes' offered bench --b
is options_of_next '--fold --from' offered next --f
is flags_of_serve '--max-clients --max-job --max-payload' offered serve --max
is flags_of_jobs '--job-depth --job-edges --job-retention --job-tasks' offered serve --job
is words_of_serve 'embedded memory redis://' offered serve --store ''
is verbs_behind_help 'schedule' offered help sch
is shells 'bash fish zsh' offered completion ''
BELFRY_SERVER=127.0.0.1:1 is without_a_server_there_are_no_topics '' offered schedule ma

# The options of the help text and of the completion are the same.
for verb in $("$belfry" help | sed -n 's/^    \([a-z]*\) .*/\1/p'); do
    [ "$verb" != help ] || continue
    "$belfry" help "$verb" | grep -oE '^ +(-[a-z], )?--[a-z-]+' | sed 's/.*--/--/' | sort -u >wanted
    COMP_WORDS=(belfry "$verb" --) COMP_CWORD=2
    _belfry
    printf '%s\n' "${COMPREPLY[@]}" | grep . | sort -u >got
    while read -r option; do
        grep -qxF -- "$option" got || fail "$verb: $option is not offered"
    done <wanted
    while read -r option; do
        [ "$option" = --key-file ] || [ "$verb$option" = work--jobs ] ||
            [ "$option" = --store-password-file ] ||
            [ "$verb$option" = next--count ] || [ "$verb" = version ] ||
            grep -qxF -- "$option" wanted || fail "$verb: $option is not in its help"
    done <got
done
echo 'ok   every_option_is_offered_and_no_other'

# The scripts of other shells are inspected, and run if the shell is installed.
exits no_shell 2 'belfry completion: missing the name of a shell
usage:' "$belfry" completion
exits unknown_shell 2 "belfry completion: unknown shell 'tcsh'
usage:" "$belfry" completion tcsh
exits two_shells 2 'belfry completion: expected one shell
usage:' "$belfry" completion bash zsh
like zsh_has_descriptions '*#compdef belfry*--conflict*replace keep*' "$belfry" completion zsh
like zsh_offers_ids "*1:topic:_belfry_topics' '[*]:id:_belfry_ids*" "$belfry" completion zsh
like fish_offers_ids '*seen_subcommand_from get; and test*-ge 3*belfry list*' "$belfry" completion fish
like fish_has_descriptions '*complete -c belfry*-l conflict*replace keep*' "$belfry" completion fish
"$belfry" completion zsh >script.zsh
"$belfry" completion fish >script.fish
! command -v zsh >/dev/null || zsh -n script.zsh || fail 'zsh does not read it'
! command -v fish >/dev/null || fish -n script.fish || fail 'fish does not read it'
is quotes_are_closed_for_zsh yes bash -c "bash -n <(sed -n \"/_arguments/,/;;/p\" script.zsh |
    sed 's/;;//; s/^    [a-z]*)$//') && echo yes"
exits a_shell_that_is_none 2 'bash|zsh|fish' "$belfry" completion tcsh
exits no_shell 2 'bash|zsh|fish' "$belfry" completion
