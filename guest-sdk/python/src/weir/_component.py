"""Components as bytes: a section at the end, and a fault of the bindings that is mended in the finished component."""

from __future__ import annotations

from collections.abc import Iterator

# Kinds of sections: of both, of a component, of a module.
_CUSTOM = 0
_MODULE = 1
_IMPORTS, _FUNCTIONS, _EXPORTS, _CODE = 2, 3, 7, 10

_COMPONENT_HEADER = b"\0asm\x0d\0\x01\0"
_MODULE_HEADER = b"\0asm\x01\0\0\0"
_FUNCTION = 0

_LOWER_LIST = b"wit_dylib_pop_list"
_FREE = b"wit_dylib_dealloc_bytes"


class UnknownRuntime(Exception):
    """The runtime of componentize-py is not the one that is known here."""


def with_section(component: bytes, name: str, content: bytes) -> bytes:
    """The component with a custom section at its end."""
    encoded = name.encode()
    return component + _section(_CUSTOM, _leb128(len(encoded)) + encoded + content)


def freeing_arguments(component: bytes) -> bytes:
    """The component, with bytes that are arguments of imports freed after the call.

    The runtime of componentize-py 0.25 copies a `list<u8>` into memory that it never frees. It lends all other lists,
    and texts: the bindings register their memory with the call, whose end frees it. Here the function of the runtime
    that makes the copy gets another in front of it, which registers the copy, too.
    """
    mended = 0
    parts = [_COMPONENT_HEADER]
    for kind, content in _sections(component, _COMPONENT_HEADER):
        if kind == _MODULE and (freeing := _freeing(content)) is not None:
            content, mended = freeing, mended + 1
        parts.append(_section(kind, content))
    if mended != 1:
        raise UnknownRuntime(f"{mended} modules of the component have `{_LOWER_LIST.decode()}`")
    return b"".join(parts)


def _freeing(module: bytes) -> bytes | None:
    """The module, if it is the runtime."""
    sections = dict(_sections(module, _MODULE_HEADER))
    exports = _exports(sections.get(_EXPORTS, b"\0"))
    if _LOWER_LIST not in exports or _FREE not in exports:
        return None
    (lower, at), (free, _) = exports[_LOWER_LIST], exports[_FREE]
    imported = _imported_functions(sections[_IMPORTS])
    types = _Reader(sections[_FUNCTIONS]).numbers()
    exported, body = sections[_EXPORTS], _lower_and_register(lower, free)
    sections[_EXPORTS] = exported[:at] + _leb128(imported + len(types)) + exported[at + len(_leb128(lower)) :]
    sections[_FUNCTIONS] = _with_one_more(sections[_FUNCTIONS], _leb128(types[lower - imported]))
    sections[_CODE] = _with_one_more(sections[_CODE], _leb128(len(body)) + body)
    # A module has several custom sections, and one of each other kind.
    parts = (
        _section(kind, was if kind == _CUSTOM else sections[kind]) for kind, was in _sections(module, _MODULE_HEADER)
    )
    return _MODULE_HEADER + b"".join(parts)


def _lower_and_register(lower: int, free: int) -> bytes:
    """A function `(call, type, address-of-pointer) -> length`. The pointer is null unless the list was copied."""
    call, list_type, pointer, length = (b"\x20" + _leb128(local) for local in range(4))
    load, one, if_, end = b"\x28\x02\0", b"\x41\x01", b"\x04\x40", b"\x0b"
    code = call + list_type + pointer + b"\x10" + _leb128(lower) + b"\x21\x03"
    # The bytes have the alignment 1, and are freed at the end of the call.
    code += pointer + load + if_ + call + pointer + load + length + one + one + b"\x10" + _leb128(free) + end
    local_of_i32 = b"\x01\x01\x7f"
    return local_of_i32 + code + length + end


def _sections(binary: bytes, header: bytes) -> Iterator[tuple[int, bytes]]:
    if binary[:8] != header:
        raise UnknownRuntime("this is no WebAssembly of a known version")
    reader = _Reader(binary, 8)
    while reader.at < len(binary):
        kind = reader.byte()
        yield kind, reader.sized()


def _exports(content: bytes) -> dict[bytes, tuple[int, int]]:
    """Exported functions: their numbers, and where in the section these stand."""
    found = {}
    reader = _Reader(content)
    for _ in range(reader.number()):
        name, kind, at = reader.sized(), reader.byte(), reader.at
        number = reader.number()
        if kind == _FUNCTION:
            found[name] = (number, at)
    return found


def _imported_functions(content: bytes) -> int:
    reader = _Reader(content)
    functions = 0
    for _ in range(reader.number()):
        for _module_and_name in range(2):
            reader.sized()
        match reader.byte():
            case 0:
                functions += 1
                reader.number()
            case 1:
                reader.byte()
                reader.limits()
            case 2:
                reader.limits()
            case 3:
                reader.byte()
                reader.byte()
            case kind:
                raise UnknownRuntime(f"an import is of the kind {kind}")
    return functions


def _with_one_more(vector: bytes, element: bytes) -> bytes:
    reader = _Reader(vector)
    count = reader.number()
    return _leb128(count + 1) + vector[reader.at :] + element


def _section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + _leb128(len(content)) + content


def _leb128(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded) + bytes([number])


class _Reader:
    """Reads what is encoded one after the other."""

    def __init__(self, content: bytes, at: int = 0) -> None:
        self._content = content
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def number(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def numbers(self) -> list[int]:
        return [self.number() for _ in range(self.number())]

    def limits(self) -> None:
        """The size of a table or memory: the least, and with the flag 1 the most."""
        for _ in range(1 + (self.byte() & 1)):
            self.number()

    def sized(self) -> bytes:
        length = self.number()
        self.at += length
        return self._content[self.at - length : self.at]
