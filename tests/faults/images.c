/* SPDX-License-Identifier: MIT */

/*
 * A node is a file or a folder; a name is an entry of a folder that points to a node. Both have a
 * durable part and a list of unsynced changes:
 *
 *     node:  durable bytes    <- pending writes, in order, applied by a sync
 *     names: durable names    <- pending changes, in order, until the sync of their folder
 *
 * The running program sees the durable names with all changes. They are used to find the node of an
 * event.
 */
#include "images.h"

#include "scene.h"

#include "../check.h"
#include "../random.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NODES_MAX = 64,
    NAMES_MAX = 64,
    CHANGES_MAX = 64,
    ROOT = 0, /* the node of the parent of the watched folder */
    PAGE_BYTES = 4096,
    SECTOR_BYTES = 512,
};

struct write {
    uint64_t offset;
    size_t bytes;
    const uint8_t *data; /* points into the recording */
};

struct node {
    bool is_folder;
    uint8_t *durable;
    size_t durable_bytes;
    struct write *writes;
    size_t writes_count, writes_room;
};

struct name {
    int folder, node; /* node -1: the name is removed */
    char text[SHIM_NAME_BYTES];
};

/* An atomic change of names: one is removed, one is added. */
struct change {
    struct name gone, come; /* folder -1: none */
};

struct images {
    enum images_lie lie;
    uint64_t chance; /* seed for what a failed sync has written */
    struct node nodes[NODES_MAX];
    int nodes_count;
    struct name names[NAMES_MAX]; /* the durable names */
    int names_count;
    struct change changes[CHANGES_MAX];
    int changes_count;
};

/* --- names --- */

static void change_names(struct name *names, int *count, const struct change *change)
{
    for (int i = 0; i < *count; i++) {
        bool is_gone = change->gone.folder >= 0 && names[i].folder == change->gone.folder &&
                       strcmp(names[i].text, change->gone.text) == 0;
        bool is_over = change->come.folder >= 0 && names[i].folder == change->come.folder &&
                       strcmp(names[i].text, change->come.text) == 0;
        if (is_gone || is_over) names[i--] = names[--*count];
    }
    if (change->come.folder < 0) return;
    CHECK(*count < NAMES_MAX);
    names[(*count)++] = change->come;
}

/* Returns the names after the first `changes` changes. */
static int names_after(const struct images *images, int changes, struct name *out)
{
    int count = images->names_count;
    memcpy(out, images->names, sizeof images->names);
    for (int i = 0; i < changes; i++) {
        change_names(out, &count, &images->changes[i]);
    }
    return count;
}

/* Splits a path below the watched folder into the node of its folder and the last part. The watched
 * folder itself is "data" in ROOT. */
static struct name place_of(const struct images *images, const char *path)
{
    struct name names[NAMES_MAX];
    int count = names_after(images, images->changes_count, names);
    char whole[2 * SHIM_NAME_BYTES], *rest = whole;
    struct name place = {.folder = ROOT, .node = -1};
    (void)snprintf(whole, sizeof whole, "data%s%s", path[0] != 0 ? "/" : "", path);
    for (;;) {
        char *slash = strchr(rest, '/');
        if (slash != NULL) *slash = 0;
        CHECK(strlen(rest) < sizeof place.text);
        (void)snprintf(place.text, sizeof place.text, "%.47s", rest);
        place.node = -1;
        for (int i = 0; i < count; i++) {
            bool is_it = names[i].folder == place.folder && strcmp(names[i].text, rest) == 0;
            if (is_it) place.node = names[i].node;
        }
        if (slash == NULL) return place;
        CHECK(place.node >= 0);
        place.folder = place.node;
        rest = slash + 1;
    }
}

static void add_change(struct images *images, struct name gone, struct name come)
{
    CHECK(images->changes_count < CHANGES_MAX);
    images->changes[images->changes_count++] = (struct change){gone, come};
}

