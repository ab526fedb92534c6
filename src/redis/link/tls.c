/* SPDX-License-Identifier: MIT */

/*
 * OpenSSL reads and writes the socket through a BIO of ours, because its own one raises SIGPIPE
 * when the other side has closed.
 *
 * What is written is first copied to one buffer of the size of a TLS record:
 *
 *     parts --copy--> record --SSL_write--> socket
 *
 * OpenSSL may encrypt a record and then be unable to send all of it. From then on these bytes
 * cannot be taken back, even if SSL_write() has not accepted them: the next call must offer the
 * same ones. So bytes count as written when they are in the buffer, and the buffer keeps them until
 * they are sent.
 */
#include "redis/link/tls.h"

#include "redis/link/certificate.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    RECORD_BYTES = 16 << 10, /* the largest plain text of a TLS record */
};

struct bel_tls {
    SSL_CTX *context;
    BIO_METHOD *method;
    bool is_insecure;
    bool has_trust; /* the options name trusted certificates */
};

struct bel_tls_session {
    SSL *ssl;
    int fd; /* borrowed */
    bool has_trust;
    struct bel_certificate_fault fault;
    bool wants_write;
    size_t record_start, record_count; /* bytes in `record` that SSL_write() has not accepted */
    uint8_t record[RECORD_BYTES];
};

/* --- the socket --- */

static int write_socket(BIO *bio, const char *data, int bytes)
{
    const struct bel_tls_session *session = BIO_get_data(bio);
    ssize_t sent;
    BIO_clear_retry_flags(bio);
    do {
        sent = send(session->fd, data, (size_t)bytes, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
    return (int)sent;
}

static int read_socket(BIO *bio, char *out, int room)
{
    const struct bel_tls_session *session = BIO_get_data(bio);
    ssize_t got;
    BIO_clear_retry_flags(bio);
    do {
        got = recv(session->fd, out, (size_t)room, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
    return (int)got;
}

static long control_socket(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH; /* nothing is buffered; no other question has a yes */
}

static BIO_METHOD *make_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "belfry socket");
    if (method == NULL) return NULL;
    if (BIO_meth_set_write(method, write_socket) && BIO_meth_set_read(method, read_socket) &&
        BIO_meth_set_ctrl(method, control_socket)) {
        return method;
    }
    BIO_meth_free(method);
    return NULL;
}

/* --- settings --- */

/* Returns what to do about a reason of OpenSSL; empty if nothing is known. */
static const char *advice_for(unsigned long code)
{
    if (ERR_GET_LIB(code) != ERR_LIB_SSL) return "";
    switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        return "; this port seems to have no TLS: write redis instead of rediss";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return "; the server wants a certificate of its client: ?cert=FILE&key=FILE";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "; the server does not trust the authority of the client's certificate in ?cert=";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return "; the server may want a certificate of its client: ?cert=FILE&key=FILE";
    default:
        return "";
    }
}

/* Sets the message to OpenSSL's reason for the last failure. An error of the system comes first,
 * and others follow that say less. */
static int say(struct bel_why *why, int err, const char *what, const char *name)
{
    unsigned long code = ERR_peek_error();
    if (!ERR_SYSTEM_ERROR(code)) code = ERR_peek_last_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
    char system[128] = "";
    if (code != 0 && ERR_SYSTEM_ERROR(code)) {
        reason = strerror_r(ERR_GET_REASON(code), system, sizeof system);
    }
    ERR_clear_error();
    return bel__why_say(why, err, "TLS: %s%s%s: %s%s", what, name[0] != 0 ? " " : "", name,
                        reason != NULL ? reason : "unknown error", advice_for(code));
}

/* Refuses to ask for a passphrase, which OpenSSL would do on the terminal. */
static int no_passphrase(char *out, int room, int is_for_writing, void *context)
{
    (void)is_for_writing;
    (void)context;
    if (room > 0) out[0] = 0;
    return -1;
}

static int load_trust(SSL_CTX *context, const struct bel_tls_options *options, struct bel_why *why)
{
    if (options->ca == NULL && options->ca_dir == NULL) {
        if (SSL_CTX_set_default_verify_paths(context) == 1) return 0;
        return say(why, BEL_EINVAL, "cannot use the certificates of the system", "");
    }
    if (options->ca != NULL && SSL_CTX_load_verify_file(context, options->ca) != 1) {
        return say(why, BEL_EINVAL, "cannot use the trusted certificates in", options->ca);
    }
    if (options->ca_dir != NULL && SSL_CTX_load_verify_dir(context, options->ca_dir) != 1) {
        return say(why, BEL_EINVAL, "cannot use the trusted certificates in", options->ca_dir);
    }
    return 0;
}

static int load_certificate(SSL_CTX *context, const struct bel_tls_options *options,
                            struct bel_why *why)
{
    if (options->cert == NULL) return 0;
    assert(options->key != NULL);
    if (SSL_CTX_use_certificate_chain_file(context, options->cert) != 1) {
        return say(why, BEL_EINVAL, "cannot use the certificate in", options->cert);
    }
    if (SSL_CTX_use_PrivateKey_file(context, options->key, SSL_FILETYPE_PEM) != 1) {
        return say(why, BEL_EINVAL, "cannot use the key in", options->key);
    }
    if (SSL_CTX_check_private_key(context) != 1) {
        return say(why, BEL_EINVAL, "the key is not that of the certificate:", options->key);
    }
    return 0;
}

/* Is called for each certificate of the chain; keeps the first fault. */
static int verified(int is_good, X509_STORE_CTX *verification)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct bel_tls_session *session = SSL_get_app_data(ssl);
    if (!is_good && session->fault.code == X509_V_OK) {
        bel__certificate_note(verification, &session->fault);
    }
    return is_good;
}

