/* SPDX-License-Identifier: MIT */

/* The links of a crew to a server: two connections. */
#include "client/crew.h"

#include "client/delivery.h"
#include "core/parse.h"
#include "core/view.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ARGS_MAX = 8,
    TIMEOUT_MS = 30000,
};

/* --- the link --- */

static int open_link(struct bel_crew *crew, void **out, struct bel_client_why *why)
{
    struct bel_client *client;
    int err = bel_client_connect(crew->options.address, &crew->options.client, &client, why);
    if (err == 0) *out = client;
    return err;
}

static void close_link(void *link)
{
    bel_client_close(link);
}

/* Shuts down the connection, for writing at first: the server then withdraws the claim and closes
 * the connection. */
static void interrupt(void *link, bool is_last)
{
    (void)shutdown(bel_client_fd(link), is_last ? SHUT_RDWR : SHUT_WR);
}

/* --- claims --- */

static struct bel_view print(char text[BEL_PRINT_BYTES_MAX], uint64_t number)
{
    return (struct bel_view){text, bel__print_u64(text, number)};
}

static int claim(struct bel_crew *crew, struct bel_client *client, unsigned hands,
                 const struct bel_value **out)
{
    struct bel_view *args = crew->claim;
    char count[BEL_PRINT_BYTES_MAX], lease[BEL_PRINT_BYTES_MAX], wait[BEL_PRINT_BYTES_MAX];
    size_t used = 1 + crew->options.topics_count, name_bytes = strlen(crew->options.name);
    args[used++] = BEL_VIEW("COUNT");
    args[used++] = print(count, hands);
    if (crew->options.lease_ms > 0) {
        args[used++] = BEL_VIEW("LEASE");
        args[used++] = print(lease, crew->options.lease_ms);
    }
    args[used++] = BEL_VIEW("WAIT");
    args[used++] = print(wait, BEL_CREW_WAIT_MS);
    if (name_bytes > 0) {
        args[used++] = BEL_VIEW("WORKER");
        args[used++] = (struct bel_view){crew->options.name, name_bytes};
    }
    uint32_t timeout = crew->options.client.timeout_ms;
    bel_client_set_timeout(client, BEL_CREW_WAIT_MS + (timeout > 0 ? timeout : TIMEOUT_MS));
    return bel_client_call(client, args, used, out);
}

/* Gives out a delivery of a reply. If memory is out, the delivery is dropped; the timer is due
 * again when its lease has expired. */
static void give(struct bel_crew *crew, const struct bel_value *value)
{
    struct bel_delivery *delivery;
    int err = bel__client_delivery(value, &delivery);
    if (err == 0) {
        bel__crew_give(crew, delivery);
    } else {
        bel__crew_trouble(crew, "dropped a delivery: %s", bel_error_text(err));
    }
}

/* Sends one CLAIM and gives out its deliveries. */
static int claim_once(struct bel_crew *crew, void *link, unsigned count)
{
    const struct bel_value *reply = NULL;
    int err = claim(crew, link, count, &reply);
    if (err) return err;
    if (reply->type == BEL_VALUE_ERROR) {
        bel__crew_trouble(crew, "%.*s", (int)reply->text.bytes, (const char *)reply->text.data);
        return BEL_EINVAL;
    }
    if (reply->type != BEL_VALUE_LIST || reply->count > count) return BEL_EINVAL;
    for (size_t i = 0; i < reply->count; i++) {
        give(crew, &reply->items[i]);
    }
    return 0;
}

/* --- notices --- */

/* The command of a notice. */
struct request {
    struct bel_view args[ARGS_MAX];
    size_t count;
    char delay[BEL_PRINT_BYTES_MAX];
};

static void add(struct request *request, struct bel_view arg)
{
    assert(request->count < ARGS_MAX);
    request->args[request->count++] = arg;
}

static void add_delay(struct request *request, const struct bel_report *report)
{
    if (!report->has_delay) return;
    add(request, BEL_VIEW("IN"));
    size_t bytes = bel__print_u64(request->delay, report->delay_ms);
    add(request, (struct bel_view){request->delay, bytes});
}

