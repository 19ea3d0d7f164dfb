"""A sidecar that keeps a queue of Main in a file, so that its jobs outlive Main and the device's power.

The operator names it as the `store` of a queue. A job that somebody puts arrives here as a request, is in the file before
it is answered, and is given to Main's readers with "until done". It leaves the file when a reader has finished it. So a
job that was acknowledged is delivered at least once, whenever this program, Main or the device dies. It may come twice.

The file has one line for each thing that happened, with a checksum. A line that a crash has cut short was not answered,
and is skipped. Jobs that Main gives up on (`max-deliveries`) go to FILE.dead, one line each.
"""

import argparse
import base64
import errno
import fcntl
import os
import pathlib
import shutil
import sys
import threading
import time
import zlib

from weir_peer import Ended, Failure, Peer, WeirError

COMPACT_AT = 1 << 20


def line(kind, number, payload=b""):
    text = f"{kind} {number} {base64.b64encode(payload).decode()}"
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


def parse(raw):
    """The kind, number and payload of a line; None if it is cut short or damaged."""
    try:
        checksum, text = raw.rstrip(b"\n").split(b" ", 1)
        kind, number, payload = text.decode().split(" ")
        if raw.endswith(b"\n") and int(checksum, 16) == zlib.crc32(text):
            return kind, int(number), base64.b64decode(payload)
    except ValueError:
        pass
    return None


def die(error):
    """What is on the disk is not known any more. The next start reads it."""
    print(f"store: {error}", file=sys.stderr)
    os._exit(1)


def write(file, data):
    if file.write(data) != len(data):
        raise OSError(errno.ENOSPC, "the disk is full")


def sync_directory(path):
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


