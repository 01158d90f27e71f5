"""Connects its standard input and output with a Unix socket, byte for byte.

The SDKs start a server as a command and cannot dial a socket themselves. It knows no protocol.
"""

import os
import socket
import sys
import threading

CHUNK = 65536


def upward(source: int, peer: socket.socket) -> None:
    """Passes on what the client writes; when it is done, the daemon is told so."""
    while data := os.read(source, CHUNK):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)


def downward(peer: socket.socket, sink: int) -> None:
    """Passes on what the daemon writes, until it hangs up."""
    while data := peer.recv(CHUNK):
        while data:
            data = data[os.write(sink, data) :]


def main() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.connect(sys.argv[1])
        threading.Thread(target=upward, args=(sys.stdin.fileno(), peer), daemon=True).start()
        try:
            downward(peer, sys.stdout.fileno())
        except (BrokenPipeError, ConnectionResetError):
            pass
    # The other thread may still wait for a client that says nothing more.
    os._exit(0)


if __name__ == "__main__":
    main()
