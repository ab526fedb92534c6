/* SPDX-License-Identifier: MIT */

/*
 * The suite, spoken (speaker.h) to an engine in memory. What passes here is what the protocol
 * carries. With --resp3 it is spoken in version 3.
 */
#include "../check.h"
#include "belfry/engine.h"
#include "conformance.h"
#include "speaker.h"

#include <stdlib.h>
#include <string.h>

struct spoken {
    struct bel_engine *engine;
    struct speaker *speaker;
};

static void open_spoken(struct subject *s)
{
    struct spoken *spoken = calloc(1, sizeof *spoken);
    struct bel_engine_options options = {.now = s->now, .zones = s->zones};
    CHECK(spoken != NULL && bel_engine_open(&options, &spoken->engine, NULL) == 0);
    spoken->speaker = speaker_open(bel_engine_backend(spoken->engine), s->zones, s->now);
    s->context = spoken;
    s->backend = speaker_backend(spoken->speaker);
}

static void close_spoken(struct subject *s)
{
    struct spoken *spoken = s->context;
    speaker_close(spoken->speaker, s->now);
    bel_engine_close(spoken->engine);
    free(spoken);
}

int main(int argc, char **argv)
{
    static const struct kind spoken = {.name = "the engine, spoken to",
                                       .can = CAN_STEP_WALL | CAN_GROUP | CAN_LIMIT,
                                       .open = open_spoken,
                                       .close = close_spoken};
    int used = 1;
    if (argc > 1 && strcmp(argv[1], "--resp3") == 0) {
        speaker_set_version(3);
        used++;
    }
    return conformance_run(&spoken, argc > used ? argv[used] : NULL);
}
