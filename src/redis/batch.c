/* SPDX-License-Identifier: MIT */

/*
 * The arguments of items are encoded as they are added, and copied once, behind the head of the
 * command, which has their number:
 *
 *     EVALSHA sha 17 key ... now | arguments of items
 *
 * A server that does not know a script (NOSCRIPT: it was restarted, or another one took over) gets
 * the same command again as EVAL, with the text, and knows the script from then on. A script that
 * has not done its work because more must end before replies so, and is called again. A script that
 * a server refuses because its memory is full is called as one that adds nothing, if there is one.
 * A batch that is sent again holds its topic until its reply.
 *
 * While UNDER_WAY_MAX batches of a partition are under way, the last one that others can still join
 * is kept back until one of these has its reply, for KEPT_MS at most. So a busy server gets fewer
 * and larger calls, and none waits long when the server is slow.
 */
#include "redis/batch.h"

#include "core/parse.h"
#include "core/units.h"
#include "core/view.h"
#include "redis/layouts.h"
#include "redis/outcome.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ITEMS_MAX = 100,             /* of a batch that several operations share */
    WEIGHT_MAX = 1000,           /* of a batch that several operations share */
    ARGUMENTS_BYTES = 256 << 10, /* from which on a batch is full */
    COMMAND_BYTES_MAX = 128 << 20,
    LENGTH_BYTES = 32, /* of the head of a bulk string */
    UNDER_WAY_MAX = 4,
    KEPT_MS = 5,
    PATIENCE_MS = 60000,  /* of a batch that is sent again and again */
    LOOK_AGAIN_MS = 1000, /* until a key of a wrong type is looked for again */
    AGAIN = -2,           /* the next time of a script that has done nothing: call it again */
    MOVED = -3,           /* likewise: the topic has another number of partitions */
    SAME = -2,            /* the next ring: what an earlier reply has said */
};

static const struct {
    const char *name;
    bool is_hash; /* otherwise a sorted set */
} keys[] = {
    {"pend", false},    {"lease", false}, {"rec", true},   {"tok", true},        {"att", true},
    {"exp", false},     {"plan", false},  {"hour", true},  {"block", false},     {"cfg", true},
    {"st", true},       {"done", false},  {"dead", false}, {"cancelled", false}, {"expired", false},
    {"skipped", false}, {"occ", false},
};

enum {
    KEYS = sizeof keys / sizeof keys[0],
    KEY_BYTES_MAX = BEL_REDIS_NAMESPACE_BYTES_MAX + BEL_TOPIC_BYTES_MAX + 32,
    ENTRY_BYTES = 65, /* SENTINEL of scripts/prelude.lua */
};

static const char layout_changed[] = "the layout of the topic has just changed: try again";

struct bel_batch {
    struct bel_server_call call;
    struct bel_link link; /* in node->batches or node->sent */
    struct bel_redis *node;
    struct bel_redis_partition *partition; /* NULL: a plain command */
    const struct bel_script *script;       /* NULL: a plain command */
    const struct bel_script *without;      /* if the server is full; NULL: it fails */
    struct bel_layout *layout;             /* of a script that needs one; a use */
    struct bel_item *first, **last;
    size_t items_count;
    struct bel_buffer arguments, command;
    struct bel_buffer birth; /* commands that create the keys; empty: were not needed */
    size_t arguments_count;
    uint32_t count;                 /* of partitions, as the operations believe */
    struct bel_mono opened;         /* real time */
    int64_t sent_ms, first_sent_ms; /* by the boot clock */
    int err;                        /* of building the command */
    uint64_t weight;                /* of all items */
    bool is_text;                   /* sent as EVAL */
    bool is_alone;
    bool is_under_way; /* counted in the partition */
    bool is_again;     /* sent again; holds the topic */
    bool is_reading;   /* a plain command that changes nothing */
    bool is_unchecked; /* the script does not compare the revision of the layout */
};

/* --- Building --- */

/* Gives a batch its layout. A topic may have lost its own since the operation was prepared. */
static void use_layout(struct bel_batch *batch, struct bel_layout *layout)
{
    bel__layout_release(batch->layout);
    batch->layout = layout;
    batch->err = layout == NULL ? BEL_ECONFLICT : 0;
    if (layout != NULL) layout->uses++;
}

