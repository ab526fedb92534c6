/* SPDX-License-Identifier: MIT */

/* The commands of jobs as functions. */
#include "client/client.h"

#include <string.h>

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

/* Return a field of a map, or an empty text and 0 if the map has no such field. */
static struct bel_view text_in(const struct bel_value *map, const char *name)
{
    const struct bel_value *value = bel_value_find(map, name);
    return value != NULL && value->type == BEL_VALUE_TEXT ? value->text : BEL_VIEW("");
}

static uint64_t number_in(const struct bel_value *map, const char *name)
{
    const struct bel_value *value = bel_value_find(map, name);
    bool is_number = value != NULL && value->type == BEL_VALUE_NUMBER && value->number > 0;
    return is_number ? (uint64_t)value->number : 0;
}

static int submit(struct bel_client *client, const struct bel_view *args, size_t count,
                  struct bel_client_submitted *out)
{
    const struct bel_value *reply;
    int err = bel__client_ask(client, args, count, 0, BEL_VALUE_MAP, &reply);
    if (err != 0 || out == NULL) return err;
    *out = (struct bel_client_submitted){.id = text_in(reply, "id"),
                                         .tasks = number_in(reply, "tasks"),
                                         .edges = number_in(reply, "edges")};
    return 0;
}

int bel_client_job_submit(struct bel_client *client, struct bel_view text,
                          struct bel_client_submitted *out)
{
    const struct bel_view args[] = {BEL_VIEW("JOB"), BEL_VIEW("SUBMIT"), text};
    return submit(client, args, 3, out);
}

int bel_client_job_replace(struct bel_client *client, struct bel_view text,
                           struct bel_client_submitted *out)
{
    const struct bel_view args[] = {BEL_VIEW("JOB"), BEL_VIEW("SUBMIT"), text, BEL_VIEW("REPLACE")};
    return submit(client, args, 4, out);
}

bool bel_client_job_read(const struct bel_value *value, struct bel_client_job *out)
{
    if (value->type != BEL_VALUE_MAP && value->type != BEL_VALUE_LIST) return false;
    struct bel_client_job job = {.id = text_in(value, "id"),
                                 .state = text_in(value, "state"),
                                 .reason = text_in(value, "reason"),
                                 .progress = number_in(value, "progress"),
                                 .total = number_in(value, "total"),
                                 .tasks = bel_value_find(value, "tasks"),
                                 .cursor = text_in(value, "cursor"),
                                 .fields = value};
    if (job.id.bytes == 0 || job.state.bytes == 0) return false;
    *out = job;
    return true;
}

int bel_client_job_get(struct bel_client *client, const char *id, struct bel_view cursor,
                       struct bel_client_job *out)
{
    const struct bel_view args[] = {BEL_VIEW("JOB"), BEL_VIEW("GET"), view_of(id),
                                    BEL_VIEW("CURSOR"), cursor};
    const struct bel_value *reply;
    int err = bel__client_ask(client, args, cursor.bytes > 0 ? 5 : 3, 0, BEL_VALUE_MAP, &reply);
    if (err) return err;
    if (bel_client_job_read(reply, out)) return 0;
    return bel__client_fails(client, BEL_EINVAL, "the reply is not a job");
}

int bel_client_job_list(struct bel_client *client, const char *state, struct bel_view cursor,
                        struct bel_client_jobs *out)
{
    struct bel_view args[6] = {BEL_VIEW("JOB"), BEL_VIEW("LIST")};
    size_t count = 2;
    if (state != NULL) {
        args[count++] = BEL_VIEW("STATE");
        args[count++] = view_of(state);
    }
    if (cursor.bytes > 0) {
        args[count++] = BEL_VIEW("CURSOR");
        args[count++] = cursor;
    }
    const struct bel_value *reply;
    int err = bel__client_ask(client, args, count, 0, BEL_VALUE_LIST, &reply);
    if (err) return err;
    bool is_page = reply->count == 2 && reply->items[0].type == BEL_VALUE_TEXT &&
                   reply->items[1].type == BEL_VALUE_LIST;
    if (!is_page) return bel__client_fails(client, BEL_EINVAL, "the reply is not a list of jobs");
    *out = (struct bel_client_jobs){.items = reply->items[1].items,
                                    .count = reply->items[1].count,
                                    .cursor = reply->items[0].text};
    return 0;
}

static int change(struct bel_client *client, struct bel_view verb, const char *id, bool *out)
{
    const struct bel_view args[] = {BEL_VIEW("JOB"), verb, view_of(id)};
    const struct bel_value *reply;
    int err = bel__client_ask(client, args, 3, 0, BEL_VALUE_NUMBER, &reply);
    if (err == 0 && out != NULL) *out = reply->number > 0;
    return err;
}

int bel_client_job_cancel(struct bel_client *client, const char *id, bool *out_changed)
{
    return change(client, BEL_VIEW("CANCEL"), id, out_changed);
}

int bel_client_job_pause(struct bel_client *client, const char *id, bool *out_changed)
{
    return change(client, BEL_VIEW("PAUSE"), id, out_changed);
}

int bel_client_job_resume(struct bel_client *client, const char *id, bool *out_changed)
{
    return change(client, BEL_VIEW("RESUME"), id, out_changed);
}
