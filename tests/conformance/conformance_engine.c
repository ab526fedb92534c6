/* SPDX-License-Identifier: MIT */

/*
 * The suite against the embedded engine: in memory; or with --directory, in a new directory for
 * each case, where the engine can be closed and opened again. Directories are slow, so only the
 * cases that need one run there, unless BEL_TEST_LONG is set.
 */
#include "belfry/engine.h"
#include "conformance.h"

#include <string.h>
#include <unistd.h>

static char path[64]; /* of the directory; empty: in memory */

static void open_engine(struct subject *s)
{
    struct bel_engine *engine;
    struct bel_engine_why why;
    struct bel_engine_options options = {.now = s->now, .zones = s->zones};
    if (path[0] != 0) options.folder = path;
    int err = bel_engine_open(&options, &engine, &why);
    if (err) fprintf(stderr, "%s\n", why.text);
    CHECK(err == 0);
    s->context = engine;
    s->backend = bel_engine_backend(engine);
}

static void close_engine(struct subject *s)
{
    bel_engine_close(s->context);
}

static void open_directory(struct subject *s)
{
    const char *temporary = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
    (void)snprintf(path, sizeof path, "%s/belfry-XXXXXX", temporary ? temporary : "/tmp");
    CHECK(mkdtemp(path) != NULL);
    open_engine(s);
}

static void close_directory(struct subject *s)
{
    char command[128];
    close_engine(s);
    (void)snprintf(command, sizeof command, "rm -r '%s'", path);
    CHECK(system(command) == 0); /* NOLINT(concurrency-mt-unsafe) */
}

static void reopen_directory(struct subject *s)
{
    close_engine(s);
    open_engine(s);
}

static void press_engine(struct subject *s, const struct bel_pressure_sample *sample)
{
    (void)bel_engine_pressure(s->context, sample);
}

int main(int argc, char **argv)
{
    static const struct kind memory = {.name = "the engine in memory",
                                       .can = CAN_STEP_WALL | CAN_GROUP | CAN_PRESS | CAN_LIMIT |
                                              CAN_JOBS,
                                       .open = open_engine,
                                       .close = close_engine,
                                       .press = press_engine};
    static const struct kind directory = {.name = "the engine in a directory",
                                          .can = CAN_ALL,
                                          .is_slow = true,
                                          .open = open_directory,
                                          .close = close_directory,
                                          .reopen = reopen_directory,
                                          .press = press_engine};
    bool is_long = getenv("BEL_TEST_LONG") != NULL; /* NOLINT(concurrency-mt-unsafe) */
    if (argc <= 1 || strcmp(argv[1], "--directory") != 0) {
        return conformance_run(&memory, argc > 1 ? argv[1] : NULL);
    }
    const char *only = argc > 2 ? argv[2] : NULL;
    return conformance_run(&directory, only != NULL || is_long ? only : "reopening");
}
