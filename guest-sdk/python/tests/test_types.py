"""Types as JSON, both ways, and names."""

import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

import weir
from weir import _names as names
from weir._types import Misfit, Payload, encode


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


@dataclass
class Leaf:
    text: str
    weight: float = 1.0


@dataclass
class Tree:
    """A tree."""

    leaves: list[Leaf]
    by_name: dict[str, Leaf]
    pair: tuple[int, str]
    colour: Colour
    kind: Literal["oak", "elm"]
    parent: "Tree | None"
    from_: Annotated[str, "Where it is from."] = field(default="here", metadata={"name": "from"})
    tags: set[str] = field(default_factory=set)
    anything: Any = None


@weir.strict
@dataclass
class Strict:
    volume: int

    def __post_init__(self) -> None:
        if self.volume > 11:
            raise ValueError("louder than eleven")


JSON = (
    b'{"leaves":[{"text":"\xc3\xa4","weight":2.0}],"by_name":{"a":{"text":"b","weight":1.0}},"pair":[1,"x"],"colour":"green",'
    b'"kind":"oak","parent":null,"from":"there","tags":["t"],"anything":[1,null]}'
)
TREE = Tree([Leaf("ä", 2.0)], {"a": Leaf("b")}, (1, "x"), Colour.GREEN, "oak", None, "there", {"t"}, [1, None])


def test_a_value_survives_the_way_to_json_and_back() -> None:
    assert encode(TREE) == JSON
    assert Payload(Tree, "tree").decode(JSON) == TREE
    assert Payload(bytes, "raw").decode(b"\xff") == b"\xff" == encode(b"\xff")


def test_a_field_with_a_default_or_none_may_be_absent() -> None:
    tree = Payload(Tree, "tree").decode(
        b'{"leaves":[],"by_name":{},"pair":[1,"x"],"colour":"red","kind":"elm","other":1}'
    )
    assert tree == Tree([], {}, (1, "x"), Colour.RED, "elm", None)


