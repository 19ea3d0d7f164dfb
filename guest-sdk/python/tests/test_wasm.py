"""What crosses the border to a real Main, with the bindings of a component and imports that record it."""

import dataclasses
import gc
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weir
from weir import _log

called: list[tuple[str, ...]] = []
"""Each import with the texts in its arguments."""


@pytest.fixture
def wasm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    command = [sys.executable, "-c", "from componentize_py import script; script()", "-q", "-d", str(weir.WIT)]
    subprocess.run([*command, "-w", "extension", "bindings", str(tmp_path)], check=True)
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    # In a component, the runtime has it.
    monkeypatch.setitem(sys.modules, "componentize_py_runtime", type(sys)("componentize_py_runtime"))
    from weir import _wasm

    yield _wasm
    for made in set(sys.modules) - before:
        del sys.modules[made]


def test_a_lone_surrogate_is_replaced_in_each_import(wasm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(module: Any, name: str) -> None:
        monkeypatch.setattr(module, name, lambda *arguments: called.append((name, *texts(arguments))))

    called.clear()
    for module, name in (
        (wasm.channel, "respond"),
        (wasm.lifecycle, "interrupted"),
        (wasm.lifecycle, "error"),
        (wasm.store, "get"),
        (wasm.events, "subscribe"),
        (wasm.wit_log, "write"),
    ):
        record(module, name)
    main = wasm.Host()
    main.fail(1, "bad-\ud800", "name: \udfff")
    main.interrupted("no \ud800")
    main.error("no \ud800")
    main.config("\ud800")
    wasm._try(wasm.events.subscribe, "a.\ud800")
    fields = {"msg": "about \ud800", "levelno": logging.INFO, "name": "root", "by\ud800": "\udfff"}
    _log.Handler(wasm._write).emit(logging.makeLogRecord(fields))
    assert called == [
        ("respond", "bad-?", "name: ?"),
        ("interrupted", "no ?"),
        ("error", "no ?"),
        ("get", "?"),
        ("subscribe", "a.?"),
        ("write", "about ?", "by?", "?"),
    ]


def test_what_a_refused_import_was_given_does_not_wait_for_the_garbage_collector(
    wasm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(*_arguments: Any) -> None:
        # As in the bindings, the frame holds the error that it raises.
        result = wasm.Err(wasm.wit.Error_PermissionDenied("`a.b` is not in `publishes`"))
        raise result

    monkeypatch.setattr(wasm.events, "publish", publish)
    payload = bytes(4000)
    gc.collect()
    gc.disable()
    before = sys.getrefcount(payload)
    try:
        wasm.Host().publish(None, "a.b", payload, wasm.Options(None, None))
    except weir.PermissionDenied:
        pass
    finally:
        gc.enable()
    assert sys.getrefcount(payload) == before


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, (list, tuple)):
        return [text for one in value for text in texts(one)]
    if dataclasses.is_dataclass(value):
        return [text for field in dataclasses.fields(value) for text in texts(getattr(value, field.name))]
    return []


def test_the_jobs_of_a_batch_are_counted_before_it_is_handed_on(wasm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = wasm.channel
    request = channel.Message_Request(channel.Request(1, 1, 0, 1000, 0, b""))
    jobs = [channel.Message_Job(channel.Job(id, 0, 1, 1, 0, b"")) for id in (2, 3)]
    monkeypatch.setattr(channel, "receive_batch", lambda *_: [request, *jobs])
    told: list[Any] = []

    class Receiver:
        def arrived(self, jobs: Any) -> None:
            told.append([job.id for job in jobs])

        def request(self, request: Any) -> None:
            told.append(request.id)

        def job(self, job: Any) -> None:
            told.append(job.id)

    assert wasm.Host().take(Receiver())
    assert told == [[2, 3], 1, 2, 3]
