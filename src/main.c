/* SPDX-License-Identifier: MIT */

/* The program belfry: passes the verbs of other layers to the command line. */
#include "belfry/engine.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "core/why.h"
#include "engine/offline/checker.h"
#include "server/serve.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Checks an engine's data directory, for belfry doctor. */
static int check(const char *folder, struct cli_diagnosis *out)
{
    struct bel_engine_report report = {0};
    struct bel_engine_why why = {""};
    int err = bel_engine_check(folder, &report, &why);
    (void)bel__why_say(&out->why, err, "%s", why.text);
    if (err) return err;
    *out = (struct cli_diagnosis){.facts = {{"topics", report.topics},
                                            {"timers", report.timers},
                                            {"leases", report.leases},
                                            {"plans", report.plans},
                                            {"ended", report.ended},
                                            {"rows", report.rows},
                                            {"tree_rows", report.tree_rows},
                                            {"tree_bytes", report.tree_bytes}},
                                  .facts_count = 8};
    return 0;
}

static int doctor(int argc, char **argv)
{
    return bel__cli_doctor(argc, argv, check);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], BEL_CHECKER_VERB) == 0) return bel__checker_main(argc, argv);
    static const struct cli_verb others[] = {
        {"serve", bel__serve, "run a server"},
        {"doctor", doctor, "check a data directory that no server uses"},
        {NULL, NULL, NULL},
    };
    return bel__cli_run(argc, argv, others);
}