@pytest.mark.parametrize(
    ("of", "json", "reason"),
    [
        (int, b"true", "`$` must be a whole number, not true"),
        (int, b"1.0", "`$` must be a whole number, not a number"),
        (str, b"null", "`$` must be a string, not null"),
        (float, b'"1"', "`$` must be a number, not a string"),
        (list[Leaf], b'[{"text":"a"},{"text":1}]', "`$[1].text` must be a string, not a number"),
        (dict[str, int], b'{"a":"b"}', "`$.a` must be a whole number, not a string"),
        (tuple[int, str], b"[1]", "`$` must be a list of 2, not a list"),
        (Colour, b'"blue"', "`$` must be one of `red`, `green`"),
        (Strict, b'{"volume":1,"kye":2}', "`$.kye` is unknown"),
        (Strict, b'{"volume":12}', "`$` is refused: louder than eleven"),
        (Strict, b"", "`$` must be an object, not null"),
        (int, b"1 2", "`$` is no JSON"),
        (Any, b"\xff", "`$` is no JSON"),
    ],
)
def test_a_misfit_names_its_place(of: Any, json: bytes, reason: str) -> None:
    with pytest.raises(Misfit) as caught:
        Payload(of, "it").decode(json)
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize("value", [float("nan"), object(), {"a": b"bytes"}])
def test_what_json_has_not_is_no_payload(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode(value)


def test_names_are_those_that_main_accepts() -> None:
    for bad in ["", "main", "A", "1a", "a_b", "a b", "a" * 65]:
        assert not names.is_extension_id(bad)
    for bad in ["", "a", "a@", "a@01", "a@x", "a@+1", "a..b@1", "a.@1", "a@1@2", "a@65536", ".@1", "A@1"]:
        assert not names.is_contract(bad)
    for bad in ["", "a b", "a/b", "ä", "a" * 129]:
        assert not names.is_operation(bad)
    for bad in ["", ".", "a.", ".a", "a..b", "a.>.b", "a>", ">a", "**", "*a", "a\0", "a b", "a.\n"]:
        assert not names.is_pattern(bad)
    assert not any(map(names.is_topic, ["*", "a.>", ""]))
    assert all(map(names.is_contract, ["a@0", "device.info@1", "x-1.y@65535"]))
    assert all(map(names.is_pattern, ["*", ">", "a.*.b", "settings.changed.>", "A_b-1"]))
    assert names.is_operation("get_All-2.x") and names.is_topic("settings.changed.volume")


def test_a_grant_covers_only_what_it_contains() -> None:
    assert names.covers("a.>", "a.*.c") and names.covers("a.*", "a.b")
    assert not any([names.covers("a.*", "a.>"), names.covers("a.b", "a.*"), names.covers("a.>", "a")])


def test_a_topic_of_a_pattern_has_a_segment_in_its_place() -> None:
    assert str(weir.Topic("settings.*.changed").at("volume")) == "settings.volume.changed"
    assert str(weir.Topic("settings.>").at("volume")) == "settings.volume"


@dataclass(frozen=True)
class Chain:
    next: "Chain | None" = None


HOSTILE = [
    (Any, b'"\\ud800"', "`$` is no JSON"),
    (Any, b'{"\\uDFFF":1}', "`$` is no JSON"),
    (dict[str, str], b'{"a":["\\udc00\\ud800"]}', "`$` is no JSON"),
    (Any, '"a"'.encode("utf-16"), "`$` is no JSON"),
    (Any, b'\xef\xbb\xbf"a"', "`$` is no JSON"),
    (Any, b'"\xed\xa0\x80"', "`$` is no JSON"),
    (float, b"1" + b"0" * 400, "`$` is out of range"),
    (list[float], b"[1" + b"0" * 400 + b"]", "`$[0]` is out of range"),
    (int, b"1" * 5000, "`$` is no JSON"),
    (float, b"1e400", "`$` is no JSON: a number is out of range"),
    (Any, b"[-1e400]", "`$` is no JSON: a number is out of range"),
    (float, b"NaN", "`$` is no JSON: `NaN` is no number"),
    (Any, b"[Infinity]", "`$` is no JSON: `Infinity` is no number"),
    (Any, b"-Infinity", "`$` is no JSON: `-Infinity` is no number"),
    (Any, b"[" * 200_000, "`$` is nested too deeply"),
    (Any, b'{"a":' * 200_000, "`$` is nested too deeply"),
    (Chain, b'{"next":' * 450 + b"null" + b"}" * 450, "`$` is nested too deeply"),
    (set[Any], b"[[1]]", "`$` cannot be a `set`"),
    (dict[str, frozenset[Any]], b'{"a":[{}]}', "`$.a` cannot be a `frozenset`"),
]
"""A type, a payload that does not fit it, and why."""


@pytest.mark.parametrize(("of", "json", "reason"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_payload_is_a_misfit(of: Any, json: bytes, reason: str) -> None:
    with pytest.raises(Misfit) as caught:
        Payload(of, "it").decode(json)
    assert str(caught.value).startswith(reason)
    str(caught.value).encode()


@pytest.mark.parametrize("inner", [b"", b'"[[[{{{"', b'"\\\\","[\\"]]{"', b'"]]]"'])
def test_payloads_may_be_nested_127_deep(inner: bytes) -> None:
    json = b"[" * 127 + inner + b"]" * 127
    assert encode(Payload(Any, "it").decode(json)) == json
    assert len(Payload(Any, "it").decode(b"[" + b"[]," * 1000 + b"[]]")) == 1001
    for deep in (b"[" + json + b"]", b"[" * 128, b"[" * 64 + b'"]]]]",' + b'{"}}":' * 64):
        with pytest.raises(Misfit, match="nested too deeply"):
            Payload(Any, "it").decode(deep)


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert Payload(Any, "it").decode(b'{"\\ud83d\\ude00":"\\\\ud800"}') == {"\U0001f600": "\\ud800"}


def test_a_name_that_is_no_utf_8_is_refused() -> None:
    with pytest.raises(weir.DeclarationError):
        weir.Topic("\ud800")
    assert not any([names.is_topic("a.\ud800"), names.is_operation("\ud800"), names.is_contract("\ud800@1")])
