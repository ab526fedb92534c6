/* SPDX-License-Identifier: MIT */
#include "session/key_check.h"

#include <assert.h>

enum {
    KEYS_WRONG_MAX = 10, /* per connection */
};

enum bel_key_result bel__key_check(const struct bel_service *service, struct bel_view user,
                                   struct bel_view key, unsigned *wrong, struct bel_grant *out)
{
    assert(service->authenticate != NULL);
    if (service->authenticate(service->context, user, key, out)) return BEL_KEY_RIGHT;
    return wrong == NULL || ++*wrong >= KEYS_WRONG_MAX ? BEL_KEY_WRONG_LAST : BEL_KEY_WRONG;
}
