/* SPDX-License-Identifier: MIT */

/* A data directory has one folder in it: the tree, or the temporary one of a new tree. */
#include "scene.h"

#include "belfry/engine.h"

#include "../check.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *root(void)
{
    const char *chosen = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
    return chosen != NULL && strlen(chosen) < SCENE_PATH_BYTES / 2 ? chosen : "/tmp";
}

void scene_make(char out[SCENE_PATH_BYTES])
{
    (void)snprintf(out, SCENE_PATH_BYTES, "%s/belfry-faults-XXXXXX", root());
    CHECK(mkdtemp(out) != NULL);
    size_t bytes = strlen(out);
    (void)snprintf(out + bytes, SCENE_PATH_BYTES - bytes, "/data");
}

/* Visits the files of a data directory and of its tree. */
static void each_file(const char *folder, void (*visit)(const char *name, void *context),
                      void *context)
{
    static const char *const below[] = {"", "tree", "tree.new"};
    char path[2 * SCENE_PATH_BYTES], name[2 * SCENE_PATH_BYTES];
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, below[i]);
        DIR *directory = opendir(path);
        if (directory == NULL) continue;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): a directory that nobody else reads */
        for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
            if (entry->d_name[0] == '.' || strncmp(entry->d_name, "tree", 4) == 0) continue;
            (void)snprintf(name, sizeof name, "%s%s%.100s", below[i], i > 0 ? "/" : "",
                           entry->d_name);
            visit(name, context);
        }
        (void)closedir(directory);
    }
}

static void remove_one(const char *name, void *context)
{
    char path[4 * SCENE_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", (const char *)context, name);
    CHECK(unlink(path) == 0);
}

void scene_clear(const char *folder)
{
    char path[2 * SCENE_PATH_BYTES], copy[SCENE_PATH_BYTES];
    (void)snprintf(copy, sizeof copy, "%s", folder);
    each_file(folder, remove_one, copy);
    (void)snprintf(path, sizeof path, "%s/tree", folder);
    CHECK(rmdir(path) == 0 || errno == ENOENT);
    (void)snprintf(path, sizeof path, "%s/tree.new", folder);
    CHECK(rmdir(path) == 0 || errno == ENOENT);
    CHECK(rmdir(folder) == 0 || errno == ENOENT);
}

void scene_remove(const char *folder)
{
    char parent[SCENE_PATH_BYTES];
    scene_clear(folder);
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(folder, '/') - folder), folder);
    CHECK(rmdir(parent) == 0);
}

uint8_t *scene_read(const char *folder, const char *name, size_t *out_bytes)
{
    char path[4 * SCENE_PATH_BYTES];
    struct stat info;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rbe");
    if (file == NULL) return NULL;
    CHECK(fstat(fileno(file), &info) == 0);
    size_t bytes = (size_t)info.st_size;
    uint8_t *data = malloc(bytes + 1);
    CHECK(data != NULL);
    CHECK(fread(data, 1, bytes, file) == bytes);
    data[bytes] = 0;
    (void)fclose(file);
    *out_bytes = bytes;
    return data;
}

void scene_write(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[4 * SCENE_PATH_BYTES];
    if (mkdir(folder, 0700) != 0) CHECK(errno == EEXIST);
    const char *slash = strchr(name, '/');
    (void)snprintf(path, sizeof path, "%s/%.*s", folder, slash != NULL ? (int)(slash - name) : 0,
                   name);
    if (slash != NULL && mkdir(path, 0700) != 0) CHECK(errno == EEXIST);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wbe");
    CHECK(file != NULL);
    CHECK(fwrite(data, 1, bytes, file) == bytes);
    CHECK(fclose(file) == 0);
}

struct copying {
    const char *from, *to;
};

static void copy_one(const char *name, void *context)
{
    const struct copying *copying = context;
    size_t bytes;
    uint8_t *data = scene_read(copying->from, name, &bytes);
    CHECK(data != NULL);
    scene_write(copying->to, name, data, bytes);
    free(data);
}

void scene_copy(const char *from, const char *folder)
{
    struct copying copying = {from, folder};
    scene_clear(folder);
    each_file(from, copy_one, &copying);
}

void scene_check(const char *folder)
{
    struct bel_engine_report report;
    struct bel_engine_why why;
    int err = bel_engine_check(folder, &report, &why);
    CHECK_NOTE("%s: %.200s", bel_error_text(err), why.text);
    CHECK(err == 0 || err == BEL_ENOTFOUND);
}

int scene_fork(void (*function)(void *context), void *context)
{
    int status;
    (void)fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        function(context);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

bool scene_is_well(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

uint64_t scene_ms(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
