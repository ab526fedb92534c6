/* SPDX-License-Identifier: MIT */

/*
 * A link with TLS, and a server by OpenSSL in the same thread, over the loopback. The test makes
 * its own authorities and certificates. Both sides take turns until a state is reached; where only
 * the kernel can go on, the test polls.
 */
#include "redis_rig.h"

#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

enum {
    PATH_BYTES = 128,
    LARGE_BYTES = 3 << 20,
    RECORD_BYTES = 16 << 10, /* of TLS */
    RECORDS_MAX = 2000,      /* more than sockets hold */
};

/* A certificate with its key. */
struct identity {
    X509 *certificate;
    EVP_PKEY *key;
};

static char folder[] = "/tmp/belfry-tls-XXXXXX";
static struct identity authority, stranger, server_identity, client_identity;
static int listener;
static uint16_t port;
static SSL_CTX *server_context;
static SSL *server;
static struct bel_tls *tls;
static char heard[RECORDS_MAX * RECORD_BYTES]; /* by the server */
static size_t heard_count;

/* --- certificates --- */

/* Makes a certificate that `issuer` signs; NULL: an authority that signs itself. `names` are the
 * alternative names, e.g. "DNS:localhost". */
static struct identity make_identity(const char *name, const struct identity *issuer,
                                     const char *names)
{
    static long serial;
    struct identity made = {X509_new(), EVP_EC_gen("P-256")};
    CHECK(made.certificate != NULL && made.key != NULL);
    X509_NAME *subject = X509_get_subject_name(made.certificate);
    CHECK(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
                                     -1, 0) == 1);
    CHECK(X509_set_version(made.certificate, 2) == 1);
    CHECK(ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), ++serial) == 1);
    CHECK(X509_gmtime_adj(X509_getm_notBefore(made.certificate), -3600) != NULL);
    CHECK(X509_gmtime_adj(X509_getm_notAfter(made.certificate), 3600L * 24) != NULL);
    CHECK(X509_set_pubkey(made.certificate, made.key) == 1);
    X509 *parent = issuer != NULL ? issuer->certificate : made.certificate;
    CHECK(X509_set_issuer_name(made.certificate, X509_get_subject_name(parent)) == 1);
    X509V3_CTX context;
    X509V3_set_ctx(&context, parent, made.certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(
        NULL, &context, issuer == NULL ? NID_basic_constraints : NID_subject_alt_name,
        issuer == NULL ? "critical,CA:TRUE" : names);
    CHECK(extension != NULL && X509_add_ext(made.certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
    CHECK(X509_sign(made.certificate, issuer != NULL ? issuer->key : made.key, EVP_sha256()) > 0);
    return made;
}

static void free_identity(struct identity *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
}

/* Returns the path of a file in the folder of the test. */
static const char *path_of(const char *name)
{
    static char paths[16][PATH_BYTES];
    static unsigned next;
    char *path = paths[next++ % 16];
    (void)snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return path;
}

static void write_identity(const struct identity *identity, const char *certificate,
                           const char *key)
{
    FILE *file = fopen(path_of(certificate), "w");
    CHECK(file != NULL && PEM_write_X509(file, identity->certificate) == 1);
    CHECK(fclose(file) == 0);
    file = fopen(path_of(key), "w");
    CHECK(file != NULL);
    CHECK(PEM_write_PrivateKey(file, identity->key, NULL, NULL, 0, NULL, NULL) == 1);
    CHECK(fclose(file) == 0);
}

static void make_all(void)
{
    CHECK(mkdtemp(folder) != NULL);
    authority = make_identity("authority", NULL, NULL);
    stranger = make_identity("stranger", NULL, NULL);
    server_identity = make_identity("server", &authority, "DNS:localhost,IP:127.0.0.1");
    client_identity = make_identity("client", &authority, "DNS:client");
    write_identity(&authority, "ca.pem", "ca.key");
    write_identity(&stranger, "stranger.pem", "stranger.key");
    write_identity(&client_identity, "client.pem", "client.key");
    FILE *file = fopen(path_of("locked.key"), "w");
    CHECK(file != NULL);
    CHECK(PEM_write_PrivateKey(file, client_identity.key, EVP_aes_128_cbc(),
                               (const unsigned char *)"pass", 4, NULL, NULL) == 1);
    CHECK(fclose(file) == 0);
}

static void remove_all(void)
{
    static const char *names[] = {"ca.pem",     "ca.key",     "stranger.pem", "stranger.key",
                                  "client.pem", "client.key", "locked.key"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(unlink(path_of(names[i])) == 0);
    }
    CHECK(rmdir(folder) == 0);
    free_identity(&authority);
    free_identity(&stranger);
    free_identity(&server_identity);
    free_identity(&client_identity);
}

/* --- both sides --- */

static void listen_tcp(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(listener >= 0 && bind(listener, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(listener, 16) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &bytes) == 0);
    port = ntohs(address.sin_port);
}

static char told_name[64]; /* by SNI */

static int hear_name(SSL *ssl, int *alert, void *context)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    *alert = SSL_AD_UNRECOGNIZED_NAME; /* not sent */
    (void)context;
    (void)snprintf(told_name, sizeof told_name, "%s", name != NULL ? name : "");
    return SSL_TLSEXT_ERR_OK;
}

/* Starts a server, and a link to it by the name or address `host`. */
static void start(const struct bel_tls_options *options, const char *host, int version_max,
                  bool needs_client)
{
    struct bel_why why = {{0}, NULL};
    told_name[0] = 0;
    heard_count = 0;
    server_context = SSL_CTX_new(TLS_server_method());
    CHECK(server_context != NULL);
    SSL_CTX_set_security_level(server_context, 0); /* for TLS 1.1 */
    CHECK(SSL_CTX_set_max_proto_version(server_context, version_max) == 1);
    CHECK(SSL_CTX_use_certificate(server_context, server_identity.certificate) == 1);
    CHECK(SSL_CTX_use_PrivateKey(server_context, server_identity.key) == 1);
    CHECK(SSL_CTX_set_tlsext_servername_callback(server_context, hear_name) == 1);
    if (needs_client) {
        SSL_CTX_set_verify(server_context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        X509_STORE *trusted = SSL_CTX_get_cert_store(server_context);
        CHECK(X509_STORE_add_cert(trusted, authority.certificate) == 1);
    }
    listen_tcp();
    CHECK(bel__tls_open(options, &tls, &why) == 0);
    rig_open((struct bel_redis_link_options){.host = host, .port = port, .tls = tls});
    bel__redis_link_connect(rig.link);
}

static void end(void)
{
    rig_end();
    bel__tls_close(tls);
    SSL_free(server);
    server = NULL;
    SSL_CTX_free(server_context);
    (void)close(listener);
}

/* Lets the server do what it can: accept, shake hands, read. */
static void serve(void)
{
    if (rig.server < 0) {
        rig.server = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (rig.server < 0) return;
        server = SSL_new(server_context);
        CHECK(server != NULL && SSL_set_fd(server, rig.server) == 1);
        SSL_set_accept_state(server);
    }
    size_t got;
    while (SSL_read_ex(server, heard + heard_count, sizeof heard - heard_count, &got) == 1) {
        heard_count += got;
    }
    ERR_clear_error();
}

/* Waits for the kernel if neither side has anything left to do. */
static void wait_for_kernel(void)
{
    struct pollfd pollers[] = {{.fd = rig.poller.descriptor, .events = POLLIN},
                               {.fd = rig.server >= 0 ? rig.server : listener, .events = POLLIN}};
    if (rig.next.ns > rig.now.ns) CHECK(poll(pollers, 2, -1) > 0);
}

/* Both sides take turns until something is true. */
#define RUN_UNTIL(condition)                                                                       \
    for (rig_turn(), serve(); !(condition); rig_turn(), serve()) {                                 \
        wait_for_kernel();                                                                         \
    }

static void run_to(enum bel_redis_link_state state)
{
    RUN_UNTIL(bel__redis_link_state(rig.link) == state);
}

static void run_until_heard(size_t count)
{
    RUN_UNTIL(heard_count >= count);
    CHECK_EQ(heard_count, count);
}

static void say(const char *text)
{
    size_t sent;
    CHECK(SSL_write_ex(server, text, strlen(text), &sent) == 1 && sent == strlen(text));
}

/* Runs up to the state ready. */
static void greet(void)
{
    run_until_heard(strlen(RIG_HELLO));
    CHECK(memcmp(heard, RIG_HELLO, heard_count) == 0);
    heard_count = 0;
    say(RIG_HELLO_OK);
    run_to(BEL_REDIS_LINK_READY);
    rig_expect("ready ");
}

static void check_refused(const char *reason)
{
    run_to(BEL_REDIS_LINK_WAITING);
    CHECK_NOTE("%.200s", bel__redis_link_why(rig.link));
    CHECK(strstr(bel__redis_link_why(rig.link), reason) != NULL);
    CHECK_EQ(heard_count, 0); /* nothing left unencrypted or to a stranger */
    rig_expect("");
}

/* --- cases --- */

static void calls_and_replies_are_encrypted(void)
{
    struct rig_call a, b;
    start(&(struct bel_tls_options){.ca = path_of("ca.pem")}, "127.0.0.1", TLS1_3_VERSION, false);
    greet();
    CHECK(told_name[0] == 0); /* an address is not a name */
    CHECK(SSL_version(server) == TLS1_3_VERSION);
    rig_send(&a, "A");
    rig_send(&b, "B");
    run_until_heard(22);
    CHECK(memcmp(heard, "*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n", 22) == 0);
    say("+a\r\n:");
    say("7\r\n");
    RUN_UNTIL(b.is_ended);
    rig_expect("A+a B:7 ");
    (void)SSL_shutdown(server);
    run_to(BEL_REDIS_LINK_WAITING);
    CHECK(strstr(bel__redis_link_why(rig.link), "closed the connection") != NULL);
    end();

    start(&(struct bel_tls_options){.ca = path_of("ca.pem")}, "localhost", TLS1_2_VERSION, false);
    greet();
    CHECK(strcmp(told_name, "localhost") == 0);
    CHECK(SSL_version(server) == TLS1_2_VERSION);
    end();
}

/* More than fits into the socket: records are sent in part, and go on. */
static void large_calls_and_replies_pass(void)
{
    static char large[LARGE_BYTES];
    struct rig_call a, b;
    for (size_t i = 0; i < sizeof large; i++) {
        large[i] = (char)('a' + i % 23);
    }
    start(&(struct bel_tls_options){.ca = path_of("ca.pem")}, "127.0.0.1", TLS1_3_VERSION, false);
    greet();
    rig_prepare(&a, "A");
    a.call.command = (struct bel_view){large, sizeof large};
    CHECK(rig_try_send(&a) == 0);
    rig_send(&b, "B");
    for (int i = 0; i < 100; i++) { /* the server does not read: the link comes to rest */
        rig_turn();
    }
    CHECK(!bel__redis_link_withdraw(rig.link, &a.call));
    run_until_heard(sizeof large + 11);
    CHECK(memcmp(heard, large, sizeof large) == 0);
    CHECK(memcmp(heard + sizeof large, "*1\r\n$1\r\nB\r\n", 11) == 0);
    say("$16000\r\n");
    large[16000] = 0;
    say(large);
    say("\r\n+b\r\n");
    RUN_UNTIL(b.is_ended);
    CHECK(a.is_ended && a.err == 0 && b.err == 0);
    end();
}

/* The server does not read until a record is stuck behind which nothing waits. */
static void a_stuck_record_is_sent_and_a_withdrawn_call_is_not(void)
{
    static char command[RECORD_BYTES];
    static struct rig_call calls[RECORDS_MAX];
    size_t count = 0;
    memset(command, 'x', sizeof command);
    start(&(struct bel_tls_options){.ca = path_of("ca.pem")}, "127.0.0.1", TLS1_3_VERSION, false);
    greet();
    for (;; count++) {
        CHECK(count < RECORDS_MAX);
        rig_prepare(&calls[count], "X");
        calls[count].call.command = (struct bel_view){command, sizeof command};
        CHECK(rig_try_send(&calls[count]) == 0);
        rig_turn();
        if (bel__redis_link_withdraw(rig.link, &calls[count].call)) break;
    }
    CHECK(count > 0);
    run_until_heard(count * sizeof command);
    struct rig_call last;
    rig_send(&last, "LAST");
    run_until_heard(count * sizeof command + last.call.command.bytes);
    CHECK(memcmp(heard + count * sizeof command, last.command, last.call.command.bytes) == 0);
    end();
    CHECK(calls[0].err == BEL_EIO && last.err == BEL_EIO);
}

static void a_certificate_for_another_host_is_refused(void)
{
    static const char *hosts[] = {"127.0.0.1", "localhost"};
    struct identity mine = server_identity;
    server_identity = make_identity("127.0.0.1", &authority, "DNS:other.example,IP:127.0.0.2");
    for (int i = 0; i < 2; i++) {
        start(&(struct bel_tls_options){.ca = path_of("ca.pem")}, hosts[i], TLS1_3_VERSION, false);
        check_refused(i == 0 ? "is for other.example, 127.0.0.2, not for 127.0.0.1; "
                             : "is for other.example, 127.0.0.2, not for localhost; ");
        end();
    }
    start(&(struct bel_tls_options){.is_insecure = true}, "localhost", TLS1_3_VERSION, false);
    greet(); /* only if asked for by name */
    end();
    free_identity(&server_identity);
    server_identity = mine;
}

static void a_certificate_of_a_stranger_is_refused(void)
{
    start(&(struct bel_tls_options){.ca = path_of("stranger.pem")}, "127.0.0.1", TLS1_3_VERSION,
          false);
    check_refused("is signed by none of the certificates in ca or ca_dir (unable to get local");
    end();
    start(&(struct bel_tls_options){.ca = NULL}, "127.0.0.1", TLS1_3_VERSION, false);
    check_refused("is signed by none of the authorities that this system trusts");
    end();
}

static void old_versions_are_refused(void)
{
    start(&(struct bel_tls_options){.ca = path_of("ca.pem")}, "127.0.0.1", TLS1_1_VERSION, false);
    check_refused("TLS: the handshake failed");
    end();
}

static void a_client_shows_its_certificate(void)
{
    start(&(struct bel_tls_options){.ca = path_of("ca.pem"),
                                    .cert = path_of("client.pem"),
                                    .key = path_of("client.key")},
          "127.0.0.1", TLS1_3_VERSION, true);
    greet();
    X509 *shown = SSL_get1_peer_certificate(server);
    CHECK(shown != NULL && X509_cmp(shown, client_identity.certificate) == 0);
    X509_free(shown);
    end();
    start(&(struct bel_tls_options){.ca = path_of("ca.pem")}, "127.0.0.1", TLS1_2_VERSION, true);
    check_refused("TLS: the handshake failed");
    end();
}

static void a_silent_handshake_is_given_up(void)
{
    start(&(struct bel_tls_options){.ca = path_of("ca.pem")}, "127.0.0.1", TLS1_3_VERSION, false);
    while (bel__redis_link_state(rig.link) != BEL_REDIS_LINK_SECURING) {
        struct pollfd poller = {.fd = rig.poller.descriptor, .events = POLLIN};
        rig_turn();
        if (bel__redis_link_state(rig.link) == BEL_REDIS_LINK_CONNECTING) {
            CHECK(poll(&poller, 1, -1) == 1);
        }
    }
    rig_advance(699);
    CHECK(bel__redis_link_why(rig.link)[0] == 0);
    rig_advance(1); /* now a reader of the message need not wait for the end */
    CHECK(strstr(bel__redis_link_why(rig.link), "write redis instead of rediss") != NULL);
    rig_advance(4299);
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_SECURING);
    rig_advance(1);
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_WAITING);
    CHECK(strstr(bel__redis_link_why(rig.link), "no end of the handshake") != NULL);
    end();
}