static struct bel_batch *open_batch(struct bel_redis *node, struct bel_redis_partition *partition,
                                    const struct bel_script *script)
{
    struct bel_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) return NULL;
    batch->node = node;
    batch->partition = partition;
    batch->count = partition != NULL ? partition->topic->count : 0;
    batch->script = script;
    batch->opened = node->now.real;
    batch->last = &batch->first;
    bel__buffer_init(&batch->arguments, COMMAND_BYTES_MAX);
    bel__buffer_init(&batch->command, COMMAND_BYTES_MAX);
    bel__buffer_init(&batch->birth, COMMAND_BYTES_MAX);
    bel__list_append(&node->batches, &batch->link);
    if (partition != NULL) partition->open = batch;
    bool is_of_layout = partition != NULL && script != NULL && script->is_faststream;
    if (is_of_layout) use_layout(batch, partition->topic->layout);
    return batch;
}

/* Returns whether a batch of a partition can have more items. */
static bool has_room(const struct bel_batch *batch)
{
    if (batch->is_alone || batch->count != batch->partition->topic->count) return false;
    bool has_payloads = batch->script == &bel__scripts[BEL_SCRIPT_GET] ||
                        batch->script == &bel__scripts[BEL_SCRIPT_CLAIM];
    size_t items_max = has_payloads ? batch->node->payloads_max : ITEMS_MAX;
    return batch->items_count < items_max && batch->arguments.count < ARGUMENTS_BYTES;
}

bool bel__batch_is_open(const struct bel_redis_partition *partition, enum bel_script_name script)
{
    const struct bel_batch *batch = partition->open;
    return batch != NULL && batch->script == &bel__scripts[script] && has_room(batch);
}

struct bel_batch *bel__batch_join(struct bel_redis *node, struct bel_redis_partition *partition,
                                  enum bel_script_name script)
{
    if (bel__batch_is_open(partition, script)) return partition->open;
    return open_batch(node, partition, &bel__scripts[script]);
}

struct bel_batch *bel__batch_join_weighing(struct bel_redis *node,
                                           struct bel_redis_partition *partition,
                                           enum bel_script_name script, uint64_t weight)
{
    struct bel_batch *batch = partition->open;
    if (batch == NULL || batch->weight + weight > WEIGHT_MAX) {
        batch = open_batch(node, partition, &bel__scripts[script]);
    } else {
        batch = bel__batch_join(node, partition, script);
    }
    if (batch != NULL) batch->weight += weight;
    return batch;
}

struct bel_batch *bel__batch_alone(struct bel_redis *node, struct bel_redis_partition *partition,
                                   enum bel_script_name script)
{
    struct bel_batch *batch = open_batch(node, partition, &bel__scripts[script]);
    if (batch != NULL) batch->is_alone = true;
    return batch;
}

struct bel_batch *bel__batch_of_layout(struct bel_redis *node, struct bel_redis_topic *topic,
                                       struct bel_layout *layout, enum bel_script_name script)
{
    struct bel_batch *batch = bel__batch_alone(node, topic->partitions[0], script);
    assert(bel__scripts[script].is_faststream && layout != NULL);
    if (batch == NULL) return NULL;
    use_layout(batch, layout);
    batch->is_unchecked = true;
    return batch;
}

struct bel_batch *bel__batch_plain(struct bel_redis *node)
{
    return open_batch(node, NULL, NULL);
}

struct bel_batch *bel__batch_reading(struct bel_redis *node)
{
    struct bel_batch *batch = open_batch(node, NULL, NULL);
    if (batch != NULL) batch->is_reading = true;
    return batch;
}

void bel__batch_item(struct bel_batch *batch, struct bel_item *item, size_t results)
{
    item->next = NULL;
    item->results = results;
    *batch->last = item;
    batch->last = &item->next;
    batch->items_count++;
}

void bel__batch_may_add(struct bel_batch *batch, enum bel_script_name without)
{
    batch->without = &bel__scripts[without];
}

static void append(struct bel_batch *batch, struct bel_buffer *buffer, struct bel_view text)
{
    char head[LENGTH_BYTES];
    int bytes = snprintf(head, sizeof head, "$%zu\r\n", text.bytes);
    assert(bytes > 0 && (size_t)bytes < sizeof head);
    if (batch->err == 0) batch->err = bel__buffer_reserve(buffer, text.bytes + sizeof head);
    if (batch->err == 0) batch->err = bel__buffer_append(buffer, head, (size_t)bytes);
    if (batch->err == 0 && text.bytes > 0) {
        batch->err = bel__buffer_append(buffer, text.data, text.bytes);
    }
    if (batch->err == 0) batch->err = bel__buffer_append(buffer, "\r\n", 2);
}

