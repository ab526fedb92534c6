/* SPDX-License-Identifier: MIT */

/*
 * FAIL DEAD in a topic of the layout faststream, which has no dead timers: the timer moves to those
 * of the native topic `<topic>:dead`. The two topics may be in different servers, so there are
 * three calls: look at the lease, add the dead timer, remove the other one if it is still that of
 * the lease. If a node stops in between, or the package has replaced the timer meanwhile, both
 * exist.
 *
 * A name that a native topic cannot have is written with each foreign byte as _XX; headers have the
 * name itself.
 */
#include "redis/faststream.h"

#include "redis/record.h"

#include "core/siphash.h"
#include "core/utf8.h"
#include "core/view.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_MAX = BEL_TOPIC_BYTES_MAX,
    HASH_BYTES = 17, /* a dash and 16 digits */
    OWN_HEADERS = 3,
};

struct bel_burying {
    struct bel_redis_topic *topic, *dead;
    struct bel_schedule_spec timer; /* that is buried */
    struct bel_item item;
};

static bool is_native(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("._:/-", c) != NULL);
}

/* Writes a name so that it is a native one, of at most `most` bytes. The end of one that is too
 * long becomes a hash. Returns the length, which is at least 1. */
static size_t write_native(struct bel_view name, size_t most, char *out)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *bytes = name.data;
    size_t count = 0, cut = 0;
    for (size_t i = 0; i < name.bytes && count + 3 <= most; i++) {
        if (is_native(bytes[i])) {
            out[count++] = (char)bytes[i];
        } else {
            out[count++] = '_';
            out[count++] = digits[bytes[i] >> 4];
            out[count++] = digits[bytes[i] & 15];
        }
        if (count + HASH_BYTES <= most) cut = count;
        if (i + 1 == name.bytes) return count;
    }
    if (name.bytes == 0) {
        out[0] = '_';
        return 1;
    }
    struct bel_siphash_key key = {0};
    char hash[HASH_BYTES + 1];
    (void)snprintf(hash, sizeof hash, "-%016llx",
                   (unsigned long long)bel__siphash(key, name.data, name.bytes));
    memcpy(out + cut, hash, HASH_BYTES);
    return cut + HASH_BYTES;
}

/* Returns a name that is native already as it is. */
static struct bel_view to_native(struct bel_view name, size_t most, struct bel_arena *arena)
{
    bool is_kept = name.bytes > 0 && name.bytes <= most;
    for (size_t i = 0; is_kept && i < name.bytes; i++) {
        is_kept = is_native(((const unsigned char *)name.data)[i]);
    }
    if (is_kept) return name;
    char *out = bel__arena_take(arena, most);
    if (out == NULL) return (struct bel_view){NULL, 0};
    return (struct bel_view){out, write_native(name, most, out)};
}

static int refuse_memory(struct bel_operation *operation)
{
    return bel__operation_refuse(operation, BEL_ENOMEM, "memory has run out");
}

int bel__faststream_prepare_burying(struct bel_operation *operation)
{
    static const char end[] = ":dead";
    struct bel_burying *burying = bel__arena_take(&operation->arena, sizeof *burying);
    char *name = bel__arena_take(&operation->arena, NAME_MAX);
    if (burying == NULL || name == NULL) return refuse_memory(operation);
    struct bel_redis_topic *topic = operation->topic;
    struct bel_view head = to_native(topic->name, NAME_MAX - (sizeof end - 1), &operation->arena);
    if (head.data == NULL) return refuse_memory(operation);
    memcpy(name, head.data, head.bytes);
    memcpy(name + head.bytes, end, sizeof end - 1);
    *burying = (struct bel_burying){.topic = topic};
    burying->timer.topic = (struct bel_view){name, head.bytes + sizeof end - 1};
    assert(bel_topic_is_valid(burying->timer.topic));
    burying->dead = bel__node_topic(operation->node, burying->timer.topic);
    if (burying->dead == NULL) return refuse_memory(operation);
    struct bel_faststream_token token = operation->shared; /* is in the same place */
    char *secret = bel__arena_take(&operation->arena, sizeof token.secret);
    if (secret == NULL) return refuse_memory(operation);
    memcpy(secret, token.secret, sizeof token.secret);
    operation->command.fail.token = (struct bel_view){secret, sizeof token.secret};
    operation->burying = burying;
    return 0;
}

