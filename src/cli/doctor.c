/* SPDX-License-Identifier: MIT */

/* belfry doctor: checks a data directory and prints its counts. Changes nothing. */
#include "cli/doctor.h"

#include "belfry/error.h"
#include "cli/cli.h"
#include "cli/print.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char usage[] = "usage: belfry doctor FOLDER [--json]\n"
                            "\n"
                            "Checks a data directory that no server uses: all checksums, all\n"
                            "references and all counts. Changes nothing.\n"
                            "\n"
                            "    FOLDER    the folder of belfry serve --data\n"
                            "    --json    print {\"sound\", \"problem\", and the counts}\n";

static int exit_of(int err)
{
    switch (err) {
    case 0:
        return CLI_OK;
    case BEL_ENOTFOUND:
        return CLI_NOT_FOUND;
    case BEL_EBUSY:
        return CLI_CONFLICT;
    default:
        return CLI_FAILED;
    }
}

static void print_findings(const struct cli_diagnosis *found, int err, bool is_json)
{
    if (is_json) {
        printf("{\"sound\": %s", err == 0 ? "true" : "false");
        if (err != 0) {
            printf(", \"problem\": ");
            bel__cli_print_json(found->why.text);
        }
    }
    for (size_t i = 0; i < found->facts_count; i++) {
        printf(is_json ? ", \"%s\": %" PRIu64 : "%s\t%" PRIu64 "\n", found->facts[i].name,
               found->facts[i].number);
    }
    if (is_json) {
        printf("}\n");
    } else if (err == 0) {
        printf("sound\tyes\n");
    }
}

static int complain(const char *what, const char *argument)
{
    fprintf(stderr, "belfry doctor: %s%s\n", what, argument);
    fputs(usage, stderr);
    return CLI_USAGE;
}

int bel__cli_doctor(int argc, char **argv, cli_check *check)
{
    struct cli_diagnosis found = {.facts_count = 0};
    const char *folder = NULL;
    bool is_json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (strcmp(argv[i], "--json") == 0) {
            is_json = true;
        } else if (argv[i][0] == '-') {
            return complain("unknown option ", argv[i]);
        } else if (folder != NULL) {
            return complain("only one FOLDER can be checked; unexpected argument ", argv[i]);
        } else {
            folder = argv[i];
        }
    }
    if (folder == NULL) return complain("missing FOLDER", "");
    int err = check(folder, &found);
    if (err != 0 && found.why.text[0] == '\0') {
        (void)bel__why_say(&found.why, err, "%s", bel_error_text(err));
    }
    if (err != 0) fprintf(stderr, "belfry: %s: %s\n", folder, found.why.text);
    print_findings(&found, err, is_json);
    return exit_of(err);
}