void bel__batch_text(struct bel_batch *batch, struct bel_view text)
{
    append(batch, &batch->arguments, text);
    batch->arguments_count++;
}

void bel__batch_word(struct bel_batch *batch, const char *word)
{
    bel__batch_text(batch, (struct bel_view){word, strlen(word)});
}

void bel__batch_number(struct bel_batch *batch, int64_t number)
{
    char text[BEL_PRINT_BYTES_MAX];
    bel__batch_text(batch, (struct bel_view){text, bel__print_i64(text, number)});
}

uint8_t *bel__batch_space(struct bel_batch *batch, size_t bytes)
{
    struct bel_buffer *buffer = &batch->arguments;
    uint8_t *out = NULL;
    assert(bytes > 0);
    batch->arguments_count++;
    if (batch->err == 0) batch->err = bel__buffer_reserve(buffer, bytes + LENGTH_BYTES);
    if (batch->err == 0) batch->err = bel__buffer_append_format(buffer, "$%zu\r\n", bytes);
    if (batch->err == 0) batch->err = bel__buffer_extend(buffer, bytes + 2, &out);
    if (batch->err) return NULL;
    out[bytes] = '\r';
    out[bytes + 1] = '\n';
    return out;
}

/* --- Sending --- */

static void append_layout_keys(struct bel_batch *batch)
{
    for (size_t i = 0; i < BEL_LAYOUT_KEYS; i++) {
        append(batch, &batch->command, batch->layout->keys[i]);
    }
}

/* Prints a key of a native topic, and returns it. */
static struct bel_view key_of(const struct bel_batch *batch, size_t index, char out[KEY_BYTES_MAX])
{
    const struct bel_redis_partition *partition = batch->partition;
    struct bel_view topic = partition->topic->name;
    int bytes = snprintf(out, KEY_BYTES_MAX, "{%s:%.*s:%u}:%s", batch->node->options.name_space,
                         (int)topic.bytes, (const char *)topic.data, (unsigned)partition->index,
                         keys[index].name);
    assert(bytes > 0 && bytes < KEY_BYTES_MAX);
    return (struct bel_view){out, (size_t)bytes};
}

static void append_native_keys(struct bel_batch *batch)
{
    char key[KEY_BYTES_MAX];
    for (size_t i = 0; i < KEYS; i++) {
        append(batch, &batch->command, key_of(batch, i, key));
    }
}

/* The entry that every key of a native topic has, see scripts/prelude.lua. A partition whose keys
 * have nothing else does not exist for scripts. */
static struct bel_view birth(struct bel_server_call *call, uint32_t *out_count)
{
    struct bel_batch *batch = BEL_CONTAINER_OF(call, struct bel_batch, call);
    struct bel_buffer *out = &batch->birth;
    char key[KEY_BYTES_MAX], entry[ENTRY_BYTES];
    memset(entry, 0xff, sizeof entry);
    bel__buffer_finish(out);
    *out_count = 2 * KEYS;
    for (size_t i = 0; i < KEYS && batch->err == 0; i++) {
        const char *head = keys[i].is_hash ? "*4\r\n$6\r\nHSETNX\r\n" : "*5\r\n$4\r\nZADD\r\n";
        batch->err = bel__buffer_append_format(out, "*1\r\n$6\r\nASKING\r\n%s", head);
        append(batch, out, key_of(batch, i, key));
        if (!keys[i].is_hash) append(batch, out, BEL_VIEW("NX"));
        if (!keys[i].is_hash) append(batch, out, BEL_VIEW("+inf"));
        append(batch, out, (struct bel_view){entry, sizeof entry});
        if (keys[i].is_hash) append(batch, out, BEL_VIEW(""));
    }
    if (batch->err) *out_count = 0; /* memory has run out: the command is tried without */
    batch->err = 0;
    return (struct bel_view){bel__buffer_data(out), *out_count == 0 ? 0 : out->count};
}

static bool ignores_count(const struct bel_batch *batch)
{
    const struct bel_script *script = batch->script;
    return script == &bel__scripts[BEL_SCRIPT_ADOPT] || script == &bel__scripts[BEL_SCRIPT_SEAL] ||
           script == &bel__scripts[BEL_SCRIPT_DIVIDE];
}

