"""Types as JSON: what an annotation accepts, and the JSON Schema that says so.

A shape is made once, when an extension is declared. So a component has its shapes in the memory that it starts with.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import itertools
import json
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union

from ._errors import DeclarationError, HandlerError

T = TypeVar("T", bound=type)

Schema = Any
"""A JSON Schema."""


class Misfit(Exception):
    """A value that does not fit its type, and where it is."""

    def __init__(self, reason: str) -> None:
        self.reason, self.path = reason, ""

    def __str__(self) -> str:
        return f"`${self.path}` {self.reason}"

    def below(self, step: str) -> Misfit:
        self.path = step + self.path
        return self


def strict(cls: T) -> T:
    """Refuses JSON with fields that this dataclass does not have. Without it they are ignored."""
    cls.__weir_strict__ = True  # type: ignore[attr-defined]
    return cls


class Definitions:
    """The schemas of types with a name, each once."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._types: dict[str, type] = {}

    def reference(self, shape: _Record | _Words) -> Schema:
        known = self._types.setdefault(shape.name, shape.type)
        if known is not shape.type:
            raise DeclarationError(
                f"two types of one contract are named `{shape.name}`: `{known.__module__}.{known.__qualname__}` and "
                f"`{shape.type.__module__}.{shape.type.__qualname__}`"
            )
        if shape.name not in self.schemas:
            self.schemas[shape.name] = {}
            self.schemas[shape.name] = shape.definition(self)
        return {"$ref": f"#/components/schemas/{shape.name}"}


class Shape:
    """The JSON of a type."""

    optional = False
    """Whether a field of this type may be absent."""

    def decode(self, value: Any) -> Any:
        """A value of the type, from what `json` has read. Raises `Misfit`."""
        return value

    def schema(self, _definitions: Definitions) -> Schema:
        return True


class _Simple(Shape):
    def __init__(self, kind: str, keywords: Mapping[str, str], named: str, *accepted: type) -> None:
        self.kind, self.keywords, self.named, self.accepted = kind, keywords, named, accepted

    def decode(self, value: Any) -> Any:
        if type(value) in self.accepted:
            return value
        raise Misfit(f"must be {self.named}, not {_named(value)}")

    def schema(self, _definitions: Definitions) -> Schema:
        return {"type": self.kind, **self.keywords}


class _Float(_Simple):
    def decode(self, value: Any) -> Any:
        number = super().decode(value)
        try:
            return float(number)
        except OverflowError:
            raise Misfit("is out of range") from None


class _Nullable(Shape):
    optional = True

    def __init__(self, inner: Shape) -> None:
        self.inner = inner

    def decode(self, value: Any) -> Any:
        return None if value is None else self.inner.decode(value)

    def schema(self, definitions: Definitions) -> Schema:
        inner = self.inner.schema(definitions)
        if inner is True or isinstance(inner.get("type"), list):
            return inner
        if isinstance(inner.get("type"), str) and "enum" not in inner:
            return inner | {"type": [inner["type"], "null"]}
        return {"anyOf": [inner, {"type": "null"}]}


class _List(Shape):
    def __init__(self, items: Shape, build: type[Any] = list) -> None:
        self.items, self.build = items, build

    def decode(self, value: Any) -> Any:
        if type(value) is not list:
            raise Misfit(f"must be a list, not {_named(value)}")
        items = [_at(f"[{place}]", self.items, item) for place, item in enumerate(value)]
        try:
            return self.build(items)
        except TypeError as error:
            raise Misfit(f"cannot be a `{self.build.__name__}`: {error}") from error

    def schema(self, definitions: Definitions) -> Schema:
        schema = {"type": "array", "items": self.items.schema(definitions)}
        return schema if self.build in (list, tuple) else schema | {"uniqueItems": True}


class _Tuple(Shape):
    def __init__(self, places: Sequence[Shape]) -> None:
        self.places = places

    def decode(self, value: Any) -> Any:
        if type(value) is not list or len(value) != len(self.places):
            raise Misfit(f"must be a list of {len(self.places)}, not {_named(value)}")
        return tuple(_at(f"[{place}]", shape, value[place]) for place, shape in enumerate(self.places))

    def schema(self, definitions: Definitions) -> Schema:
        count = len(self.places)
        places = [shape.schema(definitions) for shape in self.places]
        return {"type": "array", "prefixItems": places, "minItems": count, "maxItems": count}


class _Map(Shape):
    def __init__(self, values: Shape) -> None:
        self.values = values

    def decode(self, value: Any) -> Any:
        if type(value) is not dict:
            raise Misfit(f"must be an object, not {_named(value)}")
        return {key: _at(f".{key}", self.values, item) for key, item in value.items()}

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": "object", "additionalProperties": self.values.schema(definitions)}


