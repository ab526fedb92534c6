#!/usr/bin/env python3
"""The OpenAPI description, used by tools that others have written.

    openapi.py BELFRY FOLDER     FOLDER is where the packages are installed

openapi-python-client makes a client with types from the description; Schemathesis sends requests
that follow the description and requests that do not, and checks the answers. Both come from PyPI.
Where they cannot be installed, the test says so aloud and counts as skipped.
"""
import fcntl
import os
import subprocess
import sys
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
from rig import Server, main  # noqa: E402

FOLDER = os.path.abspath(sys.argv[2])
SKIPPED = 77
PATIENCE = 200  # s, of a program or of the installation of its packages
SEED = "1"
EXAMPLES = "200" if "BEL_TEST_LONG" in os.environ else "2"  # random requests per operation


def skip(why):
    print("SKIPPED openapi:", why)
    sys.exit(SKIPPED)


def install_packages():
    """Installs what requirements.txt names, unless that was done before."""
    source = os.path.join(HERE, "python", "requirements.txt")
    wanted = open(source).read()
    os.makedirs(FOLDER, exist_ok=True)
    lock = open(os.path.join(FOLDER, "lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    stamp = os.path.join(FOLDER, "installed")
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return
    for command in ([sys.executable, "-m", "venv", FOLDER],
                    [program("pip"), "install", "--quiet", "--retries", "1", "-r", source]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except (OSError, subprocess.TimeoutExpired) as error:
            skip(f"{command[-1]}: {error}")
        if done.returncode != 0:
            skip("the packages cannot be installed:\n" + (done.stdout + done.stderr)[-2000:])
    with open(stamp, "w") as file:
        file.write(wanted)


def program(name):
    return os.path.join(FOLDER, "bin", name)


def serve():
    return Server("--store", "memory", "--http", "127.0.0.1:0")


def port_of(server):
    return server.places["http"].rsplit(":", 1)[1]


def call(*command, **environment):
    paths = {"PATH": os.path.join(FOLDER, "bin") + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=FOLDER,
                          env={**os.environ, **paths, **environment})
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


def test_a_generated_client_gives_typed_answers():
    with serve() as server:
        address = f"http://127.0.0.1:{port_of(server)}/openapi.json"
        description = os.path.join(FOLDER, "openapi.json")
        with open(description, "wb") as file:
            file.write(urllib.request.urlopen(address).read())
        made = os.path.join(FOLDER, "made")
        os.makedirs(made, exist_ok=True)
        told = call(program("openapi-python-client"), "generate", "--path", description, "--meta", "none",
                    "--overwrite", "--output-path", os.path.join(made, "belfry_api"))
        lines = [line for line in told.splitlines() if "WARNING" in line or "ERROR" in line]
        assert not lines, told  # nothing of the description was left out
        print(call(program("python"), os.path.join(HERE, "python", "typed.py"), made, port_of(server)), end="")


def test_schemathesis_finds_nothing():
    """What a text must be, such as a rule or a time, is more than a schema can say. So a request that
    follows the description may still get 400, and this check is left out."""
    with serve() as server:
        call(program("schemathesis"), "--config-file", os.path.join(HERE, "python", "schemathesis.toml"),
             "run", f"http://127.0.0.1:{port_of(server)}/openapi.json",
             "--checks", "all", "--exclude-checks", "positive_data_acceptance",
             "--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES, "--seed", SEED,
             "--request-timeout", "30", "--no-color",
             SCHEMATHESIS_HOOKS="belfry_hooks", PYTHONPATH=os.path.join(HERE, "python"))


if __name__ == "__main__":
    install_packages()
    main(dict(globals()))