/* Appends the time, which only a virtual clock and a copy (after a q) have, or s in a Cluster, and
 * the number of partitions that the operation believes in. Scripts that change this number are
 * called with 0. */
static void append_now(struct bel_batch *batch)
{
    char text[2 * BEL_PRINT_BYTES_MAX + 2];
    size_t bytes = 0;
    if (bel__node_gives_time(batch->node)) {
        if (batch->node->options.is_quiet && batch->layout == NULL) text[bytes++] = 'q';
        bytes += bel__print_i64(text + bytes, batch->node->now.wall.ms);
    } else if (bel__servers_is_sharded(batch->node->servers)) {
        text[bytes++] = 's';
    }
    if (batch->layout == NULL) { /* a topic with a layout has no partitions */
        text[bytes++] = '/';
        bytes += bel__print_u64(text + bytes, ignores_count(batch) ? 0 : batch->count);
    }
    append(batch, &batch->command, (struct bel_view){text, bytes});
}

static size_t keys_count(const struct bel_batch *batch)
{
    return batch->layout != NULL ? BEL_LAYOUT_KEYS : KEYS;
}

/* Returns the number of words of a script before the arguments of its items. */
static size_t head_count(const struct bel_batch *batch)
{
    if (batch->script == NULL) return 0;
    return 3 + keys_count(batch) + 1 + (batch->layout != NULL);
}

static void append_script(struct bel_batch *batch)
{
    struct bel_view sha = {batch->script->sha, strlen(batch->script->sha)};
    char count[BEL_PRINT_BYTES_MAX];
    append(batch, &batch->command, batch->is_text ? BEL_VIEW("EVAL") : BEL_VIEW("EVALSHA"));
    append(batch, &batch->command, batch->is_text ? batch->script->text : sha);
    append(batch, &batch->command,
           (struct bel_view){count, bel__print_u64(count, keys_count(batch))});
    if (batch->layout == NULL) {
        append_native_keys(batch);
        append_now(batch);
        return;
    }
    append_layout_keys(batch);
    append_now(batch);
    const char *revision = batch->is_unchecked ? "" : batch->layout->revision;
    append(batch, &batch->command, (struct bel_view){revision, strlen(revision)});
}

static void encode(struct bel_batch *batch)
{
    size_t count = batch->arguments_count + head_count(batch);
    struct bel_buffer *command = &batch->command;
    bel__buffer_finish(command);
    if (batch->err == 0) batch->err = bel__buffer_append_format(command, "*%zu\r\n", count);
    if (batch->script != NULL && batch->err == 0) append_script(batch);
    if (batch->err == 0 && batch->arguments.count > 0) {
        batch->err = bel__buffer_append(command, bel__buffer_data(&batch->arguments),
                                        batch->arguments.count);
    }
}

static void finish(struct bel_batch *batch)
{
    if (bel__link_is_linked(&batch->link)) bel__link_remove(&batch->link);
    if (batch->is_again) batch->partition->topic->held--;
    if (batch->is_under_way) batch->partition->under_way--;
    bel__buffer_finish(&batch->arguments);
    bel__buffer_finish(&batch->command);
    bel__buffer_finish(&batch->birth);
    bel__layout_release(batch->layout);
    free(batch);
}

static void end_items(struct bel_batch *batch, const struct bel_results *results)
{
    struct bel_item *item = batch->first, *next;
    for (; item != NULL; item = next) {
        next = item->next;
        item->answered(item, results);
    }
    finish(batch);
}

/* Ends a batch with an error. */
static void fail(struct bel_batch *batch, int err, const char *why)
{
    end_items(batch, &(struct bel_results){.err = err, .why = why});
}

/* Ends a batch of which nothing was done, because the topic has another number of partitions or is
 * about to have one. */
static void move(struct bel_batch *batch, int64_t count)
{
    struct bel_redis *node = batch->node;
    node->moved(node, batch->partition, count);
    end_items(batch,
              &(struct bel_results){.err = BEL_EIO, .why = BEL_OUTCOME_MOVED, .is_moved = true});
}

