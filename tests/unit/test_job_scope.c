/* SPDX-License-Identifier: MIT */

/* Keys that are limited to topics, and jobs: which jobs such a key sees, also those that an older
 * version has stored. */
#include "../jobs_rig.h"
#include "engine/jobs/job_topics.h"
#include "engine/state/state.h"

/* --- a key limited to the topic `mine` --- */

static bool has_mine(const void *context, struct bel_view topic)
{
    (void)context;
    return topic.bytes == 4 && memcmp(topic.data, "mine", 4) == 0;
}

static const struct bel_job_scope mine = {.has = has_mine};

static int submit_scoped(struct rig *rig, const char *json, bool is_replacement)
{
    return rig_ask(rig, (struct bel_command){.verb = BEL_VERB_JOB_SUBMIT,
                                             .job_submit = {.text = view(json),
                                                            .is_replacement = is_replacement,
                                                            .scope = mine}});
}

/* Returns whether the key sees the job; all commands must agree. */
static bool is_seen(struct rig *rig, const char *id)
{
    struct bel_command get = {.verb = BEL_VERB_JOB_GET, .job_get = {.id = view(id), .scope = mine}};
    struct bel_command pause = {.verb = BEL_VERB_JOB_PAUSE,
                                .job_target = {.id = view(id), .scope = mine}};
    struct bel_command list = {.verb = BEL_VERB_JOB_LIST, .job_list = {.scope = mine}};
    char text[256];
    CHECK(rig_job(rig, BEL_VERB_JOB_GET, id) == 0); /* a key without a scope sees it */
    bool is_plan = rig->seen.job.state == BEL_JOB_SCHEDULED;
    bool is_found = rig_ask(rig, get) == 0;
    CHECK(is_found || rig->seen.err == BEL_ENOTFOUND);
    CHECK(rig_ask(rig, list) == 0);
    CHECK_EQ(rig->seen.count, is_found ? 1 : 0);
    if (!is_plan) CHECK(rig_ask(rig, pause) == (is_found ? 0 : BEL_ENOTFOUND));
    if (!is_plan && !is_found) {
        (void)snprintf(text, sizeof text,
                       "{\"id\":\"%s\",\"tasks\":[{\"id\":\"a\",\"topic\":\"mine\"}]}", id);
        CHECK(submit_scoped(rig, text, true) == BEL_ENOTFOUND);
    }
    return is_found;
}

static void expect_seen(const char *json, bool is_expected)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK_NOTE("%s", json);
    CHECK(rig_submit(&rig, json) == 0);
    CHECK(is_seen(&rig, "j") == is_expected);
    rig_reopen(&rig);
    CHECK(is_seen(&rig, "j") == is_expected);
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "j") == 0);
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_JOB_GET,
                                             .job_get = {.id = view("j"), .scope = mine}}) ==
          (is_expected ? 0 : BEL_ENOTFOUND));
    rig_finish(&rig);
}

#define TASK(topic)       "{\"id\":\"a\",\"topic\":\"" topic "\"}"
#define JOB(rest)         "{\"id\":\"j\"," rest "}"
#define THEN(topic, rest) "{\"job\":{\"tasks\":[" TASK(topic) "]" rest "}}"

static void a_key_needs_every_topic_of_then(void)
{
    expect_seen(JOB("\"tasks\":[" TASK("mine") "]"), true);
    expect_seen(JOB("\"tasks\":[" TASK("other") "]"), false);
    expect_seen(JOB("\"tasks\":[" TASK("mine") "],\"then\":[" THEN("mine", "") "]"), true);
    expect_seen(JOB("\"tasks\":[" TASK("mine") "],\"then\":[" THEN("other", "") "]"), false);
    expect_seen(JOB("\"tasks\":[" TASK("mine") "],\"then\":[" THEN("mine", "") "," THEN(
                    "mine", ",\"then\":[" THEN("other", "") "]") "]"),
                false);
    expect_seen(JOB("\"tasks\":[],\"then\":[" THEN("other", "") "]"), false);
}

static void a_key_needs_every_topic_of_a_recurring_job(void)
{
    expect_seen(JOB("\"every\":\"1h\",\"tasks\":[" TASK("mine") "]"), true);
    expect_seen(JOB("\"every\":\"1h\",\"tasks\":[" TASK("other") "]"), false);
    expect_seen(
        JOB("\"every\":\"1h\",\"tasks\":[" TASK("mine") "],\"then\":[" THEN("other", "") "]"),
        false);
}

/* Cancels the job `j` after its text in topic `other` was replaced by one in topic `mine`. Returns
 * the state of the job that the first text has made. */
