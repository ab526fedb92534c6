/* SPDX-License-Identifier: MIT */
#include "redis/outcome.h"

#include "core/view.h"

#include <string.h>

static const char nothing[] = "nothing was changed", unknown[] = "the outcome is unknown";

static bool has_said(const char *reason)
{
    return strstr(reason, nothing) != NULL || strstr(reason, "outcome is unknown") != NULL;
}

/* Puts the outcome and the server before a reason that does not have them. */
static void say(const struct bel_servers *servers, uint16_t slot, const char *outcome,
                const char *reason, struct bel_why *out)
{
    char name[BEL_SERVER_NAME_BYTES];
    bel__servers_print(servers, slot, name);
    if (has_said(reason)) {
        (void)bel__why_say(out, 0, "%s", reason);
    } else if (strstr(reason, name) != NULL) {
        (void)bel__why_say(out, 0, "%s: %s", outcome, reason);
    } else {
        (void)bel__why_say(out, 0, "%s: %s: %s", outcome, name, reason);
    }
}

/* Returns whether a server replies with a code before it does anything. Scripts look at the types
 * of their keys before they change one. */
static bool is_early(struct bel_view code)
{
    static const char *const codes[] = {
        "BUSY",       "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF",   "NOAUTH",  "NOPERM",
        "NOREPLICAS", "NOSCRIPT",    "OOM",     "READONLY",   "WRONGTYPE", "TRYAGAIN"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (bel__view_is(code, codes[i])) return true;
    }
    return false;
}

void bel__outcome_refused(const struct bel_servers *servers, uint16_t slot, bool is_harmless,
                          const struct bel_value *error, struct bel_why *out)
{
    struct bel_why reason;
    struct bel_view text = bel__view_head(error->text, BEL_WHY_BYTES / 2);
    (void)bel__why_say(&reason, 0, "%.*s", (int)text.bytes, (const char *)text.data);
    char *script = strstr(reason.text, " script: "); /* its number and line follow */
    if (script != NULL) *script = 0;
    bool is_nothing = is_harmless || is_early(bel_value_code(error));
    say(servers, slot, is_nothing ? nothing : unknown, reason.text, out);
}

void bel__outcome_unanswered(const struct bel_servers *servers, uint16_t slot, bool is_harmless,
                             const struct bel_redis_reply *reply, struct bel_why *out)
{
    const char *why = bel__servers_why(servers);
    if (reply->err == BEL_EBUSY) {
        say(servers, slot, "nothing was changed, the store was not reached",
            why[0] != 0 ? why : reply->why, out);
    } else {
        bool is_nothing = is_harmless || reply->err == BEL_ECLOSED;
        say(servers, slot, is_nothing ? nothing : unknown, reply->why, out);
    }
}

void bel__outcome_misled(const struct bel_servers *servers, uint16_t slot, bool is_harmless,
                         struct bel_why *out)
{
    say(servers, slot, is_harmless ? nothing : unknown, "the reply makes no sense", out);
}
