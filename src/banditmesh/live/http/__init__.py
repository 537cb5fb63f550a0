"""The HTTP API of a node: who may ask, what is asked and answered, and a client of it."""
