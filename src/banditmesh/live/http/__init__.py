"""The HTTP API of a node: who may ask, what is asked and answered, and a client of it.

guard      who may ask, and where the API listens
openapi    what is taken and given; `sidecar` does it, and `metrics` is what Prometheus reads
serving    a node with its API as a process; `process`, what the page of `banditmesh serve` is served by too
client     the other end; it needs nothing but the standard library, so nothing is imported here
"""
