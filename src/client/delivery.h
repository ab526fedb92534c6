/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLIENT_DELIVERY_H
#define BEL_CLIENT_DELIVERY_H

/*
 * delivery - a delivery in the reply to CLAIM, as a struct.
 */

#include "belfry/client.h"

/* Copies a delivery. Its lease_ms is 0 if the server did not send one. Returns 0 and sets `*out`,
 * which bel_delivery_destroy() frees; or returns BEL_EINVAL if the value is not a delivery, or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__client_delivery(const struct bel_value *value, struct bel_delivery **out);

#endif
