#!/usr/bin/env python3
"""Reads two files of metrics, one of Prometheus and one of OpenTelemetry, with the libraries of these projects, and prints the
values of each as JSON: [[[name, {label: value}, number], ...], ...].   read_metrics.py FILE.prom FILE.json"""
import json, sys
from google.protobuf import json_format
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from prometheus_client.parser import text_string_to_metric_families

prometheus = [[s.name, s.labels, s.value] for family in text_string_to_metric_families(open(sys.argv[1]).read()) for s in family.samples]
data = json_format.Parse(open(sys.argv[2]).read(), MetricsData())  # fails at a member that the schema does not have
telemetry = []
for resource in data.resource_metrics:
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            points = metric.sum.data_points if metric.HasField("sum") else metric.gauge.data_points
            telemetry += [[metric.name, {a.key: a.value.string_value for a in p.attributes}, p.as_double] for p in points]
json.dump([prometheus, telemetry], sys.stdout)
