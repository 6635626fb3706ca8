"""Forwards frames between two interfaces. Frames with samples from the first interface are delayed, or dropped once.

relay.py FROM TO LOG DROPPED: writes one line for each data submessage with the sequence number n that came from FROM: n, the fragment
(0 = whole sample), whether it was dropped, and the times (CLOCK_REALTIME, ns) before and after the call that forwarded it. Frames of
900 bytes or more are delayed by at least n * 37 % 13 ms, so that all frames keep their order; the first one with each n (and fragment)
is dropped if n % 10 is DROPPED.
"""
import heapq, select, socket, struct, sys, time

DATA, DATA_FRAG = 0x15, 0x16


def samples(frame):
    """(number, first fragment or 0) of each data submessage of a writer of users."""
    at = frame.find(b"RTPS")
    at = at + 20 if at >= 0 else len(frame)
    while at + 24 <= len(frame):
        kind, flags, length = struct.unpack_from("<BBH", frame, at)
        order = "<" if flags & 1 else ">"
        length, = struct.unpack_from(order + "H", frame, at + 2)
        if kind in (DATA, DATA_FRAG) and frame[at + 15] & 0xC0 == 0:
            high, low = struct.unpack_from(order + "iI", frame, at + 16)
            part = struct.unpack_from(order + "I", frame, at + 24)[0] if kind == DATA_FRAG else 0
            yield (high << 32) + low, part
        at += 4 + (length or len(frame))


def without_checksum(frame):
    """A frame whose sender left the checksum to its card has none that is right; 0 means that a datagram of UDP has none."""
    is_first_of_udp = frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[20] & 0x1F == 0 and frame[21] == 0
    at = 14 + (frame[14] & 15) * 4 + 6
    return frame[:at] + b"\0\0" + frame[at + 2:] if is_first_of_udp else frame


def main():
    names, log, dropped_digit = sys.argv[1:3], open(sys.argv[3], "w", buffering=1), int(sys.argv[4])
    cards = []
    for name in names:
        card = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        card.bind((name, 0))
        cards.append(card)
    print("relaying", flush=True)
    seen, waiting, order, latest = set(), [], 0, {}
    while True:
        patience = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for card in select.select(cards, [], [], patience)[0]:
            frame, address = card.recvfrom(65536)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            found = list(samples(frame)) if card is cards[0] and len(frame) >= 900 else []
            delay_s = found[0][0] * 37 % 13 / 1000 if found else 0
            drop = any(number % 10 == dropped_digit and (number, part) not in seen for number, part in found)
            seen.update(found)
            if drop:
                for number, part in found:
                    print(number, part, 1, 0, 0, file=log)
            else:
                order += 1
                latest[card] = max(time.monotonic() + delay_s, latest.get(card, 0))
                heapq.heappush(waiting, (latest[card], order, cards[card is cards[0]], without_checksum(frame), found))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, card, frame, found = heapq.heappop(waiting)
            before_ns = time.time_ns()
            card.send(frame)
            for number, part in found:
                print(number, part, 0, before_ns, time.time_ns(), file=log)


main()
