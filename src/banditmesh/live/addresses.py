"""Addresses as people write them: `host:port`, an IPv6 host in brackets."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final, NamedTuple

from .. import checks
from ..errors import InputError

_ADDRESS: Final = re.compile(
    r"(?:\[(?P<six>[0-9a-fA-F.]*:[0-9a-fA-F:.]*(?:%\w+)?)\]|(?P<host>[^\s:\[\]/]+)):(?P<port>[0-9]{1,5})"
)


class Address(NamedTuple):
    """A host and a port.

    Examples
    --------
    >>> Address.parse("[::1]:7000"), str(Address("10.0.0.1", 7000))
    (Address(host='::1', port=7000), '10.0.0.1:7000')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: object, what: str = "address") -> Address:
        """The address that a text stands for; `what` is what an error calls it."""
        match = _ADDRESS.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            hint = "host:port, an IPv6 host in brackets, or 0.0.0.0 for all of this machine's addresses"
            raise InputError(f"{what} must be {hint}; got {checks.shown(text)}")
        port = int(match["port"])
        if port > 65535:
            raise InputError(f"{what} must have a port of at most 65535, got {port}")
        return cls(match["six"] or match["host"], port)

    @classmethod
    def of(cls, name: Any) -> Address:
        """The address in what a socket says of itself or of its peer."""
        return cls(str(name[0]), int(name[1]))

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine's own, for certain: `localhost`, 127.0.0.0/8 or ::1."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
