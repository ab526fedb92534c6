/* SPDX-License-Identifier: MIT */

/*
 * Replaces libFuzzer's main: runs a fuzz target once on each of the given files and
 * files of folders. So a corpus is an ordinary test, and a crash that the fuzzer has
 * found can be debugged.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INPUT_BYTES_MAX = 1 << 20
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    static uint8_t data[INPUT_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return 0;
    size_t size = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, size);
    return 1;
}

static int replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) return replay_file(path);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[4096];
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        count += replay_file(name);
    }
    (void)closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        count += replay_folder(argv[i]);
    }
    if (count == 0) {
        fprintf(stderr, "no input to replay\n");
        return EXIT_FAILURE;
    }
    printf("ok   replayed %d inputs\n", count);
    return EXIT_SUCCESS;
}