static enum bel_job_state cancel_replaced(struct bel_job_scope scope)
{
    struct rig rig = {0};
    char old[BEL_ID_BYTES], made[BEL_ID_BYTES];
    rig_open(&rig);
    CHECK(rig_submit(&rig, JOB("\"every\":\"1h\",\"overlap\":\"allow\",\"tasks\":[" TASK(
                               "other") "]")) == 0);
    rig_move(&rig, 3600000);
    (void)snprintf(old, sizeof old, "j@%lld", (long long)rig.now.wall.ms);
    const char *text = JOB("\"every\":\"1h\",\"overlap\":\"allow\",\"tasks\":[" TASK("mine") "]");
    CHECK(rig_ask(&rig, (struct bel_command){
                            .verb = BEL_VERB_JOB_SUBMIT,
                            .job_submit = {.text = view(text), .is_replacement = true}}) == 0);
    rig_move(&rig, 3600000);
    (void)snprintf(made, sizeof made, "j@%lld", (long long)rig.now.wall.ms);
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_JOB_CANCEL,
                                             .job_target = {view("j"), scope}}) == 0);
    rig_settle(&rig);
    CHECK(rig_state(&rig, "j") == BEL_JOB_CANCELLED);
    CHECK(rig_state(&rig, made) == BEL_JOB_CANCELLED);
    enum bel_job_state state = rig_state(&rig, old);
    if (state == BEL_JOB_RUNNING) {
        CHECK(rig_ack(&rig, rig_claim(&rig, "other")) == 1);
        rig_settle(&rig);
        CHECK(rig_state(&rig, old) == BEL_JOB_DONE);
    }
    rig_finish(&rig);
    return state;
}

static void a_key_does_not_cancel_jobs_of_an_older_text(void)
{
    CHECK(cancel_replaced(mine) == BEL_JOB_RUNNING);
    CHECK(cancel_replaced((struct bel_job_scope){0}) == BEL_JOB_CANCELLED);
}

/* --- rows of an older version --- */

/* Makes the list of the job `j` what an older version has written: `count` topics, not marked. */
static void make_old(struct rig *rig, uint64_t count)
{
    struct bel_engine *engine = rig->engine;
    struct bel_job_found job;
    struct bel_edge topics[BEL_EDGES_OF_ROW];
    struct bel_view row;
    uint8_t bytes[BEL_EDGES_ROW_BYTES_MAX];
    CHECK(bel__job_find_any(engine, view("j"), &job) == 0);
    struct bel_key key = bel__edges_key(job.row.number, BEL_EDGES_TOPICS, 0, 0);
    CHECK(bel__store_get(engine->store, &key, &row) == 0);
    CHECK(bel__edges_read(row, (size_t)job.row.topics, topics) == 0);
    for (uint64_t i = 0; i < count; i++) {
        topics[i].on = BEL_EDGE_SUCCESS;
    }
    CHECK(bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES + sizeof bytes,
                            BEL_STORE_ADD) == 0);
    if (count > 0) {
        struct bel_view value = {bytes, bel__edges_write(topics, (size_t)count, bytes)};
        bel__rows_put(&engine->rows, &key, value, BEL_ROW_ANY);
    } else {
        bel__rows_delete(&engine->rows, &key);
    }
    job.row.topics = count;
    bel__job_put(engine, &job);
    rig_settle(rig);
    rig_reopen(rig);
}

static void expect_old_seen(const char *json, uint64_t count, bool is_expected)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK_NOTE("%s", json);
    CHECK(rig_submit(&rig, json) == 0);
    CHECK(is_seen(&rig, "j"));
    make_old(&rig, count);
    CHECK(is_seen(&rig, "j") == is_expected);
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "j") == 0);
    rig_finish(&rig);
}

/* Even if all its topics are those of the key: the row does not say so. */
static void a_job_whose_topics_are_not_known_is_out_of_scope(void)
{
    expect_old_seen(JOB("\"tasks\":[" TASK("mine") "]"), 1, true);
    expect_old_seen(JOB("\"tasks\":[" TASK("mine") "],\"then\":[" THEN("mine", "") "]"), 1, false);
    expect_old_seen(JOB("\"every\":\"1h\",\"tasks\":[" TASK("mine") "]"), 0, false);
}

/* --- many topics --- */

static void topics_of_then_are_made_in_slices(void)
{
    static struct rig_text text;
    struct rig rig = {.work_max = 200};
    rig_open(&rig);
    text.used = 0;
    rig_put(&text, "{\"id\":\"j\",\"tasks\":[],\"then\":[{\"job\":{\"tasks\":[");
    for (int i = 0; i < 1200; i++) {
        rig_put(&text, "%s{\"id\":\"%d\",\"topic\":\"t%d\"}", i > 0 ? "," : "", i, i);
    }
    rig_put(&text, "]}}]}");
    CHECK(rig_submit(&rig, text.bytes) == 0);
    CHECK(rig.turns > 10);
    CHECK(rig_job(&rig, BEL_VERB_JOB_GET, "j") == 0);
    CHECK(!is_seen(&rig, "j"));
    rig_finish(&rig);
}

int main(void)
{
    RUN(a_key_needs_every_topic_of_then);
    RUN(a_key_needs_every_topic_of_a_recurring_job);
    RUN(a_key_does_not_cancel_jobs_of_an_older_text);
    RUN(a_job_whose_topics_are_not_known_is_out_of_scope);
    RUN(topics_of_then_are_made_in_slices);
    return 0;
}