static void put(struct request *request, const struct bel_notice *notice)
{
    static const char *const names[] = {
        [BEL_REPORT_DONE] = "ACK",         [BEL_REPORT_FAILED] = "FAIL",
        [BEL_REPORT_RELEASED] = "RELEASE", [BEL_REPORT_REJECTED] = "FAIL",
        [BEL_REPORT_LIMITED] = "FAIL",     [BEL_REPORT_RESOURCE] = "FAIL"};
    const struct bel_report *report = notice->report;
    const char *name = report != NULL ? names[report->kind] : "EXTEND";
    request->count = 0;
    add(request, (struct bel_view){name, strlen(name)});
    add(request, notice->token);
    if (report == NULL) return;
    if (report->kind == BEL_REPORT_DONE) {
        if (report->result == NULL) return;
        add(request, BEL_VIEW("RESULT"));
        add(request, (struct bel_view){report->result, report->result_bytes});
        return;
    }
    if (report->kind == BEL_REPORT_REJECTED) {
        add(request, BEL_VIEW("DEAD"));
    } else {
        add_delay(request, report);
    }
    if (report->kind != BEL_REPORT_RELEASED && report->reason[0] != '\0') {
        add(request, BEL_VIEW("REASON"));
        add(request, (struct bel_view){report->reason, strlen(report->reason)});
    }
    if (report->kind == BEL_REPORT_LIMITED || report->kind == BEL_REPORT_RESOURCE) {
        bool is_limited = report->kind == BEL_REPORT_LIMITED;
        add(request, BEL_VIEW("KIND"));
        add(request, is_limited ? BEL_VIEW("limited") : BEL_VIEW("resource"));
    }
}

static enum bel_answer answer_of(const struct bel_value *error)
{
    struct bel_view code = bel_value_code(error);
    bool is_refused = bel__view_is(code, "FULL") || bel__view_is(code, "BADARG");
    return is_refused ? BEL_ANSWER_REFUSED : BEL_ANSWER_LOST;
}

/* Notes the reply to a FAIL: the state of the timer, and its due time or nil. */
static void note_verdict(const struct bel_notice *notice, const struct bel_value *reply)
{
    static const struct {
        const char *name;
        enum bel_state state;
    } states[] = {{"scheduled", BEL_SCHEDULED},
                  {"ready", BEL_READY},
                  {"dead", BEL_DEAD},
                  {"expired", BEL_EXPIRED}};
    if (notice->report == NULL || reply->type != BEL_VALUE_LIST || reply->count < 2) return;
    const struct bel_value *due = &reply->items[1];
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (!bel_value_is(&reply->items[0], states[i].name)) continue;
        int64_t due_ms = due->type == BEL_VALUE_NUMBER ? due->number : 0;
        bel__crew_judged(notice, (struct bel_verdict){states[i].state, {due_ms}});
    }
}

static void handle_reply(struct bel_crew *crew, struct bel_notice *notice,
                         const struct bel_value *reply)
{
    bool is_error = reply->type == BEL_VALUE_ERROR;
    bool is_number = notice->report != NULL && reply->type == BEL_VALUE_NUMBER;
    bool is_late = is_number && reply->number == 0;
    enum bel_answer answer = is_error ? answer_of(reply) : BEL_ANSWER_TAKEN;
    note_verdict(notice, reply);
    bel__crew_answered(crew, notice, is_late ? BEL_ANSWER_LOST : answer,
                       is_late ? BEL_VIEW("STALE " BEL_CREW_LATE) : reply->text);
}

static int tell(struct bel_crew *crew, void *link, struct bel_notice *notices, size_t count)
{
    struct request request;
    int err = 0;
    for (size_t i = 0; i < count && err == 0; i++) {
        put(&request, &notices[i]);
        err = bel_client_send(link, request.args, request.count);
    }
    for (size_t i = 0; i < count && err == 0; i++) {
        const struct bel_value *reply = NULL;
        err = bel_client_receive(link, &reply);
        if (err == 0) handle_reply(crew, &notices[i], reply);
    }
    return err;
}

const struct bel_crew_side bel__crew_server = {.lost = "connection to the server lost",
                                               .open = open_link,
                                               .close = close_link,
                                               .interrupt = interrupt,
                                               .claim = claim_once,
                                               .tell = tell};