/* Takes over what every reply of a script begins with. */
static void learn(struct bel_batch *batch, const struct bel_value *reply)
{
    struct bel_redis *node = batch->node;
    assert(reply->count >= 3);
    bel__partition_learn_time(node, batch->partition, batch->call.from, reply->items[0].number,
                              batch->sent_ms);
    if (batch->layout != NULL) { /* what comes next is the package's affair: see wake.c */
        batch->partition->topic->first_ms = reply->items[1].number;
        return;
    }
    bel__partition_expect(node, batch->partition, reply->items[1].number);
    if (reply->items[2].number != SAME) batch->partition->ring_ms = reply->items[2].number;
    bool is_poll = batch->script == &bel__scripts[BEL_SCRIPT_SWEEP] && batch->partition->is_polled;
    if (is_poll) bel__node_polled(node, batch->partition);
}

bool bel__result_is_number(const struct bel_value *value, int64_t least, int64_t most)
{
    return value->type == BEL_VALUE_NUMBER && value->number >= least && value->number <= most;
}

/* Returns whether a reply begins with the three times. A retention may end after all time. */
static bool is_reply(const struct bel_value *value)
{
    int64_t latest = 2 * BEL_REDIS_TIME_END_MS;
    return value->type == BEL_VALUE_LIST && value->count >= 3 &&
           bel__result_is_number(&value->items[0], 0, BEL_REDIS_TIME_END_MS) &&
           bel__result_is_number(&value->items[1], MOVED, latest) &&
           bel__result_is_number(&value->items[2], SAME, latest);
}

static uint16_t slot_of(const struct bel_batch *batch)
{
    if (batch->layout != NULL) return batch->layout->slot;
    return batch->partition != NULL ? batch->partition->slot : batch->node->registry_slot;
}

/* Returns whether the answer to a script promises a change. The sweep, and the ring of a plan, are
 * done again by any node if they are lost. */
static bool is_change(const struct bel_script *script)
{
    static const bool is_other[BEL_SCRIPTS] = {
        [BEL_SCRIPT_AGENDA] = true,
        [BEL_SCRIPT_COUNT] = true,
        [BEL_SCRIPT_EXPLAIN] = true,
        [BEL_SCRIPT_GET] = true,
        [BEL_SCRIPT_LIST] = true,
        [BEL_SCRIPT_PEEK] = true,
        [BEL_SCRIPT_RING] = true,
        [BEL_SCRIPT_SWEEP] = true,
        [BEL_SCRIPT_TOPIC] = true,
        [BEL_SCRIPT_FASTSTREAM_AGENDA] = true,
        [BEL_SCRIPT_FASTSTREAM_COUNT] = true,
        [BEL_SCRIPT_FASTSTREAM_EXPLAIN] = true,
        [BEL_SCRIPT_FASTSTREAM_GET] = true,
        [BEL_SCRIPT_FASTSTREAM_LIST] = true,
        [BEL_SCRIPT_FASTSTREAM_PEEK] = true,
        [BEL_SCRIPT_FASTSTREAM_TOPIC] = true,
    };
    return script != NULL && !is_other[script - bel__scripts];
}

/* Returns whether a batch that has failed can have changed nothing that its caller asked for. */
static bool is_harmless(const struct bel_batch *batch)
{
    if (batch->script != NULL) return !is_change(batch->script);
    return batch->is_reading;
}

static void say_misled(const struct bel_batch *batch, struct bel_why *out)
{
    bel__outcome_misled(batch->node->servers, slot_of(batch), is_harmless(batch), out);
}

/* Gives each item its results. An item that takes all that there are, which may be none, can look
 * at the first one in any case. A script replies "all" instead of 1 for each of its items. */
static void deal(struct bel_batch *batch, const struct bel_value *items, size_t count)
{
    static const struct bel_value nil = {.type = BEL_VALUE_NIL},
                                  done = {.type = BEL_VALUE_NUMBER, .number = 1};
    struct bel_item *item = batch->first, *next;
    size_t at = 0;
    bool is_all = count == 1 && bel_value_is(items, "all");
    struct bel_why why;
    if (count == 0) items = &nil;
    for (; item != NULL; item = next) {
        size_t results = item->results > 0 ? item->results : count;
        struct bel_results part = {
            .items = items + at, .count = results, .partition = batch->partition};
        next = item->next;
        if (is_all && results == 1) {
            part.items = &done;
        } else if (results > count - at) {
            say_misled(batch, &why);
            part = (struct bel_results){.err = BEL_EIO, .why = why.text};
        } else {
            at += results;
        }
        item->answered(item, &part);
    }
    finish(batch);
}

static void send_batch(struct bel_batch *batch);

