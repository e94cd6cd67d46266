"""Serve foreign programs: each process that opens /dev/kfd through the shim gets a kernel driver of its own.

Messages go over a Unix socket, one connection for each thread of a client, because a call may sleep. They are
those of shim.c: a request (open, ioctl, or which file holds the pages of an mmap) and a reply. A device file
of the client is one end of a socket pair: when all its copies are closed, the end here reads as ended.
"""
import contextlib
import errno
import os
import selectors
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Sequence

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.engines import EmulatorError
from tiny.emulator.amd.kernel.cards import Card
from tiny.emulator.amd.kernel.process import ForeignProcess
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import io

OPEN, IOCTL, PAGES = range(3)
REQUEST = struct.Struct("=IIQQII")                           # kind, file, first, second, shared, bytes behind
REPLY = struct.Struct("=iIQ")                                # errno, file, offset
PEER = struct.Struct("=iII")                                 # struct ucred, unix(7): process, user, group
LONGEST = 1 << 15                                            # bytes of a message; ioctls have 16 KiB at most
EAGER_S, LAZY_S = 50e-6, 2e-3                                # between looks at the doorbells: busy, idle
EAGER_LOOKS = 200                                            # at the short interval after something was done


class Client:
    """A process: its driver, its device files (number -> our end of the socket pair), its connections.

    exit: a file descriptor that is readable when the process has ended, pidfd_open(2).
    """

    def __init__(self, pid: int, cards: Sequence[Card]):
        system = io.Provider()
        self.process = ForeignProcess(system, pid)
        self.driver = EmulatedRadeon(list(cards), system, self.process)
        self.exit = os.pidfd_open(pid)
        self.files: dict[int, socket.socket] = {}
        self.connections: set[socket.socket] = set()

    def end(self) -> None:
        """The process is gone: free what it held."""
        self.driver.release()
        for held in self.files.values():
            held.close()
        os.close(self.exit)


class Server:
    """Accepts clients at a path until `close`. Threads: one for connections, one for doorbells, one a client
    thread.
    """

    def __init__(self, cards: Sequence[Card], path: str):
        self.cards = cards
        self._clients: dict[int, Client] = {}
        self._lock = threading.Lock()
        self._workers: set[threading.Thread] = set()
        self._ended = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        targets = self._accept, self._poll
        self._threads = [threading.Thread(target=target, daemon=True) for target in targets]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Take no more clients and end those there are."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._selector.close()
        self._listener.close()
        with self._lock:
            clients, self._clients = list(self._clients.values()), {}
            for client in clients:
                client.driver.events.close()
                for connection in client.connections:
                    connection.shutdown(socket.SHUT_RDWR)
        for worker in list(self._workers):
            worker.join()
        for client in clients:
            client.end()

    # -- clients ---------------------------------------------------------------------------------------------
    def _accept(self) -> None:
        while not self._ended.is_set():
            for key, _ in self._selector.select(0.05):
                if key.fileobj is self._listener:
                    connection, _ = self._listener.accept()
                    worker = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                    self._workers.add(worker)
                    worker.start()
                else:
                    self._closed(key)

    def _closed(self, key: selectors.SelectorKey) -> None:
        """The client has closed a device file; file -1: it has ended, and its calls sleep no more."""
        client, file = key.data
        with self._lock:
            if self._selector.get_map().get(key.fd) != key:  # another thread was faster
                return
            self._selector.unregister(key.fd)
            if file < 0:
                client.driver.events.close()
                return
            client.files.pop(file).close()
            client.driver.close(file)
        self._end_if_gone(client)

    def _serve(self, connection: socket.socket) -> None:
        """One thread of a client, until it ends."""
        pid, _, _ = PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
        with self._lock:
            client = self._clients.get(pid)
            if client is None:
                client = self._clients[pid] = Client(pid, self.cards)
                self._selector.register(client.exit, selectors.EVENT_READ, (client, -1))
            client.connections.add(connection)
        try:
            with contextlib.suppress(ConnectionError):
                while True:
                    data, fds, _, _ = socket.recv_fds(connection, LONGEST, 1)
                    if not data:
                        break
                    answer, given = self._answer(client, data, fds)
                    socket.send_fds(connection, [answer], given)
                    if data[0] == OPEN:
                        for fd in given:
                            os.close(fd)
        finally:
            with self._lock:
                client.connections.discard(connection)
            connection.close()
            self._end_if_gone(client)
            self._workers.discard(threading.current_thread())

    def _end_if_gone(self, client: Client) -> None:
        """A process without connections and device files has ended, or has no use for the card any more."""
        with self._lock:
            known = self._clients.get(client.process.pid) is client
            gone = known and not client.connections and not client.files
            if gone:
                del self._clients[client.process.pid]
                key = self._selector.get_map().get(client.exit)
                if key is not None and key.data == (client, -1):
                    self._selector.unregister(client.exit)
        if gone:
            client.end()

    # -- requests --------------------------------------------------------------------------------------------
    def _answer(self, client: Client, data: bytes, fds: list[int]) -> tuple[bytes, list[int]]:
        """(reply, file descriptors that go with it) to a request."""
        kind, file, first, second, _, size = REQUEST.unpack_from(data)
        argument = bytearray(data[REQUEST.size:REQUEST.size + size])
        try:
            if kind == OPEN:
                file, end = self._open(client, argument.decode(), first)
                return REPLY.pack(0, file, 0), [end]
            if file not in client.files:  # of the parent, before a fork
                raise OSError(errno.EBADF, "a device file that another process opened")
            if kind == PAGES:
                fd, offset = client.driver.pages(file, first, second)
                return REPLY.pack(0, file, offset), [fd]
            client.process.handed.pages = (fds.pop(), second) if fds else None
            client.driver.ioctl(file, first, argument)
            return REPLY.pack(0, file, 0) + argument, []
        except OSError as error:
            return REPLY.pack(error.errno, file, 0) + argument, []
        except EmulatorError as error:
            self._hang(client, error)
            return REPLY.pack(0, file, 0) + argument, []
        finally:
            for fd in fds:
                os.close(fd)

    def _open(self, client: Client, path: str, flags: int) -> tuple[int, int]:
        """A device file's number, and the client's end of its socket pair."""
        file = client.driver.open(path, flags)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with self._lock:
            client.files[file] = ours
            self._selector.register(ours, selectors.EVENT_READ, (client, file))
        return file, theirs.detach()

    # -- engines ---------------------------------------------------------------------------------------------
    def _poll(self) -> None:
        """Look at the doorbells again and again, for a client only stores there; less often when idle."""
        idle = 0
        while not self._ended.is_set():
            moved = False
            for client in list(self._clients.values()):
                try:
                    moved |= bool(client.driver.queues) and client.driver.run()
                except Exception as error:  # also a mistake of ours ends one client, and not all of them
                    if not isinstance(error, EmulatorError):
                        traceback.print_exc()
                    self._hang(client, error)
            idle = 0 if moved else idle + 1
            time.sleep(EAGER_S if idle < EAGER_LOOKS else LAZY_S)

    @staticmethod
    def _hang(client: Client, error: Exception) -> None:
        """What would hang a card, or is not emulated: say so, and tell the client that the card was reset."""
        print(f"emulate: process {client.process.pid}: {error}", file=sys.stderr, flush=True)
        for gpu_id in client.driver.gpus:
            client.driver.events.signal_all(kfd.KFD_IOC_EVENT_HW_EXCEPTION, memory_lost=1, gpu_id=gpu_id)
