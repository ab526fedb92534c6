/* SPDX-License-Identifier: MIT */
#include "session/key_check.h"

#include "session/wrong_keys.h"

#include <assert.h>

enum {
    KEYS_WRONG_MAX = 10, /* per connection */
};

enum bel_key_result bel__key_check(const struct bel_service *service,
                                   const struct bel_key_attempt *attempt, unsigned *wrong,
                                   struct bel_grant *out)
{
    enum bel_wrong_keys_verdict verdict = BEL_WRONG_KEYS_FEW;
    assert(service->authenticate != NULL && attempt->address != NULL);
    if (service->authenticate(service->context, attempt, out)) return BEL_KEY_RIGHT;
    if (service->wrong_keys != NULL) {
        verdict = bel__wrong_keys_count(service->wrong_keys, attempt->address, service->now->real);
    }
    if (service->report_key != NULL) service->report_key(service->context, attempt, verdict);
    if (verdict != BEL_WRONG_KEYS_FEW) return BEL_KEY_WRONG_MANY;
    return wrong == NULL || ++*wrong >= KEYS_WRONG_MAX ? BEL_KEY_WRONG_LAST : BEL_KEY_WRONG;
}
