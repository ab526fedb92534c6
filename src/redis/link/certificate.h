/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_CERTIFICATE_H
#define BEL_REDIS_LINK_CERTIFICATE_H

/*
 * certificate - says why the certificate of a server is not accepted, and what to do.
 */

#include "core/why.h"

#include <openssl/x509_vfy.h>
#include <stdbool.h>

/* What the verification has found; copied, because OpenSSL keeps no certificate that it refuses. */
struct bel_certificate_fault {
    int code;          /* X509_V_ERR_...; X509_V_OK: none */
    bool is_of_server; /* the certificate is the server's own, not that of an authority */
    char names[96];    /* the hosts it is valid for: "a.example, 10.0.0.7"; may be cut off */
    char limit[32];    /* "2026-11-17 23:08 UTC": the first or the last moment, for codes of time */
};

/* Fills `*fault` from a verification that has just failed. */
void bel__certificate_note(X509_STORE_CTX *verification, struct bel_certificate_fault *fault);

/* Sets the message and returns BEL_EIO. `host` is the one in the URL; `has_trust`: the URL names
 * trusted certificates. The message contains the word "certificate". */
BEL_CHECKED int bel__certificate_refuse(const struct bel_certificate_fault *fault, const char *host,
                                        bool has_trust, struct bel_why *why);

#endif
