"""A member among gateways that are too full, gone or there. They are sockets of this program."""

import socket
import struct
import threading
import time
import unittest

from pares import Answer, Cancel, Connection, Lost, MassCancel, Member, ProtocolError, Reason, Rejected, protocol
from pares.connection import Address

SIGNED_ON = protocol.frame(129, struct.pack("<QHHII4x", 0, 0, 16, 7, 0))


def rejection(reason: Reason) -> bytes:
    return protocol.frame(134, struct.pack("<QB7x", 0, reason))


def answer(name: int, executed: int, number: int) -> bytes:
    """To a mass cancel."""
    return protocol.frame(131, struct.pack("<6QIHBBIIQ", name, 1, 1, 5, executed, 0, 0, 0, 5, 0, 0, 0, number))


class Gateway:
    """Gives each connection the next of its answers, and closes it; the last one again and again."""

    def __init__(self, *answers: bytes) -> None:
        self.connections = 0
        self._answers = answers
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._socket.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            answer = self._answers[min(self.connections, len(self._answers) - 1)]
            self.connections += 1
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Gateways(unittest.TestCase):
    def gateway(self, *answers: bytes) -> Gateway:
        gateway = Gateway(*answers)
        self.addCleanup(gateway.close)
        return gateway

    def member(self, *gateways: Gateway, patience: float = 30.0) -> Member:
        member = Member([one.address for one in gateways], lambda address: Connection(address, 7), patience)
        self.addCleanup(member.close)
        return member

    def test_a_full_gateway_is_passed_by(self) -> None:
        full, free = self.gateway(rejection(Reason.TOO_MANY_CONNECTIONS)), self.gateway(SIGNED_ON)
        self.assertEqual(self.member(full, free).connection.signed_on.member, 7)
        self.assertEqual((full.connections, free.connections), (1, 1))

    def test_a_gateway_that_goes_during_the_sign_on_is_passed_by(self) -> None:
        gone, free = self.gateway(b""), self.gateway(SIGNED_ON)
        self.member(gone, free)
        self.assertEqual((gone.connections, free.connections), (1, 1))

    def test_the_only_gateway_is_tried_until_it_has_room(self) -> None:
        gateway = self.gateway(rejection(Reason.TOO_MANY_SESSIONS), b"", rejection(Reason.TOO_MANY_CONNECTIONS), SIGNED_ON)
        self.member(gateway)
        self.assertEqual(gateway.connections, 4)

    def test_patience_ends(self) -> None:
        full, gone = self.gateway(rejection(Reason.TOO_MANY_SESSIONS)), self.gateway(b"")
        began = time.monotonic()
        with self.assertRaises((Rejected, Lost)):
            self.member(full, gone, patience=0.2)
        self.assertGreaterEqual(time.monotonic() - began, 0.2)
        self.assertGreater(full.connections, 1)

    def test_what_is_given_up_is_not_repeated(self) -> None:
        gateway = self.gateway(SIGNED_ON)
        member = self.member(gateway)
        member.send(Cancel(1, 9), Cancel(2, 9))
        member.give_up(1)
        member.give_up(5)
        self.assertEqual(member.unanswered, [Cancel(2, 9)])

    def test_a_part_of_a_mass_cancel_is_not_its_answer(self) -> None:
        part, whole = answer(1, executed=1, number=7), answer(1, executed=6, number=0)
        gateway = self.gateway(SIGNED_ON + part + whole)
        told: list[protocol.Update] = []
        member = self.member(gateway)
        self.assertEqual(member.submit(MassCancel(1, 0), told.append).executed, 6)
        self.assertEqual(([update.number for update in told if isinstance(update, Answer)], member.unanswered), ([7], []))
        connection = Connection(self.gateway(SIGNED_ON + part + whole).address, member=7)
        self.addCleanup(connection.close)
        self.assertEqual(connection.submit(MassCancel(1, 0)).executed, 6)

    def test_what_no_time_puts_right_is_raised_at_once(self) -> None:
        refused, free = self.gateway(rejection(Reason.WRONG_KEY)), self.gateway(SIGNED_ON)
        with self.assertRaises(Rejected) as told:
            self.member(refused, free)
        self.assertEqual((told.exception.reason, free.connections), (Reason.WRONG_KEY, 0))
        stranger = self.gateway(b"HTTP/1.1 400 Bad Request\r\n")
        with self.assertRaises(ProtocolError):
            self.member(stranger, free)


if __name__ == "__main__":
    unittest.main()