static int add_node(struct images *images, bool is_folder)
{
    CHECK(images->nodes_count < NODES_MAX);
    images->nodes[images->nodes_count] = (struct node){.is_folder = is_folder};
    return images->nodes_count++;
}

static const struct name nowhere = {.folder = -1, .node = -1};

static void add_name(struct images *images, const char *path, bool is_folder)
{
    struct name place = place_of(images, path);
    CHECK(place.node < 0);
    place.node = add_node(images, is_folder);
    add_change(images, nowhere, place);
}

/* Makes the changes in a folder durable; the other changes stay pending, in order. */
static void sync_names(struct images *images, int folder)
{
    int kept = 0;
    for (int i = 0; i < images->changes_count; i++) {
        const struct change *change = &images->changes[i];
        if (change->gone.folder == folder || change->come.folder == folder) {
            change_names(images->names, &images->names_count, change);
        } else {
            images->changes[kept++] = *change;
        }
    }
    images->changes_count = kept;
}

/* --- bytes --- */

static void drop_bytes(uint8_t **bytes, size_t *count, uint64_t offset, const uint8_t *data,
                       size_t data_bytes)
{
    size_t end = (size_t)offset + data_bytes;
    if (end > *count) {
        *bytes = realloc(*bytes, end);
        CHECK(*bytes != NULL);
        memset(*bytes + *count, 0, end - *count);
        *count = end;
    }
    memcpy(*bytes + offset, data, data_bytes);
}

static void sync_bytes(struct node *node)
{
    for (size_t i = 0; i < node->writes_count; i++) {
        const struct write *write = &node->writes[i];
        drop_bytes(&node->durable, &node->durable_bytes, write->offset, write->data, write->bytes);
    }
    node->writes_count = 0;
}

static void add_write(struct node *node, const struct shim_event *event)
{
    if (node->writes_count == node->writes_room) {
        node->writes_room = 2 * node->writes_room + 16;
        node->writes = realloc(node->writes, node->writes_room * sizeof *node->writes);
        CHECK(node->writes != NULL);
    }
    node->writes[node->writes_count++] = (struct write){event->offset, event->bytes, event->data};
}

/* Truncates a file. Shrinking is taken to be durable at once; only new files are truncated. */
static void truncate_bytes(struct node *node, uint64_t bytes)
{
    static const uint8_t none[1];
    sync_bytes(node);
    if (bytes > node->durable_bytes) {
        drop_bytes(&node->durable, &node->durable_bytes, bytes, none, 0);
    }
    node->durable_bytes = (size_t)bytes;
}

/* --- events --- */

static bool is_believed(const struct images *images, const struct node *node, const char *name)
{
    bool is_tree = strncmp(name, "tree", 4) == 0;
    switch (images->lie) {
    case IMAGES_NO_SYNC:
        return false;
    case IMAGES_NO_LOG_SYNC:
        return node->is_folder || is_tree;
    case IMAGES_NO_TREE_SYNC:
        return node->is_folder || !is_tree;
    case IMAGES_NO_NAME_SYNC:
        return !node->is_folder;
    default:
        return true;
    }
}

static void sync_node(struct images *images, const char *name)
{
    int number = place_of(images, name).node;
    CHECK(number >= 0);
    if (!is_believed(images, &images->nodes[number], name)) return;
    if (images->nodes[number].is_folder) {
        sync_names(images, number);
    } else {
        sync_bytes(&images->nodes[number]);
    }
}

static void write_node(struct images *images, const struct shim_event *event)
{
    struct node *node = &images->nodes[place_of(images, event->name).node];
    if (!event->is_durable || images->lie == IMAGES_NO_SYNC) {
        add_write(node, event);
        return;
    }
    drop_bytes(&node->durable, &node->durable_bytes, event->offset, event->data, event->bytes);
    add_write(node, event); /* after the pending writes */
}

