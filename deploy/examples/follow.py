"""Follows the investigations of Casebook and loses no message: docs/nats.md, "Following without loss".

    pip install nats-py
    python follow.py --nats nats://127.0.0.1:4222 --credentials credentials/integration --name siem --output siem.ndjson

Appends one line of JSON for each message, and acknowledges it after it is on the disk. A message may come twice: drop
those whose stream and sequence you have.
"""

import argparse
import asyncio
import hashlib
import json
import os
import ssl
import zlib

import nats
from nats.errors import Error

API = "casebook.api"
# Under an artifact: the parts that it has.
PARTS = "Casebook-Parts"
# Under a part of an artifact that is compressed: how.
PACKED = "Casebook-Packed"
# In place of the body of a message that is too large: the artifact that holds it.
ARTIFACT = "Casebook-Artifact"


async def artifact(connection, name):
    """The bytes of an artifact, whose name is their hash."""

    async def part(n):
        return await connection.request(f"{API}.DIRECT.GET.CASEBOOK_ARTIFACTS.casebook.artifact.{name}.{n}", timeout=10)

    def unpacked(message):
        return zlib.decompress(message.data) if message.headers.get(PACKED) == "zlib" else message.data

    first = await part(0)
    parts = [unpacked(first)]
    for n in range(1, int(first.headers[PARTS])):
        parts.append(unpacked(await part(n)))
    body = b"".join(parts)
    if hashlib.sha256(body).hexdigest() != name:
        raise ValueError(f"artifact {name} has other bytes")
    return body


async def content(connection, message):
    """The JSON of a message: a list of events, a Timeline, a report, or an accepted alert."""
    name = (message.headers or {}).get(ARTIFACT)
    if name:
        return json.loads(await artifact(connection, name))
    body = json.loads(message.data)
    if isinstance(body, dict) and "artifact" in body and "bytes" in body:
        return json.loads(await artifact(connection, body["artifact"]))
    return body


async def connect(options):
    user, password = open(options.credentials).read().strip().split(":", 1)
    tls = ssl.create_default_context(cafile=options.ca) if options.ca else None

    async def failed(error):
        print(f"NATS: {error!r}", flush=True)

    return await nats.connect(
        options.nats.split(","),
        user=user,
        password=password,
        inbox_prefix=f"_INBOX_{user}".encode(),
        tls=tls,
        max_reconnect_attempts=-1,
        reconnect_time_wait=1,
        error_cb=failed,
    )


async def consumers(connection, name):
    """Asks a Hub for our consumers, which it makes once, until one answers."""
    while True:
        try:
            request = json.dumps({"name": name, "from": "start"}).encode()
            answer = json.loads((await connection.request("casebook.follow", request, timeout=5)).data)
        except Error as error:
            print(f"no Hub answers: {error!r}", flush=True)
            await asyncio.sleep(1)
            continue
        if "error" in answer:
            raise SystemExit(answer["error"])
        return answer["consumers"]


async def follow(connection, stream, consumer, output):
    jetstream = connection.jetstream(prefix=API)
    pull = await jetstream.pull_subscribe_bind(consumer=consumer, stream=stream)
    while True:
        try:
            messages = await pull.fetch(100, timeout=5)
        except (Error, asyncio.TimeoutError):
            # Nothing new, or the server is away: the client connects again by itself.
            await asyncio.sleep(0.2)
            continue
        for message in messages:
            try:
                body = await content(connection, message)
            except Error as error:
                # Without an acknowledgement it comes again.
                print(f"cannot read {message.subject}: {error!r}", flush=True)
                continue
            sequence = message.metadata.sequence.stream
            line = {"stream": stream, "sequence": sequence, "subject": message.subject, "body": body}
            output.write(json.dumps(line) + "\n")
            output.flush()
            os.fsync(output.fileno())
            await message.ack()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nats", default="nats://127.0.0.1:4222")
    parser.add_argument("--credentials", required=True, help="a file with user:password")
    parser.add_argument("--ca", help="the certificate of the authority of the server")
    parser.add_argument("--name", required=True, help="the name of your consumers")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    connection = await connect(options)
    with open(options.output, "a", encoding="utf-8") as output:
        made = await consumers(connection, options.name)
        print(f"following {len(made)} streams", flush=True)
        await asyncio.gather(*(follow(connection, one["stream"], one["consumer"], output) for one in made))


asyncio.run(main())
