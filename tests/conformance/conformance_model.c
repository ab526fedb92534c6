/* SPDX-License-Identifier: MIT */

/*
 * The suite against the model: this checks the suite, and that the model follows docs/SEMANTICS.md,
 * before either is used to test something else.
 */
#include "conformance.h"
#include "model.h"

static void open_model(struct subject *s)
{
    s->context = model_create(&(struct model_options){.now = s->now, .zones = s->zones});
    s->backend = model_backend(s->context);
}

static void close_model(struct subject *s)
{
    model_destroy(s->context);
}

static void reopen_model(struct subject *s)
{
    model_reopen(s->context, s->now);
}

static void press_model(struct subject *s, const struct bel_pressure_sample *sample)
{
    model_pressure(s->context, sample);
}

int main(int argc, char **argv)
{
    static const struct kind kind = {.name = "the model",
                                     .can = CAN_ALL,
                                     .open = open_model,
                                     .close = close_model,
                                     .reopen = reopen_model,
                                     .press = press_model};
    return conformance_run(&kind, argc > 1 ? argv[1] : NULL);
}