class Log:
    """The jobs that are not done, in memory and in the file."""

    def __init__(self, path, max_jobs, max_bytes):
        self.path, self.max_jobs, self.max_bytes = pathlib.Path(path), max_jobs, max_bytes
        self.lock, self.changed = threading.Lock(), threading.Condition()
        self.jobs, self.bytes, self.last = {}, 0, 0
        self.only_one = open(f"{path}.lock", "w")
        fcntl.flock(self.only_one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        damaged = 0
        if self.path.exists():
            with open(self.path, "rb") as file:
                for raw in file:
                    damaged += not self.replay(raw)
        if damaged:
            # Not the work of a crash: a person should look.
            print(f"store: {damaged} damaged lines, kept in {self.path}.damaged", file=sys.stderr)
            shutil.copyfile(self.path, f"{self.path}.damaged")
        self.bytes = sum(map(len, self.jobs.values()))
        self.compact()

    def replay(self, raw):
        """False if the line is damaged. The last line may be cut short."""
        match parse(raw):
            case ("job", number, payload):
                self.jobs[number] = payload
            case ("done", number, _):
                self.jobs.pop(number, None)
            case _:
                return not raw.endswith(b"\n")
        self.last = max(self.last, number)
        return True

    def compact(self):
        """Writes what is not done into a new file, and puts that in place of the old one once it is on the disk."""
        # The last number stays taken, also when its job is done.
        data = line("done", self.last) + b"".join(line("job", *job) for job in self.jobs.items())
        new = self.path.with_name(self.path.name + ".new")
        new.unlink(missing_ok=True)
        file = open(new, "ab", buffering=0)
        write(file, data)
        os.fsync(file.fileno())
        os.replace(new, self.path)
        self.file, self.size = file, len(data)
        try:
            sync_directory(self.path)
        except OSError as error:
            die(error)

    def append(self, raw, sync):
        try:
            write(self.file, raw)
        except OSError as error:
            try:
                # The next line must not become a part of this one.
                os.ftruncate(self.file.fileno(), self.size)
            except OSError as second:
                die(second)
            raise Failure("io", str(error)) from error
        self.size += len(raw)
        if sync:
            try:
                os.fsync(self.file.fileno())
            except OSError as error:
                die(error)

    def add(self, payload):
        with self.lock:
            if len(self.jobs) >= self.max_jobs or self.bytes + len(payload) > self.max_bytes:
                raise Failure("full", f"{len(self.jobs)} jobs of {self.bytes} bytes wait")
            self.append(line("job", self.last + 1, payload), sync=True)
            self.last += 1
            self.jobs[self.last] = payload
            self.bytes += len(payload)
        self.tell()

    def done(self, number):
        with self.lock:
            # Not synced: if the line is lost, the job is delivered again.
            self.append(line("done", number), sync=False)
            # It may be done twice, if it was given again.
            self.bytes -= len(self.jobs.pop(number, b""))
            if self.size > COMPACT_AT and self.size > 4 * self.bytes:
                try:
                    self.compact()
                except OSError as error:
                    print(f"store: the file stays as it is: {error}", file=sys.stderr)
        self.tell()

    def bury(self, number):
        """A job that Main gives up on is kept for a person to look at."""
        path = self.path.with_name(self.path.name + ".dead")
        with open(path, "ab") as file:
            file.write(line("dead", number, self.jobs[number]))
            file.flush()
            os.fsync(file.fileno())
        sync_directory(path)
        self.done(number)

    def next(self, given):
        """The oldest job that is not given to Main; None if there is none."""
        with self.lock:
            return next(((number, payload) for number, payload in self.jobs.items() if number not in given), None)

    def tell(self):
        with self.changed:
            self.changed.notify_all()


def run(options, token, log):
    """One session: takes jobs in, and gives them to Main, oldest first, at most `--at-once`."""
    peer = Peer(options.socket, options.name, token)
    given = set()

    def put(request):
        log.add(request.payload)
        return b""

    def answered(number, future):
        error = future.exception()
        try:
            if error is None:
                log.done(number)
            elif error.code == "dead":
                log.bury(number)
            elif not isinstance(error, Ended):
                print(f"store: job {number}: {error}; giving it again", file=sys.stderr)
                time.sleep(1)
        except (OSError, Failure) as failure:
            print(f"store: job {number} will be given again: {failure}", file=sys.stderr)
        given.discard(number)
        log.tell()

    def ended():
        peer.wait()
        log.tell()

    peer.serve(options.contract, {options.queue: put})
    threading.Thread(target=ended, daemon=True).start()
    while not peer.ended:
        with log.changed:
            job = log.next(given) if len(given) < options.at_once else None
            if job is None:
                log.changed.wait_for(lambda: peer.ended or len(given) < options.at_once and log.next(given))
                continue
        number, payload = job
        given.add(number)
        future = peer.put_later(options.queue, payload, until_done=True)
        # On a thread of its own: the session's reader must not wait for the disk.
        threading.Thread(target=lambda n=number, f=future: answered(n, f), daemon=True).start()
    raise peer.ended


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket", default="/run/weir/peers.sock")
    parser.add_argument("--name", default="sidecar:store")
    parser.add_argument("--token-file", help="without it, Main knows the sidecar by its user")
    parser.add_argument("--contract", default="uploads.store@1")
    parser.add_argument("--queue", default="uploads")
    parser.add_argument("--file", default="uploads.log")
    parser.add_argument("--at-once", type=int, default=8, help="jobs that Main has at once; below its in-flight")
    parser.add_argument("--max-jobs", type=int, default=10_000)
    parser.add_argument("--max-bytes", type=int, default=64 << 20)
    options = parser.parse_args()
    token = pathlib.Path(options.token_file).read_text().strip() if options.token_file else ""
    log = Log(options.file, options.max_jobs, options.max_bytes)
    while True:
        try:
            run(options, token, log)
        except (OSError, EOFError, WeirError) as error:
            print(f"store: {error}; connecting again", file=sys.stderr)
        time.sleep(1)


if __name__ == "__main__":
    main()
