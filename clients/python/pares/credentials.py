"""Who a client is, and whom it believes: keys for the sign-on, certificates for TLS."""

from __future__ import annotations

import hashlib
import hmac
import ssl
import struct
from typing import NamedTuple, Protocol, Union

GATEWAYS_NAME = "gateways.pares"
"""The name that the certificates of all gateways bear, whatever their address."""


class Credential(Protocol):
    """What proves a sign-on. Bring your own for Ed25519: `prove` returns the signature of the transcript."""

    def prove(self, transcript: bytes) -> bytes:
        """64 bytes."""
        ...


class SharedKey:
    """A key that client and register share in the manner of SCRAM: the register's copy cannot sign anybody on."""

    def __init__(self, key: bytes) -> None:
        self._client_key = hmac.digest(key, b"Pares client key", "sha256")

    @property
    def stored_key(self) -> bytes:
        """What the register holds."""
        return hashlib.sha256(self._client_key).digest()

    def prove(self, transcript: bytes) -> bytes:
        signature = hmac.digest(self.stored_key, transcript, "sha256")
        return bytes(a ^ b for a, b in zip(self._client_key, signature)) + bytes(32)


class KeyFile(NamedTuple):
    """A session's key in a file, as `pares admin member add MEMBER --shared` makes it."""

    member: int
    session: int
    credential: SharedKey

    @classmethod
    def read(cls, path: str) -> KeyFile:
        """Raises ValueError if there is no shared key in it."""
        with open(path, encoding="ascii") as file:
            lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
        if len(lines) == 1 and len(lines[0]) == 7 and lines[0][:2] == ["pares-key", "shared"]:
            _, _, _, member, _, session, key = lines[0]
            return cls(int(member), int(session), SharedKey(bytes.fromhex(key)))
        raise ValueError(f"{path}: not a shared key; `pares admin member key MEMBER SESSION --shared` makes one")


def transcript(nonce: bytes, gateway: int, session: int, member: int, token: int) -> bytes:
    """What is proved: this one sign-on."""
    return b"Pares sign-on 1\0" + nonce + struct.pack("<HHIQ", gateway, session, member, token)


def tls_context(
    authority: str, certificate: Union[str, None] = None, key: Union[str, None] = None
) -> ssl.SSLContext:
    """TLS 1.3 that believes only the exchange's authority (its `ca.pem`), and shows a certificate if there is one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(authority)
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context
