/* SPDX-License-Identifier: MIT */

/*
 * A C++ program that calls functions of several layers, so that the linker must find them.
 */
#include <belfry/belfry.h>

#include <cstdio>
#include <cstring>

static bool plan_has_a_next_time()
{
    const char rule[] = "0 9 * * 1-5";
    struct bel_plan *plan = nullptr;
    struct bel_wall next = {};
    if (bel_plan_create(rule, std::strlen(rule), nullptr, &plan, nullptr) != 0) return false;
    int err = bel_plan_next(plan, bel_wall{0}, 0, &next);
    bel_plan_destroy(plan);
    return err == 0 && next.ms == 9 * 3600 * 1000;
}

static bool a_view_has_the_bytes_of_its_literal()
{
    struct bel_view view = BEL_VIEW("payload");
    return view.bytes == 7 && std::memcmp(view.data, "payload", 7) == 0;
}

static bool an_engine_opens_in_memory()
{
    struct bel_engine_options options = {};
    struct bel_engine *engine = nullptr;
    options.now = bel_clock_now(bel_clock_system());
    if (bel_engine_open(&options, &engine, nullptr) != 0) return false;
    bel_engine_close(engine);
    return true;
}

int main()
{
    std::printf("belfry %s: %s\n", bel_version(), bel_error_text(0));
    return plan_has_a_next_time() && a_view_has_the_bytes_of_its_literal() &&
                   an_engine_opens_in_memory()
               ? 0
               : 1;
}
