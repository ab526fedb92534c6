/* SPDX-License-Identifier: MIT */

/*
 * The kernel says of a script with a missing interpreter only "No such file", and of one without a
 * #! line "Exec format error". So the first line of the file is read here:
 *
 *     #!/bin/sh^M          a line end of Windows: the interpreter would be "/bin/sh\r"
 *     #!/no/such/program   the interpreter is not there
 *     text without #!      a shell would run it; exec does not
 */
#include "cli/program.h"

#include "belfry/error.h"
#include "cli/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEAD_BYTES = 256, /* of which the kernel reads the #! line */
};

static bool is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool bel__program_find(const char *program, char path[CLI_PROGRAM_BYTES])
{
    if (strchr(program, '/') != NULL) {
        (void)snprintf(path, CLI_PROGRAM_BYTES, "%s", program);
        return access(program, X_OK) == 0;
    }
    const char *at = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): nothing calls setenv */
    int problem = ENOENT;
    bool is_last = false;
    if (at == NULL) at = "/bin:/usr/bin"; /* the default of the C library */
    while (!is_last) {
        size_t bytes = strcspn(at, ":"); /* 0: the current directory */
        int length = snprintf(path, CLI_PROGRAM_BYTES, "%.*s/%s", bytes > 0 ? (int)bytes : 1,
                              bytes > 0 ? at : ".", program);
        bool fits = length > 0 && length < CLI_PROGRAM_BYTES;
        bool is_found = fits && access(path, X_OK) == 0;
        if (is_found && !is_directory(path)) return true;
        if (is_found || (fits && errno == EACCES)) problem = EACCES;
        is_last = at[bytes] == '\0';
        at += bytes + 1;
    }
    errno = problem;
    return false;
}

static bool refuse(struct bel_why *why, const char *program, const char *problem)
{
    (void)bel__why_say(why, BEL_EINVAL, "cannot run %s: %s", program, problem);
    return false;
}

/* Checks the interpreter in a #! line, which ends with a 0. */
static bool check_interpreter(char *line, const char *program, struct bel_why *why)
{
    size_t bytes = strlen(line);
    char *name = line + 2 + strspn(line + 2, " \t");
    if (bytes > 0 && line[bytes - 1] == '\r') {
        line[bytes - 1] = '\0';
        (void)bel__why_say(why, BEL_EINVAL,
                           "cannot run %s: bad interpreter %s^M: the file has the line ends of "
                           "Windows; remove them: sed -i 's/\\r$//' %s",
                           program, name, program);
        return false;
    }
    name[strcspn(name, " \t")] = '\0';
    if (access(name, X_OK) == 0) return true;
    (void)bel__why_say(why, BEL_EINVAL, "cannot run %s: bad interpreter %s: %s", program, name,
                       bel__cli_problem(errno));
    return false;
}

static bool check_head(char *head, size_t bytes, const char *program, struct bel_why *why)
{
    head[bytes] = '\0';
    if (bytes > 2 && memcmp(head, "#!", 2) == 0) {
        size_t length = strcspn(head, "\n");
        if (length == bytes) return true; /* longer than the kernel reads: it decides */
        head[length] = '\0';
        return check_interpreter(head, program, why);
    }
    bool is_text = bytes > 0 && memchr(head, '\0', bytes) == NULL;
    if (!is_text && bytes > 0) return true; /* ELF, or a format that the kernel knows */
    return refuse(why, program,
                  bytes == 0 ? "the file is empty"
                             : "the file has no #! line; begin it with #!/bin/sh, for example");
}

bool bel__program_check(const char *program, struct bel_why *why)
{
    char path[CLI_PROGRAM_BYTES], head[HEAD_BYTES + 1];
    if (!bel__program_find(program, path)) return refuse(why, program, bel__cli_problem(errno));
    if (is_directory(path)) return refuse(why, program, "it is a directory");
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return true; /* executable, but not readable */
    ssize_t got = read(file, head, HEAD_BYTES);
    (void)close(file);
    return got < 0 || check_head(head, (size_t)got, program, why);
}

bool bel__program_is_broken(int problem)
{
    static const int broken[] = {ENOENT, ENOEXEC, EACCES,  EPERM,  EISDIR,
                                 ELOOP,  ENOTDIR, ELIBBAD, EINVAL, ENAMETOOLONG};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        if (problem == broken[i]) return true;
    }
    return false;
}
