/* SPDX-License-Identifier: MIT */

/* belfry doctor: checks a data directory and prints its counts. Changes nothing. */
#include "cli/doctor.h"

#include "belfry/error.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/store.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    STORE_WAIT_MS = 1000, /* for a store that cannot be reached */
};

static const char usage[] =
    "usage: belfry doctor FOLDER [--json]\n"
    "       belfry doctor --store URL [--json]\n"
    "\n"
    "Checks a data directory that no server uses: all checksums, all references and all\n"
    "counts. Or examines the servers of a store on Redis. Changes nothing.\n"
    "\n"
    "    FOLDER                      the folder of belfry serve --data\n"
    "    --store URL                 redis://host:port; prints each finding and what to do\n"
    "                                (default $BELFRY_STORE, if that is a URL)\n"
    "    --store-namespace NAME      prefix of the keys in Redis (default belfry)\n"
    "    --store-password-file FILE  has the password of the URL\n"
    "    --json                      print {\"sound\", \"problem\", and the counts}, or\n"
    "                                {\"findings\", \"usable\", and what is known}\n";

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

/* --- a store on Redis --- */

static void print_text(const char *name, const char *value, bool is_json, bool is_first)
{
    if (!is_json) {
        printf("%s\t%s\n", name, value);
        return;
    }
    printf("%s\"%s\": ", is_first ? "" : ", ", name);
    bel__cli_print_json(value);
}

/* Prints the facts, each finding with what to do, and whether the store can be used. */
static bool print_examination(const struct cli_examination *found, bool is_json)
{
    bool is_usable = true;
    if (is_json) printf("{\"findings\": [");
    for (size_t i = 0; i < found->findings_count; i++) {
        const char *level = found->findings[i].is_refusal ? "refused" : "warning";
        if (found->findings[i].is_refusal) is_usable = false;
        if (!is_json) {
            printf("%s\t%s\t%s; %s\n", level, found->findings[i].about, found->findings[i].what,
                   found->findings[i].advice);
            continue;
        }
        printf("%s{", i > 0 ? ", " : "");
        print_text("level", level, true, true);
        print_text("about", found->findings[i].about, true, false);
        print_text("what", found->findings[i].what, true, false);
        print_text("do", found->findings[i].advice, true, false);
        printf("}");
    }
    if (is_json) printf("]");
    for (size_t i = 0; i < found->facts_count; i++) {
        if (is_json && found->facts[i].is_number) {
            printf(", \"%s\": %s", found->facts[i].name, found->facts[i].value);
        } else {
            print_text(found->facts[i].name, found->facts[i].value, is_json, false);
        }
    }
    if (is_json) {
        printf(", \"usable\": %s}\n", is_usable ? "true" : "false");
    } else {
        printf("usable\t%s\n", is_usable ? "yes" : "no");
    }
    return is_usable;
}

static int examine(const struct cli_store *store, bool is_json)
{
    struct cli_examination found;
    struct bel_why why = {0};
    int err = bel__cli_stores()->examine(store, STORE_WAIT_MS, &found, &why);
    if (err) return bel__cli_store_failed(store, err, &why);
    return print_examination(&found, is_json) ? CLI_OK : CLI_FAILED;
}

/* --- the verb --- */

static int complain(const char *what, const char *argument)
{
    fprintf(stderr, "belfry doctor: %s%s\n", what, argument);
    fputs(usage, stderr);
    return CLI_USAGE;
}

/* What the arguments ask for. */
struct asked {
    const char *folder;
    struct cli_store store;
    bool is_json;
};

/* Parses "--name value" or "--name=value" of the store. Returns whether it is one, and sets `*used`
 * to the number of arguments; 0: the value is missing. */
static bool take_store(struct asked *asked, char **argv, int *used)
{
    const struct {
        const char *name, **value;
    } options[] = {{"--store", &asked->store.url},
                   {"--store-namespace", &asked->store.name_space},
                   {"--store-password-file", &asked->store.password_file}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        size_t bytes = strlen(options[i].name);
        if (strncmp(argv[0], options[i].name, bytes) != 0) continue;
        if (argv[0][bytes] != '\0' && argv[0][bytes] != '=') continue;
        bool is_one = argv[0][bytes] == '=';
        *options[i].value = is_one ? argv[0] + bytes + 1 : argv[1];
        *used = is_one ? 1 : argv[1] != NULL ? 2 : 0;
        return true;
    }
    return false;
}

/* Returns whether a data directory, or its first file, must not be read by this user. */
static bool is_denied(const char *folder)
{
    char path[PATH_MAX];
    if (access(folder, R_OK | X_OK) != 0) return errno == EACCES;
    (void)snprintf(path, sizeof path, "%s/superblock", folder);
    return access(path, R_OK) != 0 && errno == EACCES;
}

static int check_folder(const char *folder, bool is_json, cli_check *check)
{
    struct cli_diagnosis found = {.facts_count = 0};
    int err = check(folder, &found);
    if (err != 0 && found.why.text[0] == '\0') {
        (void)bel__why_say(&found.why, err, "%s", bel_error_text(err));
    }
    if (err != 0) fprintf(stderr, "belfry: %s: %s\n", folder, found.why.text);
    print_findings(&found, err, is_json);
    return err != 0 && is_denied(folder) ? CLI_NOT_ALLOWED : exit_of(err);
}

int bel__cli_doctor(int argc, char **argv, cli_check *check)
{
    struct asked asked = {.folder = NULL};
    int used;
    for (int i = 1; i < argc; i += used) {
        used = 1;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (strcmp(argv[i], "--json") == 0) {
            asked.is_json = true;
        } else if (take_store(&asked, argv + i, &used)) {
            if (used == 0) return complain("option needs a value: ", argv[i]);
        } else if (argv[i][0] == '-') {
            return complain("unknown option ", argv[i]);
        } else if (asked.folder != NULL) {
            return complain("only one FOLDER can be checked; unexpected argument ", argv[i]);
        } else {
            asked.folder = argv[i];
        }
    }
    if (asked.folder == NULL) bel__cli_store_default(&asked.store);
    if (asked.store.url != NULL && asked.folder != NULL) {
        return complain("FOLDER and --store exclude each other", "");
    }
    if (asked.store.url != NULL) return examine(&asked.store, asked.is_json);
    if (asked.folder == NULL) return complain("missing FOLDER", "");
    if (strstr(asked.folder, "://") != NULL) {
        return complain("a URL is not a FOLDER: use --store URL", "");
    }
    return check_folder(asked.folder, asked.is_json, check);
}
