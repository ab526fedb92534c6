/* SPDX-License-Identifier: MIT */

#include "cli/examples.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *verb;
    const char *lines[2];
} examples[] = {
    {"serve", {"belfry serve --data /var/lib/belfry", "belfry serve --store memory --http none"}},
    {"copy",
     {"belfry copy --from embedded:/var/lib/belfry --to redis://10.0.0.7 --dry-run",
      "belfry copy --from embedded:/var/lib/belfry --to redis://10.0.0.7"}},
    {"doctor", {"belfry doctor ./belfry-data", "belfry doctor /var/lib/belfry --json"}},
    {"schedule",
     {"belfry schedule mail hello --in '5 minutes' --id welcome-7",
      "belfry schedule report daily --cron '0 9 * * 1-5' --tz Europe/Berlin"}},
    {"cancel", {"belfry cancel mail welcome-7", "belfry cancel mail a b c"}},
    {"reschedule",
     {"belfry reschedule mail welcome-7 --in 1h",
      "belfry reschedule mail welcome-7 --at 'tomorrow 09:00' --tz Europe/Berlin"}},
    {"get", {"belfry get mail welcome-7", "belfry get mail welcome-7 --json"}},
    {"list", {"belfry list mail --state dead", "belfry list report --state plan --json"}},
    {"explain", {"belfry explain mail welcome-7", "belfry explain report daily --json"}},
    {"claim",
     {"belfry claim mail --wait 20s --lease 1m", "belfry claim mail report --count 10 --json"}},
    {"ack", {"belfry ack \"$token\"", "belfry ack \"$token\" --result sent"}},
    {"fail",
     {"belfry fail \"$token\" --reason 'mailbox is full'",
      "belfry fail \"$token\" --dead --reason 'no such address'"}},
    {"release", {"belfry release \"$token\"", "belfry release \"$token\" --in 30s"}},
    {"extend", {"belfry extend \"$token\"", "belfry extend \"$token\" 5m"}},
    {"topics", {"belfry topics", "belfry topics mail --json"}},
    {"configure",
     {"belfry configure mail lease=1m concurrency=10",
      "belfry configure mail 'retry=exp(10s,2,1h) max(5)'"}},
    {"pause", {"belfry pause mail", "belfry pause mail --create"}},
    {"resume", {"belfry resume mail", "belfry resume mail --json"}},
    {"revive", {"belfry revive mail welcome-7", "belfry revive mail '*'"}},
    {"purge", {"belfry purge mail", "belfry purge mail --state dead"}},
    {"agenda",
     {"belfry agenda --next 20",
      "belfry agenda --topic report --to '2030-01-01 00:00' --tz UTC --step 365d"}},
    {"limit",
     {"belfry limit api --rate 10/1s --burst 20 --concurrency 5", "belfry limit api --clear"}},
    {"clock", {"belfry clock", "belfry clock --advance 1h"}},
    {"backup",
     {"belfry backup /srv/backup/monday", "belfry backup /srv/backup/monday --timeout 1h"}},
    {"job", {"belfry job submit nightly.json", "belfry job watch nightly"}},
    {"work",
     {"belfry work mail -j 10 -- ./send-mail", "belfry work cron --lease 10m --json -- sh"}},
    {"export", {"belfry export mail >mail.jsonl", "belfry export mail --state dead"}},
    {"import",
     {"belfry import mail.jsonl --conflict update",
      "belfry import --crontab crontab.txt --topic cron --tz Europe/Berlin"}},
    {"top", {"belfry top", "belfry top --interval 5s --json"}},
    {"bench", {"belfry bench --timers 1000", "belfry bench -c 8 --bytes 1000 --json"}},
    {"ping", {"belfry ping", "belfry ping --wait 10s"}},
    {"info", {"belfry info", "belfry info --json"}},
    {"next",
     {"belfry next '0 9 * * 1-5' --tz Europe/Berlin -n 3",
      "belfry next 'FREQ=MONTHLY;BYDAY=-1FR' --from '2026-06-01 09:00' --tz Asia/Tokyo"}},
    {"completion", {"source <(belfry completion bash)", "belfry completion zsh >~/.zfunc/_belfry"}},
    {"version", {"belfry version", "belfry version --json"}},
};

void bel__examples_print(const char *verb)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        if (strcmp(examples[i].verb, verb) != 0) continue;
        printf("\nexamples:\n    %s\n    %s\n", examples[i].lines[0], examples[i].lines[1]);
    }
}
