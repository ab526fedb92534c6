"""A program with faststream-redis-timers: peer.py SOCKET publish | work TOPIC LEASE HOW.

Runs in the virtual environment of package.py. `publish` answers questions, a line of JSON each;
`work` prints a line for each delivery, and answers how many there were.
"""
import asyncio
import json
import os
import sys
import time
from datetime import datetime, timedelta, timezone
from typing import Any

from faststream import Context
from faststream_redis_timers import TimersBroker
from redis.asyncio import Redis


ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # where the package logs


def say(value):
    print(json.dumps(value), file=ANSWERS, flush=True)


async def questions():
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield json.loads(line)


def body_of(question):
    if "hex" in question:
        return bytes.fromhex(question["hex"])
    return None if "nothing" in question else question.get("text", question.get("json"))


async def publish(broker, question):
    options = {"topic": question["topic"]}
    if "id" in question:
        options["timer_id"] = question["id"]
    if "correlation" in question:
        options["correlation_id"] = question["correlation"]
    if "at" in question:
        options["activate_at"] = datetime.fromtimestamp(question["at"], timezone.utc)
    else:
        options["activate_in"] = timedelta(seconds=question.get("seconds", 0))
    try:
        return await broker.publish(body_of(question), headers=question.get("headers"), **options)
    except Exception as error:  # the test looks at its name
        return type(error).__name__


async def answer(broker, question):
    do, topic = question["do"], question["topic"]
    if do == "publish":
        return await publish(broker, question)
    if do == "has":
        return await broker.has_pending(topic, question["id"])
    if do == "pending":
        return list(await broker.get_pending_timers(topic))
    if do == "cancel":
        return await broker.cancel_timer(topic, question["id"])
    return await broker.cancel_all(topic)


async def run_publisher(broker):
    await broker.start()
    async for question in questions():
        say(await answer(broker, question))


async def run_worker(broker, topic, lease, how):
    handled = 0

    async def decode(message):  # the body as it is: decoding depends on the content type
        return message.body

    replies = broker.publisher("answers") if how == "replies" else lambda function: function

    @replies
    @broker.subscriber(topic, lease_ttl=int(lease), polling_interval=0.01,
                       max_polling_interval=0.05, decoder=decode)
    async def handle(body: Any, message=Context("message")):
        nonlocal handled
        say({"body": message.body.hex(), "id": message.message_id, "time": time.time(),
             "correlation": message.correlation_id, "headers": message.headers})
        handled += 1
        if how == "sleeps":
            await asyncio.sleep(3600)
        if how == "fails":
            raise RuntimeError("as the test wants")
        return "done"

    await broker.start()
    say("ready")
    async for question in questions():
        say(handled)


async def main(path, role, *args):
    broker = TimersBroker(Redis(unix_socket_path=path))
    await (run_publisher(broker) if role == "publish" else run_worker(broker, *args))
    os._exit(0)


asyncio.run(main(*sys.argv[1:]))
