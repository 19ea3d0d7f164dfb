"""What a component carries, and what is wrong with an extension before there is one."""

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

import weir
from weir import _build, _describe

STORE = weir.Contract("store@1", "Told by its provider.")
GET = STORE.operation("get", str, str | None, "Told by its provider.")


@dataclass
class Name:
    """Whom to greet."""

    name: Annotated[str, "The name."]
    loud: bool = False
    friend: "Name | None" = None


GREETER = weir.Contract("greeter@1", "Greets people.")
GREETED = GREETER.topic("greeter.greeted", Name, "Names, as they are greeted.")
CARDS = GREETER.queue("cards", bytes)

ext = weir.Extension(
    "greeter",
    version="1.2.3",
    requires=[STORE],
    wants=["device.info@1"],
    publishes=[GREETED],
    puts=[CARDS],
    dirs={"/data": "rw"},
    env=["LANG"],
    net=["example.com:443"],
)


@ext.serves(GREETER, errors={"no-name": "The name is empty."})
async def greet_all(args: Name) -> list[str]:
    """Greets somebody."""
    return [args.name]


@ext.serves(GREETER, "icon")
async def _icon(payload: bytes) -> bytes:
    return payload


@ext.serves(GREETER)
async def stop() -> None: ...


@ext.on_event("settings.>")
async def changed(event: weir.Event[Any]) -> None: ...


@ext.on_job("letters")
async def write(job: str) -> None: ...


def test_the_manifest_says_what_the_handlers_and_the_author_say() -> None:
    assert json.loads(_describe.manifest(ext)) == {
        "schema": 1,
        "id": "greeter",
        "version": "1.2.3",
        "fulfills": ["greeter@1"],
        "requires": ["store@1"],
        "wants": ["device.info@1"],
        "publishes": ["greeter.greeted"],
        "subscribes": ["settings.>"],
        "puts": ["cards"],
        "takes": ["letters"],
        "grants": {"dirs": [{"guest": "/data", "mode": "rw"}], "env": ["LANG"], "net": ["example.com:443"]},
    }


def test_contracts_are_described_by_annotations_and_docstrings() -> None:
    served, called = map(json.loads, _describe.contracts(ext).splitlines())
    friend = {"anyOf": [{"$ref": "#/components/schemas/Name"}, {"type": "null"}]}
    assert served == {
        "openrpc": "1.3.2",
        "info": {"title": "greeter@1", "version": "1", "description": "Greets people."},
        "x-role": "provider",
        "methods": [
            {
                "name": "greeter@1/greet-all",
                "description": "Greets somebody.",
                "paramStructure": "by-name",
                "x-arguments": "Name",
                "params": [
                    {"name": "name", "description": "The name.", "required": True, "schema": {"type": "string"}},
                    {"name": "loud", "schema": {"type": "boolean"}},
                    {"name": "friend", "schema": friend},
                ],
                "result": {"name": "result", "schema": {"type": "array", "items": {"type": "string"}}},
                "errors": [{"code": -32010, "message": "no-name", "data": "The name is empty."}],
            },
            {"name": "greeter@1/icon", "x-bytes": True, "params": [], "result": {"name": "bytes", "schema": {}}},
            {
                "name": "greeter@1/stop",
                "paramStructure": "by-name",
                "x-arguments": "Empty",
                "params": [],
                "result": {"name": "result", "schema": {"type": "null"}},
            },
        ],
        "x-topics": [
            {
                "name": "greeter.greeted",
                "description": "Names, as they are greeted.",
                "payload": {"$ref": "#/components/schemas/Name"},
            }
        ],
        "x-queues": [{"name": "cards", "x-bytes": True}],
        "components": {
            "schemas": {
                "Name": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "The name."},
                        "loud": {"type": "boolean"},
                        "friend": friend,
                    },
                    "required": ["name"],
                    "description": "Whom to greet.",
                }
            }
        },
    }
    assert called == {
        "openrpc": "1.3.2",
        "info": {"title": "store@1", "version": "1"},
        "x-role": "caller",
        "methods": [
            {
                "name": "store@1/get",
                "params": [],
                "x-argument": {"type": "string"},
                "result": {"name": "result", "schema": {"type": ["string", "null"]}},
            }
        ],
    }


def test_two_types_of_one_name_are_refused() -> None:
    def other() -> type:
        @dataclass
        class Name:
            text: str

        return Name

    contract = weir.Contract("twins@1")
    contract.topic("a", Name)
    contract.topic("b", other())
    twins = weir.Extension("twins")
    twins.contracts.append(contract)
    with pytest.raises(weir.DeclarationError, match="two types of one contract are named `Name`"):
        _describe.contracts(twins)


def declared(declare: Callable[[weir.Extension], object]) -> str:
    with pytest.raises(weir.DeclarationError) as caught:
        declare(weir.Extension("wrong"))
    return str(caught.value)