int bel__tls_open(const struct bel_tls_options *options, struct bel_tls **out, struct bel_why *why)
{
    struct bel_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) return bel__why_say(why, BEL_ENOMEM, "out of memory");
    ERR_clear_error();
    tls->is_insecure = options->is_insecure;
    tls->has_trust = options->ca != NULL || options->ca_dir != NULL;
    tls->method = make_method();
    tls->context = SSL_CTX_new(TLS_client_method());
    int err = tls->method == NULL || tls->context == NULL ? BEL_ENOMEM : 0;
    if (err == 0 && SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1) {
        err = BEL_ENOMEM;
    }
    if (err) (void)say(why, err, "cannot be used", "");
    if (err == 0) {
        SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
        (void)SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        (void)SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                                 SSL_MODE_RELEASE_BUFFERS |
                                                 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_verify(tls->context, options->is_insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                           options->is_insecure ? NULL : verified);
    }
    if (err == 0 && !options->is_insecure) err = load_trust(tls->context, options, why);
    if (err == 0) err = load_certificate(tls->context, options, why);
    if (err) {
        bel__tls_close(tls);
        return err;
    }
    *out = tls;
    return 0;
}

void bel__tls_close(struct bel_tls *tls)
{
    if (tls == NULL) return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    free(tls);
}

/* --- a session --- */

/* Sets which host the certificate must be for. The name is also told to the server. Returns whether
 * that worked. */
static bool set_host(SSL *ssl, const char *host)
{
    uint8_t raw[sizeof(struct in6_addr)];
    bool is_address = inet_pton(AF_INET, host, raw) == 1 || inet_pton(AF_INET6, host, raw) == 1;
    X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (is_address) return X509_VERIFY_PARAM_set1_ip_asc(rules, host) == 1;
    /* SSL_set_tlsext_host_name(), whose macro casts the const away; OpenSSL copies the name. */
    return SSL_set1_host(ssl, host) == 1 &&
           SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                    (void *)(uintptr_t)host) == 1;
}

