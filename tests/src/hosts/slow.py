"""Passes frames between pairs of network interfaces, each after a delay, in order: slow.py SECONDS JITTER A B [A B ...].

Frames go with what the kernel left to a network card (checksums, cutting into packets), as between two of its own links.
"""

import random
import select
import socket
import sys
import time
from collections import deque

SOL_PACKET, PACKET_VNET_HDR, ALL_PROTOCOLS = 263, 15, 3
LONGEST = 1 << 17


def interface(name):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    link.bind((name, ALL_PROTOCOLS))
    link.setblocking(False)
    return link


def read(link):
    try:
        frame, (_, _, kind, *_) = link.recvfrom(LONGEST)
        return frame, kind
    except BlockingIOError:
        return None, None


def main():
    delay, jitter = map(float, sys.argv[1:3])
    links = [interface(name) for name in sys.argv[3:]]
    pairs = list(zip(links[::2], links[1::2]))
    ways = {a.fileno(): (a, b, deque()) for one, other in pairs for a, b in [(one, other), (other, one)]}
    poll = select.poll()
    for number in ways:
        poll.register(number, select.POLLIN)
    print("ready", flush=True)
    while True:
        due = min((held[0][0] for _, _, held in ways.values() if held), default=time.monotonic() + 1)
        for number, _ in poll.poll(max(0, due - time.monotonic()) * 1000):
            source, _, held = ways[number]
            frame, kind = read(source)
            while frame is not None:
                if kind != socket.PACKET_OUTGOING:
                    at = time.monotonic() + delay + random.uniform(0, jitter)
                    held.append((max(at, held[-1][0]) if held else at, frame))
                frame, kind = read(source)
        for _, target, held in ways.values():
            while held and held[0][0] <= time.monotonic():
                # A full queue loses the frame, as a network does.
                try:
                    target.send(held.popleft()[1])
                except OSError:
                    pass


main()
