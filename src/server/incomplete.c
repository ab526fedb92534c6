/* SPDX-License-Identifier: MIT */

/*
 * Requests that have not arrived completely, over RESP and HTTP. session/input_total.h decides
 * which of them are read and which are dropped; the loop gives it the time, and reports what was
 * dropped.
 */
#include "server/loop_state.h"

static void on_input_tick(uv_timer_t *timer)
{
    struct bel_loop *loop = timer->data;
    struct bel_input_total *total = loop->options.service->input_total;
    size_t bytes = total->bytes;
    bel__server_clock_read(loop->options.clock);
    unsigned dropped = bel__input_total_tick(total, loop->options.clock->now.real);
    if (!bel__input_total_is_watched(total)) (void)uv_timer_stop(timer);
    if (dropped == 0) return;
    loop->options.metrics->incomplete_dropped += dropped;
    BEL_LOG(loop->options.log, BEL_LOG_WARN,
            "dropped requests that were incomplete and stood still",
            BEL_LOG_NUMBER("dropped", dropped), BEL_LOG_NUMBER("input_bytes", bytes),
            BEL_LOG_NUMBER("input_total", total->bytes_max));
}

void bel__incomplete_admit(struct bel_loop *loop)
{
    struct bel_input_total *total = loop->options.service->input_total;
    bel__input_total_admit(total);
    if (!bel__input_total_is_watched(total)) return;
    if (uv_is_active((uv_handle_t *)&loop->input_timer)) return;
    (void)uv_timer_start(&loop->input_timer, on_input_tick, BEL_INPUT_TICK_MS, BEL_INPUT_TICK_MS);
}

bool bel__incomplete_can_go_on(const struct bel_loop *loop)
{
    return bel__input_total_can_go_on(loop->options.service->input_total);
}
