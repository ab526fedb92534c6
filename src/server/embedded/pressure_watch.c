/* SPDX-License-Identifier: MIT */

/* A timer of the loop, on real time: a virtual clock does not slow it down. */
#include "server/embedded/pressure_watch.h"

#include "backend/pressure.h"
#include "server/loop_state.h"

enum {
    PERIOD_MS = 1000,
};

static void log_change(const struct bel_pressure_watch *watch, enum bel_pressure_level before)
{
    const struct bel_pressure_state *state = &bel_engine_stats(watch->engine)->pressure;
    const struct bel_pressure_use *use = &state->uses[state->cause];
    bool is_worse = state->level > before && state->level >= BEL_PRESSURE_HIGH;
    enum bel_log_level level = is_worse ? BEL_LOG_WARN : BEL_LOG_INFO;
    const char *name = bel_pressure_level_name(state->level);
    if (state->level == BEL_PRESSURE_NONE) {
        BEL_LOG(watch->log, level, "pressure changed", BEL_LOG_TEXT("level", name));
    } else if (use->is_unreadable) {
        BEL_LOG(watch->log, level, "pressure changed", BEL_LOG_TEXT("level", name),
                BEL_LOG_TEXT("cause", bel_pressure_cause_name(state->cause)),
                BEL_LOG_TEXT("why", "cannot be measured"));
    } else {
        BEL_LOG(watch->log, level, "pressure changed", BEL_LOG_TEXT("level", name),
                BEL_LOG_TEXT("cause", bel_pressure_cause_name(state->cause)),
                BEL_LOG_NUMBER("percent", bel__pressure_percent(use)));
    }
}

bool bel__pressure_watch_take(struct bel_pressure_watch *watch)
{
    const struct bel_pressure_state *state = &bel_engine_stats(watch->engine)->pressure;
    enum bel_pressure_level before = state->level;
    struct bel_pressure_sample sample;
    watch->measure(watch->context, &sample);
    bool needs_turn = bel_engine_pressure(watch->engine, &sample);
    if (state->level != before) log_change(watch, before);
    return needs_turn;
}

static void on_second(uv_timer_t *timer)
{
    struct bel_pressure_watch *watch = timer->data;
    if (bel__pressure_watch_take(watch)) watch->loop->is_woken = true;
}

void bel__pressure_watch_start(struct bel_pressure_watch *watch)
{
    (void)uv_timer_init(&watch->loop->uv, &watch->timer);
    watch->timer.data = watch;
    (void)bel__pressure_watch_take(watch);
    (void)uv_timer_start(&watch->timer, on_second, PERIOD_MS, PERIOD_MS);
}