class _Words(Shape):
    """An `Enum` with strings as its values, or a `Literal`."""

    def __init__(self, words: Mapping[str, Any], of: type | None) -> None:
        self.words, self.type, self.name = words, of or type(None), of.__name__ if of else ""

    def decode(self, value: Any) -> Any:
        if isinstance(value, str) and value in self.words:
            return self.words[value]
        raise Misfit(f"must be one of {', '.join(f'`{word}`' for word in self.words)}")

    def schema(self, definitions: Definitions) -> Schema:
        return definitions.reference(self) if self.name else self.definition(definitions)

    def definition(self, _definitions: Definitions) -> Schema:
        return {"type": "string", "enum": list(self.words)} | _described(_doc(self.type) if self.name else "")


@dataclasses.dataclass
class Field:
    """A field of a record."""

    name: str
    wire: str
    doc: str
    required: bool
    shape: Shape

    def schema(self, definitions: Definitions) -> Schema:
        schema = self.shape.schema(definitions)
        if not self.doc:
            return schema
        return _described(self.doc) if schema is True else schema | _described(self.doc)


class _Record(Shape):
    """A dataclass."""

    def __init__(self, of: type) -> None:
        self.type, self.name, self.doc = of, of.__name__, _doc(of)
        self.is_strict = "__weir_strict__" in of.__dict__
        self.fields: list[Field] = []
        self.known: frozenset[str] = frozenset()

    def fill(self) -> None:
        """The fields, which may refer to the record itself."""
        hints = _hints(self.type)
        for field in dataclasses.fields(self.type):
            if not field.init:
                continue
            shape, doc = _shape(hints[field.name], f"`{self.name}.{field.name}`")
            has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
            required = not has_default and not shape.optional
            self.fields.append(Field(field.name, _wire(field), doc, required, shape))
        self.known = frozenset(field.wire for field in self.fields)
        self.absent = [
            (field.name, field.wire)
            for field in self.fields
            if field.shape.optional and not _has_default(self.type, field.name)
        ]

    def decode(self, value: Any) -> Any:
        if type(value) is not dict:
            raise Misfit(f"must be an object, not {_named(value)}")
        fields = {}
        for field in self.fields:
            if field.wire in value:
                fields[field.name] = _at(f".{field.wire}", field.shape, value[field.wire])
            elif field.required:
                raise Misfit("is missing").below(f".{field.wire}")
        if self.is_strict and (unknown := value.keys() - self.known):
            raise Misfit("is unknown").below(f".{min(unknown)}")
        for name, wire in self.absent:
            if wire not in value:
                fields[name] = None
        try:
            return self.type(**fields)
        except ValueError as error:
            raise Misfit(f"is refused: {error}") from error

    def schema(self, definitions: Definitions) -> Schema:
        return definitions.reference(self)

    def definition(self, definitions: Definitions) -> Schema:
        schema: dict[str, Any] = {"type": "object"}
        if self.fields:
            schema["properties"] = {field.wire: field.schema(definitions) for field in self.fields}
        if required := [field.wire for field in self.fields if field.required]:
            schema["required"] = required
        if self.is_strict:
            schema["additionalProperties"] = False
        return schema | _described(self.doc)


class Payload:
    """What travels: the JSON of a type, or raw bytes."""

    def __init__(self, annotation: Any, place: str) -> None:
        self.type = annotation
        self.is_bytes = annotation is bytes
        self.shape = Shape() if self.is_bytes else _shape(annotation, place)[0]

    @property
    def record(self) -> _Record | None:
        """The fields of arguments, if they are an object with fields."""
        return self.shape if isinstance(self.shape, _Record) else None

    def decode(self, payload: bytes) -> Any:
        """The value. Raises `Misfit`."""
        if self.is_bytes:
            return payload
        try:
            return self.shape.decode(_read(payload) if payload else None)
        except RecursionError:
            raise Misfit("is nested too deeply") from None
        except MemoryError:
            raise Misfit("needs more memory than there is") from None

    def decode_arguments(self, payload: bytes) -> Any:
        """As `decode`, where nothing stands for an object without fields. Raises `HandlerError`."""
        try:
            if self.record and (not payload or payload == b"null"):
                payload = b"{}"
            return self.decode(payload)
        except Misfit as misfit:
            raise HandlerError.invalid_argument(misfit) from misfit


def _read(payload: bytes) -> Any:
    """The value of a JSON text, as strict as other languages are."""
    if _depth(payload) > _DEEPEST:
        raise Misfit("is nested too deeply")
    try:
        text = payload.decode()
        value = json.loads(text, parse_float=_finite, parse_constant=_no_constant)
        if _SURROGATE.search(text):
            # A pair is one character; a lone one has no form in UTF-8.
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except ValueError as error:
        raise Misfit(f"is no JSON: {error}") from error


def _depth(payload: bytes) -> int:
    """How deep a JSON text is nested. It says at least the depth up to where the text is no JSON."""
    if payload.count(b"[") + payload.count(b"{") <= _DEEPEST:
        return 0
    unescaped = payload.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Every other part is within a string.
    brackets = b"".join(unescaped.split(b'"')[::2]).translate(None, _NO_BRACKETS)
    return max(itertools.accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is out of range")
    return number


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"`{word}` is no number")


