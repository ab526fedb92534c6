/* SPDX-License-Identifier: MIT */

/*
 * belfry agenda: prints the number of timers due in each step of time; on a terminal with a bar
 * chart, scaled to the width of the terminal, and then the timers that are due next (upcoming.h).
 *
 *     2026-06-01T09:00:00Z      12 ########
 *     2026-06-01T10:00:00Z       3 ##
 */
#include "cli/print.h"
#include "cli/remote_verb.h"
#include "cli/upcoming.h"
#include "core/view.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    TEXT_COLUMNS = 24 + 1 + 10 + 1,
};

static bool is_agenda(const struct bel_value *reply)
{
    if (reply->type != BEL_VALUE_LIST) return false;
    for (size_t i = 0; i < reply->count; i++) {
        const struct bel_value *step = &reply->items[i];
        if (step->count != 2 || step->items[0].type != BEL_VALUE_NUMBER) return false;
        if (step->items[1].type != BEL_VALUE_NUMBER || step->items[1].number < 0) return false;
    }
    return true;
}

static bool is_empty(const struct bel_value *reply)
{
    for (size_t i = 0; i < reply->count; i++) {
        if (reply->items[i].items[1].number > 0) return false;
    }
    return true;
}

static void draw(const struct bel_value *reply)
{
    unsigned columns = bel__cli_columns();
    unsigned room = columns > TEXT_COLUMNS + 10 ? columns - TEXT_COLUMNS - 1 : 10;
    int64_t most = 1;
    for (size_t i = 0; i < reply->count; i++) {
        int64_t count = reply->items[i].items[1].number;
        if (count > most) most = count;
    }
    for (size_t i = 0; i < reply->count; i++) {
        int64_t start = reply->items[i].items[0].number, count = reply->items[i].items[1].number;
        /* A count above 0 has a bar of at least one character. */
        double length = (double)count / (double)most * room;
        unsigned signs = count > 0 && length < 1 ? 1 : (unsigned)length;
        bel__cli_print_time(start);
        printf("%*s %10" PRId64 " ", start % 1000 == 0 ? 4 : 0, "", count);
        if (signs > 0 && bel__cli_has_color()) printf("\033[36m");
        for (unsigned k = 0; k < signs; k++) {
            (void)putchar('#');
        }
        printf("%s\n", signs > 0 && bel__cli_has_color() ? "\033[0m" : "");
    }
}

/* Returns the value of --topic; empty if there is none. */
static struct bel_view topic_of(const struct cli_request *request)
{
    for (size_t i = 1; i + 1 < request->args_count; i += 2) { /* all options have a value */
        if (bel__view_is(request->args[i], "TOPIC")) return request->args[i + 1];
    }
    return (struct bel_view){"", 0};
}

int bel__show_agenda(const struct cli_remote_verb *remote, struct cli_request *request,
                     struct bel_client *client, const struct bel_value *reply)
{
    unsigned next = (unsigned)request->next;
    struct bel_view topic = topic_of(request);
    (void)remote;
    if (!is_agenda(reply)) return bel__show_nonsense(request);
    if (!request->connect.is_json && next > 0) {
        return bel__upcoming_show(request, client, topic, next);
    }
    if (!request->connect.is_json && bel__cli_is_terminal()) {
        if (is_empty(reply)) {
            printf("nothing is due in this time\n");
        } else {
            draw(reply);
        }
        printf("\n");
        return bel__upcoming_show(request, client, topic, CLI_UPCOMING_DEFAULT);
    }
    if (request->connect.is_json) printf("{\"%s\": [", bel__shown[BEL_SHOWN_STEP].list);
    for (size_t i = 0; i < reply->count; i++) {
        const struct bel_value *step = &reply->items[i];
        if (request->connect.is_json) {
            printf("%s", i > 0 ? ", " : "");
            bel__cli_print_places(BEL_SHOWN_STEP, step);
        } else {
            printf("%" PRId64 "\t%" PRId64 "\n", step->items[0].number, step->items[1].number);
        }
    }
    if (!request->connect.is_json) return CLI_OK;
    printf("], \"next\": ");
    int status = bel__upcoming_show(request, client, topic, next > 0 ? next : CLI_UPCOMING_DEFAULT);
    printf("}\n");
    return status;
}