/* Sends a batch again of which nothing was done. Requests that begin from now on come after it. */
static void send_again(struct bel_batch *batch)
{
    if (!batch->is_again) batch->partition->topic->held++;
    batch->is_again = true;
    send_batch(batch);
}

/* --- Refusals --- */

/* The first key of a partition that has a wrong type. */
static const char types_script[] =
    "for i = 1, #KEYS do local t = redis.call('TYPE', KEYS[i]).ok "
    "if t ~= 'none' and t ~= ARGV[i] then return KEYS[i] end end return ''";

static void found_key(struct bel_item *item, const struct bel_results *results)
{
    struct bel_redis_refusals *refusals = item->owner;
    refusals->is_looking = false;
    if (results->err == 0 && results->items[0].type == BEL_VALUE_TEXT) {
        struct bel_view key = bel__view_head(results->items[0].text, sizeof refusals->key - 1);
        (void)snprintf(refusals->key, sizeof refusals->key, "%.*s", (int)key.bytes,
                       (const char *)key.data);
    }
    free(item);
}

/* Looks for the key of a partition that another program has written. */
static void look_for_key(struct bel_redis *node, struct bel_redis_partition *partition)
{
    char key[KEY_BYTES_MAX];
    struct bel_item *item = calloc(1, sizeof *item);
    struct bel_batch *batch = item == NULL ? NULL : open_batch(node, partition, NULL);
    if (batch == NULL) {
        free(item);
        return;
    }
    batch->is_alone = batch->is_reading = node->refusals.is_looking = true;
    *item = (struct bel_item){.answered = found_key, .owner = &node->refusals};
    bel__batch_item(batch, item, 0);
    bel__batch_word(batch, "EVAL");
    bel__batch_word(batch, types_script);
    bel__batch_number(batch, KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        bel__batch_text(batch, key_of(batch, i, key));
    }
    for (size_t i = 0; i < KEYS; i++) {
        bel__batch_word(batch, keys[i].is_hash ? "hash" : "zset");
    }
}

/* Counts a refusal. A key that was found stays for a while, for those who look at the refusals. */
static void note_refusal(struct bel_batch *batch, struct bel_view code, const char *why)
{
    struct bel_redis_refusals *refusals = &batch->node->refusals;
    refusals->count++;
    bool is_early = batch->node->now.real.ns < refusals->look_again.ns;
    if (refusals->is_looking || (refusals->key[0] != 0 && is_early)) return;
    (void)snprintf(refusals->why, sizeof refusals->why, "%s", why);
    refusals->key[0] = 0;
    bool has_keys = batch->script != NULL && batch->layout == NULL;
    if (is_early || !has_keys || !bel__view_is(code, "WRONGTYPE")) return;
    refusals->look_again.ns = batch->node->now.real.ns + (uint64_t)LOOK_AGAIN_MS * NS_PER_MS;
    look_for_key(batch->node, batch->partition);
}

/* Ends a batch with an error reply of the server, or sends it again. */
static void refuse(struct bel_batch *batch, const struct bel_value *error)
{
    struct bel_why why;
    struct bel_view code = bel_value_code(error);
    if (batch->script != NULL && !batch->is_text && code.bytes == 8 &&
        memcmp(code.data, "NOSCRIPT", 8) == 0) {
        batch->is_text = true;
        send_again(batch);
        return;
    }
    if (batch->script != NULL && bel__view_is(code, "LAYOUT")) {
        bel__layouts_doubt(batch->partition->topic);
        fail(batch, BEL_ECONFLICT, layout_changed);
        return;
    }
    bool is_full = bel__view_is(code, "OOM");
    if (is_full && batch->without != NULL) {
        batch->script = batch->without;
        batch->without = NULL;
        batch->is_text = false;
        send_again(batch);
        return;
    }
    if (is_full) {
        note_refusal(batch, code, BEL_BATCH_FULL);
        fail(batch, BEL_EFULL, BEL_BATCH_FULL);
        return;
    }
    bel__outcome_refused(batch->node->servers, slot_of(batch), is_harmless(batch), error, &why);
    note_refusal(batch, code, why.text);
    fail(batch, BEL_EIO, why.text);
}

/* Ends a batch that the server has not answered. */
static void fail_unanswered(struct bel_batch *batch, const struct bel_redis_reply *reply)
{
    struct bel_why why;
    bel__outcome_unanswered(batch->node->servers, slot_of(batch), is_harmless(batch), reply, &why);
    fail(batch, reply->err == BEL_ECLOSED ? BEL_ECLOSED : BEL_EIO, why.text);
}