/* Returns whether a file is ignored: LMDB's lock file is mapped, and the next process resets it. */
static bool is_ignored(const char *name)
{
    return strstr(name, "lock.mdb") != NULL || strcmp(name, "LOCK") == 0;
}

/* --- cutting --- */

/* How much of the unsynced writes survives: `share` of 256 pieces of this size. */
struct luck {
    size_t piece_bytes;
    uint64_t share;
};

static struct luck draw_luck(uint64_t *chance)
{
    static const struct luck lucks[] = {{PAGE_BYTES, 0},     {PAGE_BYTES, 256},  {PAGE_BYTES, 20},
                                        {PAGE_BYTES, 128},   {PAGE_BYTES, 236},  {SECTOR_BYTES, 20},
                                        {SECTOR_BYTES, 128}, {SECTOR_BYTES, 236}};
    return lucks[random_below(chance, sizeof lucks / sizeof lucks[0])];
}

static void drop_by_luck(uint8_t **bytes, size_t *count, const struct write *write,
                         struct luck luck, uint64_t *chance)
{
    for (size_t done = 0; done < write->bytes;) {
        uint64_t at = write->offset + done;
        size_t piece = luck.piece_bytes - (size_t)(at % luck.piece_bytes);
        if (piece > write->bytes - done) piece = write->bytes - done;
        if (random_below(chance, 256) < luck.share) {
            drop_bytes(bytes, count, at, write->data + done, piece);
        }
        done += piece;
    }
}

static void write_file(const struct node *node, const struct shim_event *during, const char *path,
                       struct luck luck, uint64_t *chance)
{
    size_t count = node->durable_bytes;
    uint8_t *bytes = malloc(count + 1);
    CHECK(bytes != NULL);
    if (count > 0) memcpy(bytes, node->durable, count);
    for (size_t i = 0; i < node->writes_count; i++) {
        drop_by_luck(&bytes, &count, &node->writes[i], luck, chance);
    }
    if (during != NULL) {
        struct write last = {during->offset, during->bytes, during->data};
        drop_by_luck(&bytes, &count, &last, luck, chance);
    }
    FILE *file = fopen(path, "wbe");
    CHECK(file != NULL);
    CHECK(fwrite(bytes, 1, count, file) == count);
    CHECK(fclose(file) == 0);
    free(bytes);
}

/* Builds the path of a name. Returns false if a folder above it does not exist. */
static bool path_of(const struct name *names, int count, int index, const char *parent,
                    char out[SCENE_PATH_BYTES * 2])
{
    const char *parts[4] = {names[index].text};
    int depth = 1, folder = names[index].folder;
    while (folder != ROOT) {
        int above = 0;
        while (above < count && names[above].node != folder) {
            above++;
        }
        if (above == count) return false;
        CHECK(depth < 4);
        parts[depth++] = names[above].text;
        folder = names[above].folder;
    }
    size_t bytes = (size_t)snprintf(out, (size_t)SCENE_PATH_BYTES * 2, "%s", parent);
    while (depth-- > 0) {
        bytes += (size_t)snprintf(out + bytes, (size_t)SCENE_PATH_BYTES * 2 - bytes, "/%s",
                                  parts[depth]);
    }
    return true;
}

/* Writes folders first, parents before children: the node of a parent is older. */
static void write_names(const struct images *images, const struct name *names, int count,
                        const char *parent)
{
    char path[SCENE_PATH_BYTES * 2];
    for (int node = 0; node < images->nodes_count; node++) {
        for (int i = 0; i < count; i++) {
            if (names[i].node != node || !images->nodes[node].is_folder) continue;
            if (path_of(names, count, i, parent, path)) CHECK(mkdir(path, 0700) == 0);
        }
    }
}

