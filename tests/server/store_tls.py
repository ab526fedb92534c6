#!/usr/bin/env python3
"""belfry serve --store rediss://: stores by TLS, and what is said when TLS does not come about.

Every redis-server is the test's own, with certificates that openssl has just made.
"""
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone

from redis_rig import PROGRAM as REDIS
from redis_rig import SKIPPED, Node, Redis, Sentinel, free_port, need_redis
from rig import Client, main, run, until

NAMES = "DNS:localhost,IP:127.0.0.1"
folder = tempfile.mkdtemp(prefix="belfry-tls-")


def openssl(*words):
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr


def path(name):
    return os.path.join(folder, name)


def make_authority(name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")


def make_certificate(name, authority, names, days=(-1, 1)):
    """A certificate that is valid from and to days from now; x509 alone knows no begin."""
    begin, end = ((datetime.now(timezone.utc) + timedelta(day)).strftime("%Y%m%d%H%M%SZ")
                  for day in days)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    with open(path("ca.conf"), "w") as file:
        file.write("[ca]\ndefault_ca=a\n[a]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\n"
                   "default_md=sha256\npolicy=p\nx509_extensions=e\n[p]\ncommonName=supplied\n"
                   f"[e]\nsubjectAltName={names}\n")
    open(path("index"), "w").close()
    openssl("ca", "-batch", "-notext", "-config", "ca.conf", "-cert", f"{authority}.pem",
            "-keyfile", f"{authority}.key", "-startdate", begin, "-enddate", end,
            "-in", f"{name}.csr", "-out", f"{name}.pem")


def tls_flags(name, clients="no"):
    return ["--tls-cert-file", path(f"{name}.pem"), "--tls-key-file", path(f"{name}.key"),
            "--tls-ca-cert-file", path("ca.pem"), "--tls-auth-clients", clients]


class SecureClient(Client):
    """A client by TLS that shows a certificate and believes everything."""

    def __init__(self, port):
        super().__init__(port)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(path("good.pem"), path("good.key"))
        self.file.close()
        self.socket = context.wrap_socket(self.socket)
        self.file = self.socket.makefile("rb")


class Secure(Redis):
    """A redis-server that has no port without TLS."""

    scheme = "rediss"
    client_type = SecureClient

    def __init__(self, name="good", *flags, clients="no"):
        super().__init__(*flags)
        self.tls = tls_flags(name, clients)

    def arguments(self, port):
        return [*super().arguments(0), "--tls-port", str(port), *self.tls]

    def url(self, options="", host="127.0.0.1", scheme=None):
        return f"{scheme or self.scheme}://{host}:{self.port}?ca={path('ca.pem')}{options}"


class SecureSentinel(Sentinel):
    """A Sentinel that is reached by TLS, and reaches its primary so."""

    client_type = SecureClient

    def arguments(self, port):
        (file, flag) = super().arguments(0)
        with open(file, "a") as out:
            out.write(f"tls-port {port}\ntls-replication yes\n")
            for name, value in zip(*[iter(tls_flags("good"))] * 2):
                out.write(f"{name[2:]} {value}\n")
        return [file, flag]

    def url(self, scheme="rediss+sentinel"):
        return f"{scheme}://127.0.0.1:{self.port}/m?ca={path('ca.pem')}"


def use(url):
    """Takes a timer through its life on a server with this store."""
    with Node(url) as server, server.client() as client:
        client.ask("SCHEDULE", "t", "x" * 100000, "ID", "a")
        ((token, _, name, payload, *_),) = client.ask("CLAIM", "t", "WAIT", "20s")
        assert name == "a" and payload == "x" * 100000 and client.ask("ACK", token) == 1
        for i in range(9):
            client.ask("SCHEDULE", f"t{i}", "x", "IN", "1h")
        assert folder not in server.places["store"], server.places


def refused(url, *said, wait="1h"):
    """A server with this store must not start, and say why; nor does a verb."""
    status, out, err = run("serve", "--resp", "127.0.0.1:0", "--http", "none", "--store", url,
                           "--store-wait", wait)
    assert status == 1 and out == "", (status, out, err)
    _, _, verb = run("topics", "--store", url)
    for text in (err, verb):
        assert all(word in text for word in said), (said, text)


def test_a_store_by_tls_is_checked_and_used():
    with Secure() as redis:
        use(redis.url())
        use(redis.url(host="localhost"))
        status, out, err = run("doctor", "--store", redis.url())
        assert status == 0, (out, err)


def test_a_certificate_of_the_client_is_shown():
    with Secure(clients="yes") as redis:
        refused(redis.url(), "wants a certificate of its client: ?cert=FILE&key=FILE")
        use(redis.url(f"&cert={path('good.pem')}&key={path('good.key')}"))
        stranger = redis.url(f"&cert={path('stranger.pem')}&key={path('stranger.key')}")
        refused(stranger, "does not trust the authority of the client's certificate")


def test_a_certificate_that_is_not_accepted_says_what_to_do():
    with Secure() as redis:
        for url in (f"rediss://127.0.0.1:{redis.port}",
                    f"rediss://127.0.0.1:{redis.port}?ca={path('other.pem')}"):
            refused(url, "TLS: the certificate of the server is signed by none", "?ca=FILE")
        use(f"rediss://127.0.0.1:{redis.port}?insecure=yes")
    with Secure("elsewhere") as redis:
        for host in ("127.0.0.1", "localhost"):
            refused(redis.url(host=host), f"is for else.example, 10.0.0.7, not for {host}; use a "
                                          "name of the certificate in the URL")
    for name, said in (("old", "has expired, at 20"), ("young", "is not valid before 20")):
        with Secure(name) as redis:
            refused(redis.url(), f"the certificate of the server {said}", " UTC; ")


def test_a_missing_file_is_named():
    for option in ("ca=/nonexistent", "cert=/nonexistent&key=/nonexistent"):
        status, _, err = run("topics", "--store", f"rediss://127.0.0.1?{option}")
        assert status == 2 and "/nonexistent: No such file or directory" in err, err


def test_a_port_without_tls_is_named():
    with Redis() as redis:
        url = f"rediss://127.0.0.1:{redis.port}?ca={path('ca.pem')}"
        refused(url, "if this port has no TLS, write redis instead of rediss", wait="1s")


def test_a_port_of_tls_is_named_when_it_is_not_used():
    with Secure() as redis:
        url = f"redis://127.0.0.1:{redis.port}"
        refused(url, "if this port expects TLS, write rediss instead of redis", wait="1s")


def test_sentinels_and_their_primary_by_tls():
    with Secure("good", "--tls-replication", "yes") as redis, SecureSentinel(redis) as sentinel:
        use(sentinel.url())
        url = f"redis+sentinel://127.0.0.1:{sentinel.port}/m"
        refused(url, "if this port expects TLS, write rediss instead of redis", wait="1s")


def test_a_cluster_by_tls():
    flags = ["--cluster-enabled", "yes", "--tls-cluster", "yes"]
    with Secure("good", *flags, "--cluster-port", str(free_port())) as one, \
            Secure("good", *flags, "--cluster-port", str(free_port())) as two:
        with one.client() as first, two.client() as second:
            first.ask("CLUSTER", "ADDSLOTSRANGE", "0", "8000")
            second.ask("CLUSTER", "ADDSLOTSRANGE", "8001", "16383")
            first.ask("CLUSTER", "MEET", "127.0.0.1", str(two.port), two.flags[-1])
            for store in (first, second):
                until(lambda: "cluster_state:ok" in store.ask("CLUSTER", "INFO"), "the Cluster")
        use(one.url(scheme="rediss+cluster"))
        with one.client() as first, two.client() as second:
            assert first.ask("DBSIZE") > 0 and second.ask("DBSIZE") > 0
        url = f"redis+cluster://127.0.0.1:{one.port}"
        refused(url, "if this port expects TLS, write rediss instead of redis", wait="1s")


def prepare():
    need_redis()
    if shutil.which("openssl") is None:
        print("SKIPPED: there is no openssl here")
        sys.exit(SKIPPED)
    built = subprocess.run([REDIS, "--tls-port", "0", "--port", "x"], capture_output=True,
                           text=True)
    if "Bad directive" in built.stdout + built.stderr:
        print("SKIPPED: the redis-server here has no TLS")
        sys.exit(SKIPPED)
    for name in ("ca", "other"):
        make_authority(name)
    make_certificate("good", "ca", NAMES)
    make_certificate("stranger", "other", NAMES)
    make_certificate("elsewhere", "ca", "DNS:else.example,IP:10.0.0.7")
    make_certificate("old", "ca", NAMES, days=(-3, -1))
    make_certificate("young", "ca", NAMES, days=(1, 3))


try:
    prepare()
    main(dict(globals()))
finally:
    shutil.rmtree(folder)