static void files_that_cannot_be_used_are_named(void)
{
    const struct {
        struct bel_tls_options options;
        const char *said;
    } rows[] = {
        {{.ca = "/no/such.pem"}, "cannot use the trusted certificates in /no/such.pem: "},
        {{.ca = "/dev/null"}, "cannot use the trusted certificates in /dev/null: "},
        {{.cert = "/no/such.pem", .key = "/k"}, "cannot use the certificate in /no/such.pem: "},
        {{.cert = path_of("client.pem"), .key = "/no/such.key"},
         "cannot use the key in /no/such.key: "},
        {{.cert = path_of("client.pem"), .key = path_of("stranger.key")}, "stranger.key: "},
        {{.cert = path_of("client.pem"), .key = path_of("locked.key")}, "locked.key: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_why why = {{0}, NULL};
        CHECK(bel__tls_open(&rows[i].options, &tls, &why) == BEL_EINVAL);
        CHECK_NOTE("%.200s", why.text);
        CHECK(strncmp(why.text, "TLS: ", 5) == 0 && strstr(why.text, rows[i].said) != NULL);
    }
}

int main(void)
{
    make_all();
    RUN(calls_and_replies_are_encrypted);
    RUN(large_calls_and_replies_pass);
    RUN(a_stuck_record_is_sent_and_a_withdrawn_call_is_not);
    RUN(a_certificate_for_another_host_is_refused);
    RUN(a_certificate_of_a_stranger_is_refused);
    RUN(old_versions_are_refused);
    RUN(a_client_shows_its_certificate);
    RUN(a_silent_handshake_is_given_up);
    RUN(files_that_cannot_be_used_are_named);
    remove_all();
    return EXIT_SUCCESS;
}
