#!/usr/bin/env python3
"""Reads the sizes in RTPS datagrams on an interface: rtps_sizes.py INTERFACE SECONDS prints one line of JSON.

For the most frequent user data: the serialised size of a sample in bytes (with four bytes of encapsulation), the number of
bytes that a sample needs in a datagram with the head of its submessage, and the size of the largest datagram in bytes.
Datagrams are recognised by their headers, so a datagram in IP fragments is recognised by its first fragment.
"""
import collections, json, socket, struct, sys, time

ETH_P_ALL, ETH_P_IP, OUTGOING, ENOUGH = 3, 0x0800, 4, 3000  # only ALL shows outgoing packets
DATA, DATA_FRAG = 0x15, 0x16


def submessages(rtps):
    """Yields (kind, flags, body, bytes) of each submessage; the last submessage may be truncated."""
    at = 20
    while at + 4 <= len(rtps):
        kind, flags = rtps[at], rtps[at + 1]
        (length,) = struct.unpack_from("<H" if flags & 1 else ">H", rtps, at + 2)
        end = at + 4 + length if length else len(rtps)
        yield kind, flags, rtps[at + 4:end], end - at
        at = end


def sample(kind, flags, body, octets):
    """Returns (whether the writer is the user's, serialised size) of a submessage with data; the size is None if unknown."""
    order = "<" if flags & 1 else ">"
    if kind not in (DATA, DATA_FRAG) or len(body) < 20:
        return None
    (to_inline,) = struct.unpack_from(order + "H", body, 2)
    user = body[11] & 0xC0 == 0
    if kind == DATA_FRAG and len(body) >= 32:
        return user, struct.unpack_from(order + "I", body, 28)[0]
    at = 4 + to_inline
    if flags & 2:  # inline QoS: parameters up to the sentinel
        while at + 4 <= len(body):
            pid, length = struct.unpack_from(order + "HH", body, at)
            at += 4 + length
            if pid == 1:
                break
    return user, octets - 4 - at if flags & 4 else None


def main():
    interface, seconds = sys.argv[1], float(sys.argv[2])
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    s.bind((interface, ETH_P_ALL))
    s.settimeout(0.2)
    sizes, steps, largest, end, seen = collections.Counter(), collections.Counter(), 0, time.monotonic() + seconds, 0
    while time.monotonic() < end and seen < ENOUGH:
        try:
            packet, address = s.recvfrom(1 << 16)
        except TimeoutError:
            continue
        head = (packet[0] & 15) * 4
        offset = struct.unpack_from(">H", packet, 6)[0] & 0x1FFF
        rtps = packet[head + 8:]
        if address[1:3] != (ETH_P_IP, OUTGOING) or packet[9] != 17 or offset or rtps[:4] != b"RTPS":
            continue
        found = [(sample(*sub), sub[3]) for sub in submessages(rtps)]
        found = [(what[1], octets) for what, octets in found if what and what[0] and what[1]]
        if not found:
            continue
        seen += 1
        largest = max(largest, struct.unpack_from(">H", packet, head + 4)[0] - 8)
        for size, octets in found:
            sizes[size] += 1
            steps[octets] += 1
    most = lambda counter: counter.most_common(1)[0][0] if counter else None
    print(json.dumps({"serialised": most(sizes), "submessage": most(steps), "largest_datagram": largest, "datagrams": seen}))


if __name__ == "__main__":
    main()