int bel__tls_begin(const struct bel_tls *tls, int fd, const char *host,
                   struct bel_tls_session **out, struct bel_why *why)
{
    struct bel_tls_session *session = malloc(sizeof *session);
    if (session == NULL) return bel__why_say(why, BEL_ENOMEM, "out of memory");
    ERR_clear_error();
    session->fd = fd;
    session->has_trust = tls->has_trust;
    session->fault = (struct bel_certificate_fault){.code = X509_V_OK};
    session->wants_write = false;
    session->record_start = session->record_count = 0;
    session->ssl = SSL_new(tls->context);
    BIO *bio = session->ssl == NULL ? NULL : BIO_new(tls->method);
    if (bio == NULL) {
        SSL_free(session->ssl);
        free(session);
        return say(why, BEL_ENOMEM, "cannot begin", "");
    }
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio); /* owns it now */
    SSL_set_connect_state(session->ssl);
    (void)SSL_set_app_data(session->ssl, session);
    if (!set_host(session->ssl, host)) {
        SSL_free(session->ssl);
        free(session);
        return say(why, BEL_ENOMEM, "cannot begin", "");
    }
    *out = session;
    return 0;
}

void bel__tls_end(struct bel_tls_session *session)
{
    if (session == NULL) return;
    ERR_clear_error();
    if (SSL_is_init_finished(session->ssl)) (void)SSL_shutdown(session->ssl);
    ERR_clear_error();
    SSL_free(session->ssl);
    explicit_bzero(session->record, sizeof session->record);
    free(session);
}

bool bel__tls_wants_write(const struct bel_tls_session *session)
{
    return session->wants_write;
}

/* Tells what the result of an operation that has failed means. */
static int result_of(struct bel_tls_session *session, int result, const char *what,
                     struct bel_why *why)
{
    int number = errno;
    switch (SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return BEL_EBUSY;
    case SSL_ERROR_WANT_WRITE:
        session->wants_write = true;
        return BEL_EBUSY;
    case SSL_ERROR_ZERO_RETURN:
        return bel__why_say(why, BEL_ECLOSED, "the server has closed the connection");
    case SSL_ERROR_SYSCALL:
        if (number != 0) {
            char text[128];
            return bel__why_say(why, BEL_EIO, "TLS: %s: %s", what,
                                strerror_r(number, text, sizeof text));
        }
        return say(why, BEL_EIO, what, "");
    default:
        return say(why, BEL_EIO, what, "");
    }
}

int bel__tls_handshake(struct bel_tls_session *session, const char *host, struct bel_why *why)
{
    ERR_clear_error();
    errno = 0;
    session->wants_write = false;
    int result = SSL_do_handshake(session->ssl);
    if (result == 1) return 0;
    int err = result_of(session, result, "the handshake failed", why);
    if (err == BEL_EBUSY) return err;
    if (session->fault.code == X509_V_OK) return BEL_EIO;
    return bel__certificate_refuse(&session->fault, host, session->has_trust, why);
}

int bel__tls_read(struct bel_tls_session *session, void *out, size_t room, size_t *out_count,
                  struct bel_why *why)
{
    ERR_clear_error();
    errno = 0;
    int result = SSL_read_ex(session->ssl, out, room, out_count);
    return result == 1 ? 0 : result_of(session, result, "cannot receive", why);
}

int bel__tls_flush(struct bel_tls_session *session, struct bel_why *why)
{
    session->wants_write = false;
    while (session->record_count > 0) {
        size_t sent;
        ERR_clear_error();
        errno = 0;
        int result = SSL_write_ex(session->ssl, session->record + session->record_start,
                                  session->record_count, &sent);
        if (result != 1) return result_of(session, result, "cannot send", why);
        session->record_start += sent;
        session->record_count -= sent;
    }
    session->record_start = 0;
    return 0;
}

int bel__tls_write(struct bel_tls_session *session, const struct iovec *parts, size_t parts_count,
                   size_t *out_count, struct bel_why *why)
{
    int err = bel__tls_flush(session, why);
    if (err) return err;
    for (size_t i = 0; i < parts_count && session->record_count < RECORD_BYTES; i++) {
        size_t room = RECORD_BYTES - session->record_count;
        size_t bytes = parts[i].iov_len < room ? parts[i].iov_len : room;
        memcpy(session->record + session->record_count, parts[i].iov_base, bytes);
        session->record_count += bytes;
    }
    *out_count = session->record_count;
    err = bel__tls_flush(session, why);
    return err == BEL_EBUSY ? 0 : err; /* the buffer keeps them */
}