/* Ends a batch with a reply that makes no sense. */
static void fail_misled(struct bel_batch *batch)
{
    struct bel_why why;
    say_misled(batch, &why);
    fail(batch, BEL_EIO, why.text);
}

static void replied(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    struct bel_batch *batch = BEL_CONTAINER_OF(call, struct bel_batch, call);
    assert(reply->is_last);
    if (reply->err == 0) batch->node->heard = batch->node->now.real;
    if (reply->err) {
        fail_unanswered(batch, reply);
    } else if (reply->value->type == BEL_VALUE_ERROR) {
        refuse(batch, reply->value);
    } else if (batch->script == NULL) {
        deal(batch, reply->value, 1);
    } else if (is_reply(reply->value) && reply->value->items[1].number == AGAIN) {
        bool is_late = bel__node_boot_ms(batch->node) - batch->first_sent_ms > PATIENCE_MS;
        if (is_late) fail(batch, BEL_EIO, "nothing was changed: too many timers are past");
        if (!is_late) send_again(batch);
    } else if (is_reply(reply->value) && reply->value->items[1].number == MOVED) {
        move(batch, reply->value->items[2].number);
    } else if (is_reply(reply->value)) {
        learn(batch, reply->value);
        deal(batch, reply->value->items + 3, reply->value->count - 3);
    } else {
        fail_misled(batch);
    }
}

static void send_batch(struct bel_batch *batch)
{
    struct bel_redis *node = batch->node;
    encode(batch);
    if (batch->err) {
        fail(batch, batch->err,
             batch->err == BEL_ECONFLICT ? layout_changed
                                         : "the command is too large, or memory has run out");
        return;
    }
    batch->sent_ms = bel__node_boot_ms(node);
    if (!batch->is_again) batch->first_sent_ms = batch->sent_ms;
    batch->call = (struct bel_server_call){.done = replied};
    batch->call.is_write = is_change(batch->script);
    batch->call.is_adding = batch->script != NULL && batch->script->is_adding;
    batch->call.slot = slot_of(batch);
    if (batch->layout == NULL && batch->partition != NULL) batch->call.birth = birth;
    batch->call.command.data = bel__buffer_data(&batch->command);
    batch->call.command.bytes = batch->command.count;
    int err = bel__servers_send(node->servers, &batch->call, node->now.real);
    if (err) fail(batch, err, "nothing was changed: too many commands wait for the server");
}

/* Returns until when a batch is kept back, so that others can join it; 0: it is sent. It is the
 * last one of its partition, so nothing overtakes it. */
static struct bel_mono kept_until(const struct bel_batch *batch)
{
    const struct bel_redis_partition *partition = batch->partition;
    struct bel_mono end = {batch->opened.ns + (uint64_t)KEPT_MS * NS_PER_MS};
    bool is_kept = partition != NULL && partition->open == batch && has_room(batch) &&
                   partition->under_way >= UNDER_WAY_MAX && end.ns > batch->node->now.real.ns;
    return is_kept ? end : (struct bel_mono){0};
}

void bel__batches_send(struct bel_redis *node)
{
    struct bel_link *kept = NULL; /* the last one; a batch that cannot be sent may lead to others */
    node->kept_until.ns = BEL_NEVER;
    for (;;) {
        struct bel_link *link =
            kept == NULL ? bel__list_first(&node->batches) : bel__list_next(&node->batches, kept);
        if (link == NULL) return;
        struct bel_batch *batch = BEL_CONTAINER_OF(link, struct bel_batch, link);
        struct bel_redis_partition *partition = batch->partition;
        struct bel_mono end = kept_until(batch);
        if (end.ns > 0) {
            kept = link;
            if (end.ns < node->kept_until.ns) node->kept_until = end;
            continue;
        }
        bel__link_remove(link);
        bel__list_append(&node->sent, link);
        if (partition != NULL && partition->open == batch) partition->open = NULL;
        if (partition != NULL) {
            partition->under_way++;
            batch->is_under_way = true;
        }
        send_batch(batch);
    }
}

void bel__batches_drop_first(struct bel_redis *node)
{
    struct bel_link *link = bel__list_take_first(&node->batches);
    assert(link != NULL);
    fail(BEL_CONTAINER_OF(link, struct bel_batch, link), BEL_ECLOSED, "the backend is closed");
}