def test_a_handler_that_is_not_async_is_refused() -> None:
    def handler(args: str) -> str:
        return args

    assert "a handler must be an `async def`" in declared(lambda ext: ext.serves("a@1")(handler))  # type: ignore[type-var]


def test_a_handler_with_wrong_parameters_is_refused() -> None:
    async def two(a: str, b: str) -> str:
        return a + b

    async def untyped(a) -> str:  # type: ignore[no-untyped-def]
        return str(a)

    async def without_result(a: str):  # type: ignore[no-untyped-def]
        return a

    async def no_event(a: str) -> None: ...

    assert "takes at most one parameter" in declared(lambda ext: ext.serves("a@1")(two))
    assert "its parameter `a` has no type" in declared(lambda ext: ext.serves("a@1")(untyped))
    assert "its result has no type" in declared(lambda ext: ext.serves("a@1")(without_result))
    assert "takes a `weir.Event[T]`" in declared(lambda ext: ext.on_event("a")(no_event))
    assert f"({__file__}:" in declared(lambda ext: ext.serves("a@1")(two))


def test_a_type_that_cannot_be_described_is_refused_with_its_place() -> None:
    @dataclass
    class Holder:
        when: complex

    async def holder(args: Holder) -> str:
        return ""

    async def union(args: str) -> int | str:
        return ""

    async def raw(args: list[bytes]) -> str:
        return ""

    async def mixed(args: bytes) -> str:
        return ""

    assert "`Holder.when`: the type `complex` cannot be described" in declared(lambda ext: ext.serves("a@1")(holder))
    assert "only `T | None`" in declared(lambda ext: ext.serves("a@1")(union))
    assert "JSON has no bytes" in declared(lambda ext: ext.serves("a@1")(raw))
    assert "either both the arguments and the result are `bytes`" in declared(lambda ext: ext.serves("a@1")(mixed))


def test_a_bad_name_is_refused() -> None:
    async def handler() -> None: ...

    async def event(event: weir.Event[str]) -> None: ...

    async def job(job: str) -> None: ...

    assert "`a` is no contract" in declared(lambda ext: ext.serves("a")(handler))
    assert "`a b` is no operation" in declared(lambda ext: ext.serves("a@1", "a b")(handler))
    assert "`a..b` is no topic" in declared(lambda ext: ext.on_event("a..b")(event))
    assert "`A` is no queue" in declared(lambda ext: ext.on_job("A")(job))
    assert "`Not An Id` is no id" in declared(lambda _: weir.Extension("Not An Id"))
    assert "is no absolute path" in declared(lambda _: weir.Extension("a", dirs={"data": "rw"}))


def test_two_handlers_of_one_thing_are_refused() -> None:
    async def handler() -> None: ...

    async def event(event: weir.Event[str]) -> None: ...

    def twice(ext: weir.Extension) -> None:
        ext.serves("a@1")(handler)
        ext.serves("a@1")(handler)

    def two_events(ext: weir.Extension) -> None:
        ext.on_event("a")(event)
        ext.on_event("a")(event)

    assert "`a@1 handler` has two handlers" in declared(twice)
    assert "`a` has two handlers" in declared(two_events)


def test_a_shared_operation_needs_a_handler_with_its_types() -> None:
    contract = weir.Contract("shared@1")
    add = contract.operation("add", int, int)
    contract.operation("sub", int, int)
    shared = weir.Extension("shared")

    async def words(args: str) -> int:
        return 0

    @shared.serves(add)
    async def plus(args: int) -> int:
        return args

    assert "`shared@1 add` takes `int`, not `str`" in declared(lambda ext: ext.serves(add)(words))
    with pytest.raises(weir.DeclarationError, match="`shared@1` declares `sub`, which has no handler"):
        shared.check()


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (None, "error: there is no module `wrong_0`"),
        ("import weir\n", "error: `wrong_1` has no `weir.Extension`"),
        ("import weir\na, b = weir.Extension('a'), weir.Extension('b')\n", "error: `wrong_2` has several extensions"),
        ("import weir\next = weir.Extension('a')\n", "error: the extension `a` has no handlers"),
        ("import weir\next = weir.Extension('A')\n", "error: `A` is no id"),
        ("import no_such_module\n", "error: `wrong_5` cannot be imported: No module named 'no_such_module'"),
        ("1 / 0\n", "error: `wrong_6` cannot be imported"),
    ],
)
def test_what_is_wrong_with_a_module_is_said_before_it_is_built(
    source: str | None,
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    cases = ["error: there", "has no `weir", "several", "no handlers", "no id", "no_such_module", "cannot be imported"]
    name = f"wrong_{next(place for place, part in enumerate(cases) if part in error)}"
    if source is not None:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
    monkeypatch.chdir(tmp_path)
    assert _build.main(["build", name]) == 1
    assert capsys.readouterr().err.startswith(error)
    assert not list(tmp_path.rglob("*.wasm"))


def test_the_wit_is_part_of_the_package() -> None:
    assert "package weir:iec" in (weir.WIT / "iec.wit").read_text()
