/* SPDX-License-Identifier: MIT */

/*
 * The requests of jobs as functions. The views of a reply are valid only until `done` returns, so
 * `done` copies what the caller gets.
 */
#include "belfry/driver.h"

#include "backend/job_copy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

/* --- submit --- */

static void note_receipt(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_job_receipt *receipt = request->user;
    if (reply->err) {
        memcpy(receipt->why, reply->why, sizeof receipt->why);
        return;
    }
    const struct bel_job_submitted *submitted = &reply->submitted;
    assert(submitted->id.bytes < sizeof receipt->id);
    memcpy(receipt->id, submitted->id.data, submitted->id.bytes);
    receipt->tasks = submitted->tasks;
    receipt->edges = submitted->edges;
}

int bel_driver_job_submit(struct bel_driver *driver, const struct bel_job_submit *job,
                          struct bel_job_receipt *out)
{
    struct bel_job_receipt receipt = {.id = ""};
    struct bel_request request = {.command = {.verb = BEL_VERB_JOB_SUBMIT, .job_submit = *job},
                                  .done = note_receipt,
                                  .user = &receipt};
    int err = bel_driver_call(driver, &request);
    if (out != NULL) *out = receipt;
    return err;
}

/* --- get and list --- */

static void note_job(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_job **out = request->user;
    if (reply->err == 0) *out = bel__job_copy(reply->job);
}

int bel_driver_job_get(struct bel_driver *driver, const struct bel_job_get *query,
                       struct bel_job **out)
{
    struct bel_job *job = NULL;
    struct bel_request request = {.command = {.verb = BEL_VERB_JOB_GET, .job_get = *query},
                                  .done = note_job,
                                  .user = (void *)&job};
    int err = bel_driver_call(driver, &request);
    if (err == 0 && job == NULL) err = BEL_ENOMEM;
    if (err == 0) *out = job;
    return err;
}

static void note_page(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_job_page **out = request->user;
    if (reply->err) return;
    *out = bel__job_page_copy(reply->jobs.items, reply->jobs.count, reply->jobs.cursor);
}

int bel_driver_job_list(struct bel_driver *driver, const struct bel_job_list *query,
                        struct bel_job_page **out)
{
    struct bel_job_page *page = NULL;
    struct bel_request request = {.command = {.verb = BEL_VERB_JOB_LIST, .job_list = *query},
                                  .done = note_page,
                                  .user = (void *)&page};
    int err = bel_driver_call(driver, &request);
    if (err == 0 && page == NULL) err = BEL_ENOMEM;
    if (err == 0) *out = page;
    return err;
}

/* --- cancel, pause, resume --- */

static void note_change(struct bel_request *request, const struct bel_reply *reply)
{
    bool *out = request->user;
    *out = reply->err == 0 && reply->count > 0;
}

static int change(struct bel_driver *driver, enum bel_verb verb, const char *id, bool *out)
{
    bool has_changed = false;
    struct bel_request request = {.command = {.verb = verb, .job_target = {.id = view_of(id)}},
                                  .done = note_change,
                                  .user = &has_changed};
    int err = bel_driver_call(driver, &request);
    if (err == 0 && out != NULL) *out = has_changed;
    return err;
}

int bel_driver_job_cancel(struct bel_driver *driver, const char *id, bool *out_changed)
{
    return change(driver, BEL_VERB_JOB_CANCEL, id, out_changed);
}

int bel_driver_job_pause(struct bel_driver *driver, const char *id, bool *out_changed)
{
    return change(driver, BEL_VERB_JOB_PAUSE, id, out_changed);
}

int bel_driver_job_resume(struct bel_driver *driver, const char *id, bool *out_changed)
{
    return change(driver, BEL_VERB_JOB_RESUME, id, out_changed);
}

/* --- results --- */

struct result {
    int err;
    char *data;
    size_t bytes;
};

static void note_result(struct bel_request *request, const struct bel_reply *reply)
{
    struct result *result = request->user;
    result->err = BEL_ENOTFOUND;
    if (reply->err != 0 || reply->timers.count == 0) return;
    struct bel_view from = reply->timers.items[0].result;
    if (from.bytes == 0) return;
    result->err = BEL_ENOMEM;
    result->data = malloc(from.bytes + 1);
    if (result->data == NULL) return;
    memcpy(result->data, from.data, from.bytes);
    result->data[from.bytes] = '\0';
    result->bytes = from.bytes;
    result->err = 0;
}

int bel_driver_result(struct bel_driver *driver, const char *topic, const char *id, char **out,
                      size_t *out_bytes)
{
    struct result result = {.err = 0};
    struct bel_request request = {
        .command = {.verb = BEL_VERB_GET, .target = {view_of(topic), view_of(id)}},
        .done = note_result,
        .user = &result};
    int err = bel_driver_call(driver, &request);
    if (err == 0) err = result.err;
    if (err) return err;
    *out = result.data;
    *out_bytes = result.bytes;
    return 0;
}
