"""Cuts a Python process, and those that it starts, off from all networks but this machine's own.

It is found by way of PYTHONPATH. An attempt to reach another machine is an error for whoever makes it, and a line in
the file that BANDITMESH_OUTSIDE names.
"""

import ipaddress
import os
import sys


def _is_here(host):
    if not host or host == "localhost" or (isinstance(host, str) and host.startswith("/")):
        return True
    try:
        address = ipaddress.ip_address(host.decode() if isinstance(host, bytes) else host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _look(event, given):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        host = given[1][0] if isinstance(given[1], tuple) else None
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = given[0]
    else:
        return
    if not _is_here(host):
        with open(os.environ["BANDITMESH_OUTSIDE"], "a", encoding="utf-8") as file:
            file.write(f"{event}: {host}\n")
        raise OSError(f"cut off from {host}")


sys.addaudithook(_look)
