/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_DOCTOR_H
#define BEL_CLI_DOCTOR_H

/*
 * doctor - belfry doctor: checks a data directory that no server uses. Who can check it is handed
 * in, since this layer knows no stores.
 */

#include <stddef.h>
#include <stdint.h>

enum {
    CLI_FACTS_MAX = 12,
};

/* What was found. */
struct cli_diagnosis {
    char text[256]; /* what is wrong; ends in 0 */
    struct {
        const char *name;
        uint64_t number;
    } facts[CLI_FACTS_MAX];
    size_t facts_count;
};

/* Checks a folder. Returns 0 and the facts, or a BEL_E* and what is wrong. */
typedef int cli_check(const char *folder, struct cli_diagnosis *out);

int bel__cli_doctor(int argc, char **argv, cli_check *check);

#endif
