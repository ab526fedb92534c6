/* SPDX-License-Identifier: MIT */
#include "redis/link/certificate.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Appends a name, with anything that is not printable replaced: it comes from a stranger. */
static void append(char *names, size_t room, const unsigned char *name, size_t bytes)
{
    size_t used = strlen(names);
    size_t needed = bytes + (used > 0 ? 2 : 0);
    if (bytes == 0 || used + needed >= room) return;
    if (used > 0) {
        memcpy(names + used, ", ", 2);
        used += 2;
    }
    for (size_t i = 0; i < bytes; i++) {
        names[used + i] = (char)(name[i] > ' ' && name[i] < 0x7f ? name[i] : '?');
    }
    names[used + bytes] = 0;
}

static void append_address(char *names, size_t room, const ASN1_OCTET_STRING *address)
{
    char text[INET6_ADDRSTRLEN];
    int bytes = ASN1_STRING_length(address);
    int family = bytes == 4 ? AF_INET : bytes == 16 ? AF_INET6 : 0;
    if (family == 0) return;
    if (inet_ntop(family, ASN1_STRING_get0_data(address), text, sizeof text) == NULL) return;
    append(names, room, (const unsigned char *)text, strlen(text));
}

/* A certificate without alternative names is valid for its common name. */
static void append_common_name(char *names, size_t room, const X509 *certificate)
{
    char text[64];
    int bytes = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text,
                                          sizeof text);
    if (bytes > 0) append(names, room, (const unsigned char *)text, strnlen(text, sizeof text));
}

static void note_names(const X509 *certificate, char *names, size_t room)
{
    GENERAL_NAMES *all = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) { /* -1 if there is none */
        const GENERAL_NAME *one = sk_GENERAL_NAME_value(all, i);
        if (one->type == GEN_DNS) {
            append(names, room, ASN1_STRING_get0_data(one->d.dNSName),
                   (size_t)ASN1_STRING_length(one->d.dNSName));
        }
        if (one->type == GEN_IPADD) append_address(names, room, one->d.iPAddress);
    }
    GENERAL_NAMES_free(all);
    if (names[0] == 0) append_common_name(names, room, certificate);
}

static void note_limit(const X509 *certificate, int code, char *out, size_t room)
{
    bool is_begin = code == X509_V_ERR_CERT_NOT_YET_VALID;
    struct tm time;
    const ASN1_TIME *limit =
        is_begin ? X509_get0_notBefore(certificate) : X509_get0_notAfter(certificate);
    if (ASN1_TIME_to_tm(limit, &time) != 1) return;
    if (strftime(out, room, "%Y-%m-%d %H:%M UTC", &time) == 0) out[0] = 0;
}

void bel__certificate_note(X509_STORE_CTX *verification, struct bel_certificate_fault *fault)
{
    const X509 *certificate = X509_STORE_CTX_get_current_cert(verification);
    *fault = (struct bel_certificate_fault){
        .code = X509_STORE_CTX_get_error(verification),
        .is_of_server = X509_STORE_CTX_get_error_depth(verification) == 0,
    };
    if (certificate == NULL) return;
    note_names(certificate, fault->names, sizeof fault->names);
    note_limit(certificate, fault->code, fault->limit, sizeof fault->limit);
}

static const char *owner_of(const struct bel_certificate_fault *fault)
{
    return fault->is_of_server ? "the certificate of the server"
                               : "the certificate of the server's authority";
}

int bel__certificate_refuse(const struct bel_certificate_fault *fault, const char *host,
                            bool has_trust, struct bel_why *why)
{
    switch (fault->code) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return bel__why_say(why, BEL_EIO,
                            "TLS: the certificate of the server is for %s, not for %s; use a name "
                            "of the certificate in the URL, or add this one to it",
                            fault->names[0] != 0 ? fault->names : "no host", host);
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return bel__why_say(why, BEL_EIO,
                            "TLS: %s has expired, at %s; renew it, or set the clock "
                            "of this machine",
                            owner_of(fault), fault->limit);
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return bel__why_say(why, BEL_EIO,
                            "TLS: %s is not valid before %s; look at the clocks of "
                            "both machines",
                            owner_of(fault), fault->limit);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return bel__why_say(why, BEL_EIO,
                            "TLS: the certificate of the server is signed by none of %s (%s); name "
                            "the file of its authority: ?ca=FILE",
                            has_trust ? "the certificates in ca or ca_dir"
                                      : "the authorities that this system trusts",
                            X509_verify_cert_error_string(fault->code));
    default:
        return bel__why_say(why, BEL_EIO, "TLS: %s is not accepted: %s", owner_of(fault),
                            X509_verify_cert_error_string(fault->code));
    }
}
