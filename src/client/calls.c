/* SPDX-License-Identifier: MIT */

/* The usual commands as functions. */
#include "client/client.h"

#include "client/delivery.h"
#include "core/parse.h"

#include <string.h>

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static struct bel_view print(char text[BEL_PRINT_BYTES_MAX], uint64_t number)
{
    return (struct bel_view){text, bel__print_u64(text, number)};
}

int bel_client_schedule(struct bel_client *client, const char *topic, const char *id,
                        struct bel_view payload, uint64_t delay_ms)
{
    char delay[BEL_PRINT_BYTES_MAX];
    const struct bel_value *reply;
    struct bel_view args[7] = {BEL_VIEW("SCHEDULE"), view_of(topic), payload, BEL_VIEW("IN"),
                               print(delay, delay_ms)};
    size_t count = 5;
    if (id != NULL) {
        args[count++] = BEL_VIEW("ID");
        args[count++] = view_of(id);
    }
    return bel__client_ask(client, args, count, 0, BEL_VALUE_TEXT, &reply);
}

int bel_client_cancel(struct bel_client *client, const char *topic, const char *id,
                      bool *out_was_there)
{
    const struct bel_view args[] = {BEL_VIEW("CANCEL"), view_of(topic), view_of(id)};
    const struct bel_value *reply;
    int err = bel__client_ask(client, args, 3, 0, BEL_VALUE_NUMBER, &reply);
    if (err == 0 && out_was_there != NULL) *out_was_there = reply->number > 0;
    return err;
}

int bel_client_claim(struct bel_client *client, const char *topic, uint64_t wait_ms,
                     struct bel_delivery **out)
{
    char wait[BEL_PRINT_BYTES_MAX];
    const struct bel_value *reply;
    const struct bel_view args[] = {BEL_VIEW("CLAIM"), view_of(topic), BEL_VIEW("WAIT"),
                                    print(wait, wait_ms)};
    int err = bel__client_ask(client, args, 4, wait_ms, BEL_VALUE_LIST, &reply);
    if (err) return err;
    if (reply->count == 0) {
        *out = NULL;
        return 0;
    }
    err = bel__client_delivery(&reply->items[0], out);
    return err ? bel__client_fails(client, err, bel_error_text(err)) : 0;
}

static int ack(struct bel_client *client, const struct bel_view *args, size_t count)
{
    const struct bel_value *reply;
    int err = bel__client_ask(client, args, count, 0, BEL_VALUE_NUMBER, &reply);
    if (err || reply->number > 0) return err;
    return bel__client_fails(
        client, BEL_ESTALE,
        "the lease has ended: it expired, or the timer was cancelled or replaced");
}

int bel_client_ack(struct bel_client *client, const struct bel_delivery *delivery)
{
    const struct bel_view args[] = {BEL_VIEW("ACK"), delivery->token};
    return ack(client, args, 2);
}

int bel_client_ack_result(struct bel_client *client, const struct bel_delivery *delivery,
                          struct bel_view result)
{
    const struct bel_view args[] = {BEL_VIEW("ACK"), delivery->token, BEL_VIEW("RESULT"), result};
    return ack(client, args, 4);
}

int bel_client_fail(struct bel_client *client, const struct bel_delivery *delivery,
                    const char *reason)
{
    const struct bel_view args[] = {BEL_VIEW("FAIL"), delivery->token, BEL_VIEW("REASON"),
                                    view_of(reason != NULL ? reason : "")};
    const struct bel_value *reply;
    return bel__client_ask(client, args, reason != NULL ? 4 : 2, 0, BEL_VALUE_LIST, &reply);
}

int bel_client_fail_resource(struct bel_client *client, const struct bel_delivery *delivery,
                             const char *reason)
{
    const struct bel_view args[] = {BEL_VIEW("FAIL"),   delivery->token,
                                    BEL_VIEW("KIND"),   BEL_VIEW("resource"),
                                    BEL_VIEW("REASON"), view_of(reason != NULL ? reason : "")};
    const struct bel_value *reply;
    return bel__client_ask(client, args, reason != NULL ? 6 : 4, 0, BEL_VALUE_LIST, &reply);
}

int bel_client_limited(struct bel_client *client, const struct bel_delivery *delivery,
                       uint64_t delay_ms)
{
    char delay[BEL_PRINT_BYTES_MAX];
    const struct bel_view args[] = {BEL_VIEW("FAIL"),    delivery->token, BEL_VIEW("KIND"),
                                    BEL_VIEW("limited"), BEL_VIEW("IN"),  print(delay, delay_ms)};
    const struct bel_value *reply;
    return bel__client_ask(client, args, delay_ms > 0 ? 6 : 4, 0, BEL_VALUE_LIST, &reply);
}

int bel_client_extend(struct bel_client *client, const struct bel_delivery *delivery,
                      uint64_t lease_ms)
{
    char lease[BEL_PRINT_BYTES_MAX];
    const struct bel_view args[] = {BEL_VIEW("EXTEND"), delivery->token, print(lease, lease_ms)};
    const struct bel_value *reply;
    return bel__client_ask(client, args, lease_ms > 0 ? 3 : 2, 0, BEL_VALUE_NUMBER, &reply);
}
