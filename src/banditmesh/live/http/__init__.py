"""The HTTP API of a node: who may ask, what is asked and answered, and a client of it.

guard      who may ask, and where the API listens; `asgi` is what it and the sidecar speak
openapi    what is taken and given; `sidecar` does it, and `metrics` is what Prometheus reads, as `exposition` writes it
serving    a node with its API as a process
process    event loop, server and signals: of that process, and of the page of `banditmesh serve`
connections, fast, plain   one caller's connection, by either of two parsers of HTTP
client, async_client   the other end; it needs nothing but the standard library, so nothing is imported here
"""
