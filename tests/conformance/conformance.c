/* SPDX-License-Identifier: MIT */

/*
 * The runner, and the clocks of a subject. Each case gets a new backend. Requests and replies are
 * kept until the case ends, so that a case may examine a reply at any time.
 */
#include "conformance.h"

#include "core/units.h"

#include <sched.h>
#include <string.h>

enum {
    TURNS_MAX = 100000, /* before a reply, or at one time */
};

extern const struct group scheduling_group, conflicts_group, claims_group, leases_group,
    failing_group, expiry_group, plans_group, overlap_group, misfire_group, shares_group,
    listing_group, ends_group, settings_group, waiting_group, agenda_group, explaining_group,
    refusing_group, pressure_group, clocks_group, reopening_group, resources_group, jobs_group;

static const struct group *const groups[] = {
    &scheduling_group, &conflicts_group, &claims_group,   &leases_group,  &failing_group,
    &expiry_group,     &plans_group,     &overlap_group,  &misfire_group, &shares_group,
    &listing_group,    &ends_group,      &settings_group, &waiting_group, &agenda_group,
    &explaining_group, &refusing_group,  &pressure_group, &clocks_group,  &reopening_group,
    &resources_group,  &jobs_group,
};

const char *conformance_case = "";

static void start(struct subject *s, const struct kind *kind, struct bel_zones *zones)
{
    *s = (struct subject){.kind = kind, .zones = zones};
    s->now.boot.ns = (uint64_t)(5000 * SECOND) * NS_PER_MS;
    s->now.real.ns = (uint64_t)SECOND * NS_PER_MS;
    s->now.wall.ms = START;
    kind->open(s);
}

static void finish(struct subject *s)
{
    s->kind->close(s);
    for (size_t i = 0; i < s->waiters_count; i++) {
        heard_free(s->waiters[i]->heard);
        free(s->waiters[i]);
    }
    free(s->waiters);
}

/* Returns why a case or a group is left out; NULL: it is not. */
static const char *reason_to_leave_out(const struct kind *kind, const char *name)
{
    for (const struct left_out *at = kind->left_out; at != NULL && at->name != NULL; at++) {
        if (strcmp(at->name, name) == 0) return at->reason;
    }
    return NULL;
}

static void print_left_out(const struct kind *kind)
{
    for (const struct left_out *at = kind->left_out; at != NULL && at->name != NULL; at++) {
        (void)printf("left out: %s: %s\n", at->name, at->reason);
    }
}

static void run_group(const struct kind *kind, const struct group *group, struct bel_zones *zones,
                      const char *only)
{
    static struct subject s;
    if ((group->needs & ~kind->can) != 0) {
        (void)printf("skip %s: %s does not do it\n", group->name, kind->name);
        return;
    }
    if (reason_to_leave_out(kind, group->name) != NULL) return;
    for (size_t i = 0; i < group->tests_count; i++) {
        const struct test *test = &group->tests[i];
        if (reason_to_leave_out(kind, test->name) != NULL) continue;
        if (only != NULL && strstr(test->name, only) == NULL) continue;
        conformance_case = test->name;
        CHECK_NOTE("in %s", test->name);
        start(&s, kind, zones);
        test->run(&s);
        finish(&s);
        (void)printf("ok   %s: %s\n", group->name, test->name);
    }
}

int conformance_run(const struct kind *kind, const char *only)
{
    struct bel_zones *zones;
    CHECK(bel_zones_open(NULL, &zones) == 0);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        bool is_whole = only != NULL && strcmp(groups[i]->name, only) == 0;
        run_group(kind, groups[i], zones, is_whole ? NULL : only);
    }
    bel_zones_close(zones);
    print_left_out(kind);
    return 0;
}

bool can(const struct subject *s, unsigned features)
{
    return (features & ~s->kind->can) == 0;
}

const char *if_can(const struct subject *s, unsigned features, const char *text)
{
    return can(s, features) ? text : "";
}

static void move_boot(struct subject *s, uint64_t ns)
{
    s->now.boot.ns += ns;
    s->now.wall.ms += (int64_t)(ns / NS_PER_MS);
}

static void noted(struct bel_request *request, const struct bel_reply *reply)
{
    bool *is_answered = request->user;
    CHECK(reply->err == 0);
    *is_answered = true;
}

/* A request that changes nothing and names no timer that exists waits for all changes before it:
 * when it is answered, so are all requests of the turn. */