def encode(value: Any) -> bytes:
    """Bytes as they are; all else as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return _ENCODER.encode(value).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        names = _WIRE.get(kind)
        if names is None:
            names = [(field.name, _wire(field)) for field in dataclasses.fields(kind) if field.init]
            _WIRE[kind] = names
        return {wire: getattr(value, name) for name, wire in names}
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"a `{type(value).__name__}` has no form in JSON")


_ENCODER = json.JSONEncoder(default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DEEPEST = 127
"""As in Rust. In a component, `json` would go on until the stack is exhausted."""
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(_STEPS))
_WIRE: dict[type, list[tuple[str, str]]] = {}
_RECORDS: dict[type, _Record] = {}
_ANY = Shape()
_SIMPLE: dict[Any, Shape] = {
    Any: _ANY,
    object: _ANY,
    str: _Simple("string", {}, "a string", str),
    bool: _Simple("boolean", {}, "true or false", bool),
    int: _Simple("integer", {}, "a whole number", int),
    float: _Float("number", {"format": "double"}, "a number", float, int),
    type(None): _Simple("null", {}, "null", type(None)),
    None: _Simple("null", {}, "null", type(None)),
    dict: _Map(_ANY),
    list: _List(_ANY),
}


def _shape(annotation: Any, place: str) -> tuple[Shape, str]:
    """The shape of an annotation, and what `Annotated` says of it."""
    if typing.get_origin(annotation) is Annotated:
        inner, *rest = typing.get_args(annotation)
        docs = [text for text in rest if isinstance(text, str)]
        return _shape(inner, place)[0], " ".join(docs)
    try:
        if annotation in _SIMPLE:
            return _SIMPLE[annotation], ""
    except TypeError:
        pass
    return _compound(annotation, place), ""


def _compound(annotation: Any, place: str) -> Shape:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        others = [kind for kind in arguments if kind is not type(None)]
        if len(others) == 1 and len(arguments) == 2:
            return _Nullable(_shape(others[0], place)[0])
        raise _unknown(annotation, place, "of a union, only `T | None` can be described")
    if origin in (list, Sequence):
        return _List(_shape(arguments[0], place)[0])
    if origin in (set, frozenset):
        return _List(_shape(arguments[0], place)[0], origin)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return _List(_shape(arguments[0], place)[0], tuple)
        return _Tuple([_shape(argument, place)[0] for argument in arguments])
    if origin in (dict, Mapping):
        if arguments[0] is not str:
            raise _unknown(annotation, place, "the keys of an object in JSON are `str`")
        return _Map(_shape(arguments[1], place)[0])
    if origin is Literal:
        if not all(isinstance(word, str) for word in arguments):
            raise _unknown(annotation, place, "a `Literal` is of strings")
        return _Words({word: word for word in arguments}, None)
    if isinstance(annotation, type):
        if dataclasses.is_dataclass(annotation):
            return _record(annotation)
        if issubclass(annotation, enum.Enum):
            if not all(isinstance(member.value, str) for member in annotation):
                raise _unknown(annotation, place, "the values of an `Enum` are strings")
            return _Words({member.value: member for member in annotation}, annotation)
        if annotation is bytes:
            raise _unknown(annotation, place, "JSON has no bytes: `bytes` is the type of a whole payload")
    raise _unknown(annotation, place, "make it a dataclass, or `Any`")


def _record(of: type) -> _Record:
    known = _RECORDS.get(of)
    if known is None:
        known = _RECORDS[of] = _Record(of)
        try:
            known.fill()
        except BaseException:
            del _RECORDS[of]
            raise
    return known


def _unknown(annotation: Any, place: str, hint: str) -> DeclarationError:
    shown = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return DeclarationError(f"{place}: the type `{shown}` cannot be described: {hint}")


def _hints(of: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(of, include_extras=True)
    except NameError as error:
        raise DeclarationError(f"`{of.__qualname__}` has an annotation that is unknown: {error}") from error


def hints(of: Any) -> dict[str, Any]:
    """The annotations of a function or a class, as types. Raises `DeclarationError`."""
    return _hints(of)


def _at(step: str, shape: Shape, value: Any) -> Any:
    try:
        return shape.decode(value)
    except Misfit as misfit:
        raise misfit.below(step) from None


def _named(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)


def _wire(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("name", field.name))


def _has_default(of: type, name: str) -> bool:
    field = next(field for field in dataclasses.fields(of) if field.name == name)
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _doc(of: Any) -> str:
    doc = of.__doc__ or ""
    # A dataclass without documentation gets its signature, and an enum may inherit one.
    is_own = "__doc__" in of.__dict__ and not doc.startswith(f"{of.__name__}(")
    return inspect.cleandoc(doc) if is_own else ""


def _described(doc: str) -> dict[str, str]:
    return {"description": doc} if doc else {}