static bool is_stale(struct bel_operation *operation, bool is_live)
{
    if (is_live) return false;
    (void)bel__faststream_refuse_stale(operation);
    bel__operation_answer(operation);
    return true;
}

static void removed(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    if (is_stale(operation, results->items[0].number == 1)) return;
    operation->reply.verdict.state = BEL_DEAD;
    bel__operation_answer(operation);
}

static void send_secret(struct bel_operation *operation, enum bel_script_name script,
                        void (*answered)(struct bel_item *item, const struct bel_results *results))
{
    struct bel_batch *batch = bel__faststream_item(operation, script, 1, answered);
    if (batch != NULL) bel__batch_text(batch, operation->command.fail.token);
}

static void buried(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    send_secret(operation, BEL_SCRIPT_FASTSTREAM_ACK, removed);
}

/* Adds a header that fits; a native timer has fewer and smaller ones than an envelope. */
static void add_header(struct bel_header *list, size_t *count, size_t *left,
                       const struct bel_header *header)
{
    size_t bytes = header->name.bytes + header->value.bytes;
    if (header->name.bytes == 0 || *count == BEL_HEADERS_MAX || bytes > *left) return;
    list[(*count)++] = *header;
    *left -= bytes;
}

/* Makes the dead timer. Headers that a native timer has no room for are left out. */
static int make_timer(struct bel_operation *operation, struct bel_view id, struct bel_view value)
{
    struct bel_schedule_spec *timer = &operation->burying->timer;
    struct bel_faststream_content content;
    int err = bel__faststream_read(operation, id, value, &content);
    if (err) return err;
    struct bel_header *list = bel__arena_take(&operation->arena, BEL_HEADERS_MAX * sizeof *list);
    size_t left = BEL_HEADERS_BYTES_MAX;
    timer->id = to_native(id, BEL_ID_BYTES_MAX, &operation->arena);
    if (list == NULL || timer->id.data == NULL) return BEL_ENOMEM;
    struct bel_header own[OWN_HEADERS] = {
        {BEL_VIEW("belfry-topic"), operation->burying->topic->name},
        {BEL_VIEW("belfry-id"), id},
        {BEL_VIEW("belfry-correlation"), content.correlation},
    };
    add_header(list, &timer->headers_count, &left, &own[0]);
    if (!bel__view_equal(id, timer->id)) {
        add_header(list, &timer->headers_count, &left, &own[1]);
    }
    if (content.correlation.bytes > BEL_TEXT_BYTES_MAX) {
        add_header(list, &timer->headers_count, &left, &own[2]);
    }
    for (size_t i = 0; i < content.headers_count; i++) {
        add_header(list, &timer->headers_count, &left, &content.headers[i]);
    }
    timer->headers = list;
    timer->correlation = bel__utf8_head(content.correlation, BEL_TEXT_BYTES_MAX);
    timer->payload = content.body;
    return 0;
}

static void bury(struct bel_operation *operation)
{
    const struct bel_burying *burying = operation->burying;
    struct bel_redis *node = operation->node;
    struct bel_redis_partition *place = bel__topic_place(burying->dead, burying->timer.id);
    int err = bel__node_register(node, burying->dead);
    struct bel_batch *batch = err ? NULL : bel__batch_join(node, place, BEL_SCRIPT_BURY);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    operation->item.answered = buried;
    bel__batch_item(batch, &operation->item, 1);
    bel__batch_text(batch, burying->timer.id);
    bel__batch_number(batch, (int64_t)bel__record_load(&burying->timer));
    uint8_t *body = bel__batch_space(batch, bel__record_body_bytes(&burying->timer));
    if (body != NULL) bel__record_body_write(&burying->timer, body);
    bel__batch_text(batch, bel__utf8_head(operation->command.fail.reason, BEL_TEXT_BYTES_MAX));
}

static void peeked(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    const struct bel_value *result = &results->items[0];
    if (is_stale(operation, result->type == BEL_VALUE_LIST && result->count == 2)) return;
    int err = make_timer(operation, result->items[0].text, result->items[1].text);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    bury(operation);
}

void bel__faststream_begin_burying(struct bel_operation *operation)
{
    bel__operation_hold(operation);
    send_secret(operation, BEL_SCRIPT_FASTSTREAM_PEEK, peeked);
}