static void wait_for_answers(struct subject *s)
{
    bool is_answered = false;
    static const struct bel_view none = {"none", 4};
    struct bel_request request = {
        .command = {.verb = BEL_VERB_CANCEL,
                    .cancel = {.topic = {"none", 4}, .ids = &none, .ids_count = 1}},
        .done = noted};
    request.user = &is_answered;
    bel_backend_submit(s->backend, &request);
    while (!is_answered) {
        s->next = bel_backend_turn(s->backend, s->now);
        (void)sched_yield();
    }
}

void turn(struct subject *s)
{
    s->next = bel_backend_turn(s->backend, s->now);
    if (s->kind->is_slow) wait_for_answers(s);
    if (s->kind->settle != NULL) s->kind->settle(s);
}

/* All times are whole milliseconds, so an early deadline may be rounded up to one. */
void advance(struct subject *s, uint64_t ms)
{
    uint64_t end = s->now.boot.ns + ms * NS_PER_MS;
    turn(s);
    for (unsigned turns = 0; s->next.due.ns <= end; turns++) {
        CHECK(turns < TURNS_MAX);
        uint64_t now = s->now.boot.ns;
        uint64_t left = s->next.due.ns > now ? s->next.due.ns - now : 0;
        uint64_t rounded = (left + NS_PER_MS - 1) / NS_PER_MS * NS_PER_MS;
        if (rounded > 0) turns = 0;
        move_boot(s, rounded < end - now ? rounded : end - now);
        turn(s);
    }
    move_boot(s, end - s->now.boot.ns);
    turn(s);
}

void jump(struct subject *s, uint64_t ms)
{
    move_boot(s, ms * NS_PER_MS);
    turn(s);
}

void wait_real(struct subject *s, uint64_t ms)
{
    s->now.real.ns += ms * NS_PER_MS;
    turn(s);
}

void step_wall(struct subject *s, int64_t ms)
{
    s->now.wall.ms += ms;
    turn(s);
}

/* The boot clock starts again, as after a restart of the machine. */
void reopen(struct subject *s, uint64_t closed_ms)
{
    s->now.boot.ns = NS_PER_MS;
    s->now.wall.ms += (int64_t)closed_ms;
    s->kind->reopen(s);
    turn(s);
}

int64_t wall(const struct subject *s)
{
    return s->now.wall.ms - START;
}

static void remember_token(struct subject *s, const struct bel_delivery *delivery)
{
    size_t known = s->tokens_count < TOKENS_MAX ? s->tokens_count : TOKENS_MAX, i = 0;
    while (i < known && !is_text(delivery->id, s->tokens[i].id)) {
        i++;
    }
    if (i == known) i = s->tokens_count++ % TOKENS_MAX;
    struct token *token = &s->tokens[i];
    CHECK(delivery->token.bytes > 0 && delivery->token.bytes < sizeof token->text);
    CHECK(delivery->id.bytes > 0 && delivery->id.bytes < sizeof token->id);
    memset(token, 0, sizeof *token);
    memcpy(token->id, delivery->id.data, delivery->id.bytes);
    memcpy(token->text, delivery->token.data, delivery->token.bytes);
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct waiter *waiter = (struct waiter *)request;
    struct subject *s = request->user;
    CHECK(waiter->heard == NULL);
    waiter->heard = heard_copy(request->command.verb, reply);
    if (reply->err || request->command.verb != BEL_VERB_CLAIM) return;
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        remember_token(s, &reply->deliveries.items[i]);
    }
}

struct waiter *submit(struct subject *s, const struct bel_command *command)
{
    struct waiter *waiter = calloc(1, sizeof *waiter);
    struct waiter **waiters = realloc(s->waiters, (s->waiters_count + 1) * sizeof(void *));
    CHECK(waiter != NULL && waiters != NULL);
    s->waiters = waiters;
    s->waiters[s->waiters_count++] = waiter;
    waiter->request = (struct bel_request){.command = *command, .done = answered, .user = s};
    struct bel_claim *claim = &waiter->request.command.claim;
    if (command->verb == BEL_VERB_CLAIM && claim->topics_count <= TOPICS_KEPT) {
        memcpy(waiter->topics, claim->topics, claim->topics_count * sizeof *claim->topics);
        claim->topics = waiter->topics;
    }
    bel_backend_submit(s->backend, &waiter->request);
    return waiter;
}

const struct heard *ask(struct subject *s, const struct bel_command *command)
{
    struct waiter *waiter = submit(s, command);
    CHECK(waiter->heard == NULL);
    for (unsigned turns = 0; waiter->heard == NULL; turns++) {
        CHECK(turns < TURNS_MAX);
        turn(s);
    }
    if (waiter->heard->reply.err) CHECK(waiter->heard->reply.why[0] != 0);
    return waiter->heard;
}
