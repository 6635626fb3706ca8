"""Decodes a Perfetto trace by the public schema, which the PyPI package `perfetto` contains, and prints its packets as JSON: a list
of objects with the names of the schema, with numbers in place of enumerations. Fails if the trace has a field that the schema does
not have, or a field with another wire type, which a decoder takes for an unknown one.
decode_trace.py FILE"""
import json, sys

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace


def plain(message, place):
    unknown = [field.field_number for field in UnknownFieldSet(message)]
    if unknown:
        sys.exit(f"{place}: fields that the schema does not have: {unknown}")
    result = {}
    for field, value in message.ListFields():
        at = f"{place}.{field.name}"
        one = (lambda v: plain(v, at)) if field.type == FieldDescriptor.TYPE_MESSAGE else lambda v: v
        # An enumeration is a number; a number without a name is not in the schema.
        values = value if field.is_repeated else [value]
        if field.enum_type is not None and any(v not in field.enum_type.values_by_number for v in values):
            sys.exit(f"{at}: {value} is not in the schema")
        result[field.name] = [one(v) for v in values] if field.is_repeated else one(value)
    return result


trace = Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
json.dump([plain(packet, f"packet {n}") for n, packet in enumerate(trace.packet)], sys.stdout)
