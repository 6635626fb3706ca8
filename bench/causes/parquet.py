"""Reads the sample segments of a record: Parquet files, uncompressed, without nesting, as docs/src/record.md describes them.

A reader of its own, in pure Python, because the standard library has none, and because the harm of a fault must be found
without any code of Tailbound. Only what Tailbound writes is supported; everything else is an error.
"""
import struct

PLAIN, PLAIN_DICTIONARY, DELTA, RLE_DICTIONARY = 0, 2, 5, 8
BOOLEAN, INT32, INT64, BYTES = 0, 1, 2, 6
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_2 = 0, 2, 3


class Damaged(Exception):
    pass


class Bytes:
    """A position in a buffer, with the variable-length numbers that Thrift and Parquet share."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        piece = self.data[self.at:self.at + count]
        if len(piece) != count:
            raise Damaged("the file is cut off")
        self.at += count
        return piece

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                return value
            shift += 7

    def zigzag(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)


def thrift(source):
    """Reads one struct of Thrift's compact protocol, as a dictionary from field id to value."""
    fields, last = {}, 0
    while True:
        head = source.take(1)[0]
        if head == 0:
            return fields
        kind, step = head & 15, head >> 4
        last = last + step if step else source.zigzag()
        fields[last] = thrift_value(source, kind)


def thrift_value(source, kind):
    if kind in (1, 2):
        return kind == 1
    if kind == 3:
        return source.take(1)[0]
    if kind in (4, 5, 6):
        return source.zigzag()
    if kind == 7:
        return struct.unpack("<d", source.take(8))[0]
    if kind == 8:
        return bytes(source.take(source.varint()))
    if kind in (9, 10):
        head = source.take(1)[0]
        count = head >> 4 if head >> 4 < 15 else source.varint()
        # In a list a boolean is a byte of its own.
        read = (lambda: source.take(1)[0] == 1) if head & 15 in (1, 2) else (lambda: thrift_value(source, head & 15))
        return [read() for _ in range(count)]
    if kind == 12:
        return thrift(source)
    raise Damaged(f"unknown Thrift type {kind}")


def unpack(data, width, count):
    """Numbers of `width` bits each, the lowest bits first."""
    if width == 0:
        return [0] * count
    bits, mask = int.from_bytes(data, "little"), (1 << width) - 1
    return [(bits >> (i * width)) & mask for i in range(count)]


def delta(source, count):
    """DELTA_BINARY_PACKED: blocks of miniblocks, each with its own bit width."""
    block, miniblocks, total, value = source.varint(), source.varint(), source.varint(), source.zigzag()
    if total != count:
        raise Damaged("a column has another number of values than its page says")
    values, each = [value] if total else [], block // miniblocks
    while len(values) < total:
        smallest, widths = source.zigzag(), source.take(miniblocks)
        for width in widths:
            if len(values) >= total:
                break
            for step in unpack(source.take(each * width // 8), width, each)[:total - len(values)]:
                value = (value + smallest + step + (1 << 63)) % (1 << 64) - (1 << 63)
                values.append(value)
    return values


def hybrid(source, width, count):
    """Runs and packed groups: dictionary keys and definition levels."""
    values = []
    while len(values) < count:
        head = source.varint()
        if head & 1:
            values += unpack(source.take((head >> 1) * width), width, (head >> 1) * 8)
        else:
            key = int.from_bytes(source.take((width + 7) // 8), "little")
            values += [key] * (head >> 1)
    return values[:count]


def plain(source, kind, count):
    if kind == BOOLEAN:
        return [bool(bit) for bit in unpack(source.take((count + 7) // 8), 1, count)]
    if kind == BYTES:
        return [bytes(source.take(int.from_bytes(source.take(4), "little"))).decode() for _ in range(count)]
    letter, size = {INT32: ("i", 4), INT64: ("q", 8)}[kind]
    return list(struct.unpack(f"<{count}{letter}", source.take(count * size)))


def page_values(source, kind, encoding, count, dictionary):
    if encoding == PLAIN:
        return plain(source, kind, count)
    if encoding == DELTA:
        return delta(source, count)
    if encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY):
        return [dictionary[key] for key in hybrid(source, source.take(1)[0], count)]
    raise Damaged(f"encoding {encoding} is not read here")


def column(data, chunk, nullable):
    """All values of one column of one row group; None for null."""
    meta = chunk[3]
    kind, codec, count = meta[1], meta[4], meta[5]
    if codec != 0:
        raise Damaged("the file is compressed")
    source, dictionary, values = Bytes(data, min(meta[9], meta.get(11, meta[9]))), [], []
    while len(values) < count:
        header = thrift(source)
        page = Bytes(source.take(header[3]))
        if header[1] == DICTIONARY_PAGE:
            dictionary = plain(page, kind, header[7][1])
            continue
        if header[1] == DATA_PAGE_2:
            rows, encoding, length = header[8][1], header[8][4], header[8][5]
            levels = hybrid(Bytes(page.take(length)), 1, rows) if nullable else None
        else:
            rows, encoding = header[5][1], header[5][2]
            levels = hybrid(Bytes(page.take(int.from_bytes(page.take(4), "little"))), 1, rows) if nullable else None
        present = iter(page_values(page, kind, encoding, sum(levels) if levels else rows, dictionary))
        values += [next(present) if level else None for level in levels] if levels else list(present)
    return values


def read(path):
    """All columns of a segment, as a dictionary from name to list."""
    data = memoryview(path.read_bytes())
    if data[:4] != b"PAR1" or data[-4:] != b"PAR1":
        raise Damaged(f"{path} is not a Parquet file")
    size = int.from_bytes(data[-8:-4], "little")
    footer = thrift(Bytes(data[len(data) - 8 - size:len(data) - 8]))
    columns = [(field[4].decode(), field.get(3) == 1) for field in footer[2][1:]]
    found = {name: [] for name, _ in columns}
    for group in footer[4]:
        for (name, nullable), chunk in zip(columns, group[1]):
            found[name] += column(data, chunk, nullable)
    return found