void images_cut(const struct images *images, const struct shim_event *during, const char *folder,
                uint64_t *chance)
{
    struct name names[NAMES_MAX];
    char parent[SCENE_PATH_BYTES], path[SCENE_PATH_BYTES * 2];
    struct luck luck = draw_luck(chance);
    int changes = (int)random_below(chance, (uint64_t)images->changes_count + 1);
    int count = names_after(images, changes, names), target = -1;
    if (during != NULL && during->kind == SHIM_WRITE && !is_ignored(during->name)) {
        target = place_of(images, during->name).node;
    }
    scene_clear(folder);
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(folder, '/') - folder), folder);
    write_names(images, names, count, parent);
    for (int i = 0; i < count; i++) {
        const struct node *node = &images->nodes[names[i].node];
        if (node->is_folder || !path_of(names, count, i, parent, path)) continue;
        write_file(node, names[i].node == target ? during : NULL, path, luck, chance);
    }
}

/* Applies a failed sync: some of the pending pages reached the disk, the others are marked clean in
 * memory and are never written. */
static void lose_bytes(struct images *images, struct node *node)
{
    static const struct luck luck = {PAGE_BYTES, 128};
    for (size_t i = 0; i < node->writes_count; i++) {
        drop_by_luck(&node->durable, &node->durable_bytes, &node->writes[i], luck, &images->chance);
    }
    node->writes_count = 0;
}

void images_apply(struct images *images, const struct shim_event *event)
{
    struct name place, to;
    if (is_ignored(event->name)) return;
    switch (event->kind) {
    case SHIM_WRITE:
        write_node(images, event);
        return;
    case SHIM_TRUNCATE:
        truncate_bytes(&images->nodes[place_of(images, event->name).node], event->offset);
        return;
    case SHIM_SYNC:
        sync_node(images, event->name);
        return;
    case SHIM_LOSS:
        lose_bytes(images, &images->nodes[place_of(images, event->name).node]);
        return;
    case SHIM_CREATE:
        add_name(images, event->name, false);
        return;
    case SHIM_FOLDER:
        add_name(images, event->name, true);
        if (event->name[0] != 0) return;
        sync_names(images, ROOT); /* the parent of the watched folder is not recorded */
        return;
    case SHIM_RENAME:
        place = place_of(images, event->name);
        to = place_of(images, event->to);
        to.node = place.node;
        add_change(images, place, to);
        return;
    case SHIM_REMOVE:
        add_change(images, place_of(images, event->name), nowhere);
        return;
    case SHIM_SAY:
        return;
    }
}

/* --- making --- */

struct images *images_create(enum images_lie lie)
{
    struct images *images = calloc(1, sizeof *images);
    CHECK(images != NULL);
    images->lie = lie;
    CHECK(add_node(images, true) == ROOT);
    return images;
}

static void load_file(struct images *images, const char *folder, const char *name)
{
    size_t bytes;
    uint8_t *data = scene_read(folder, name, &bytes);
    if (data == NULL) return;
    add_name(images, name, false);
    struct node *node = &images->nodes[images->nodes_count - 1];
    node->durable = data;
    node->durable_bytes = bytes;
}

struct images *images_load(const char *folder, enum images_lie lie)
{
    static const char *const names[] = {"superblock", "superblock.new", "log-0",
                                        "log-1",      "log-2",          "log-3"};
    static const char *const trees[] = {"tree", "tree.new"};
    struct images *images = images_create(lie);
    char path[SCENE_PATH_BYTES * 2];
    struct stat info;
    if (stat(folder, &info) == 0) add_name(images, "", true);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        load_file(images, folder, names[i]);
    }
    for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, trees[i]);
        if (stat(path, &info) != 0) continue;
        add_name(images, trees[i], true);
        (void)snprintf(path, sizeof path, "%s/data.mdb", trees[i]);
        load_file(images, folder, path);
    }
    images->names_count = names_after(images, images->changes_count, images->names);
    images->changes_count = 0;
    return images;
}

void images_destroy(struct images *images)
{
    for (int i = 0; i < images->nodes_count; i++) {
        free(images->nodes[i].durable);
        free(images->nodes[i].writes);
    }
    free(images);
}
