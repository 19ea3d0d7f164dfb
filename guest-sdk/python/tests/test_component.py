"""What is done to a finished component."""

import random

import pytest

from weir import _component, _generators


def section(kind: int, content: bytes) -> bytes:
    return bytes([kind, len(content)]) + content


def export(name: str, function: int) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([0, function])


def runtime() -> bytes:
    """As small as it can be: the imported function 0, the list's function 1, the freeing one 2."""
    lower, free = b"\x04\0\x20\x01\x0b", b"\x02\0\x0b"
    return b"\0asm\x01\0\0\0" + b"".join(
        [
            section(1, b"\x02" + b"\x60\x03\x7f\x7f\x7f\x01\x7f" + b"\x60\x05\x7f\x7f\x7f\x7f\x7f\0"),
            section(2, b"\x02" + b"\x01e\x01m\x02\0\x01" + b"\x01e\x01f\0\x01"),
            section(3, b"\x02\0\x01"),
            section(7, b"\x02" + export("wit_dylib_pop_list", 1) + export("wit_dylib_dealloc_bytes", 2)),
            section(10, b"\x02" + lower + free),
            section(0, b"\x01x"),
            section(0, b"\x01y"),
        ]
    )


COMPONENT = b"\0asm\x0d\0\x01\0"


def test_the_runtime_gets_a_function_that_registers_bytes_of_arguments() -> None:
    mended = _component.freeing_arguments(COMPONENT + section(7, b"\0") + section(1, runtime()))
    assert export("wit_dylib_pop_list", 3) in mended
    assert export("wit_dylib_dealloc_bytes", 2) in mended
    assert section(3, b"\x03\0\x01\0") in mended
    # It calls both.
    assert b"\x10\x01\x21\x03" in mended
    assert b"\x41\x01\x41\x01\x10\x02\x0b\x20\x03\x0b" in mended
    assert mended.startswith(COMPONENT + section(7, b"\0"))
    assert mended.endswith(section(0, b"\x01x") + section(0, b"\x01y"))


def test_another_runtime_is_refused() -> None:
    other = runtime().replace(b"pop_list", b"pop_lost")
    for module in [section(1, other), section(1, runtime()) * 2]:
        with pytest.raises(_component.UnknownRuntime, match="modules of the component have `wit_dylib_pop_list`"):
            _component.freeing_arguments(COMPONENT + module)


def test_a_section_is_its_length_its_name_and_its_content() -> None:
    described = _component.with_section(COMPONENT, "weir:manifest", b"x" * 300)
    assert described == COMPONENT + b"\x00" + bytes([0xBA, 0x02, 13]) + b"weir:manifest" + b"x" * 300


def test_generators_of_the_module_draw_other_numbers_in_each_instance_but_for_those_with_a_seed() -> None:
    before = random.Random.seed
    _generators.watch()
    dice, of_text, set_later, sought = random.Random(), random.Random("text"), random.Random(), random.Random(1)
    set_later.setstate(random.Random(7).getstate())
    sought.seed()
    frozen = [generator.getstate() for generator in (dice, of_text, set_later, sought)]
    _generators.reseed()
    started = [generator.getstate() for generator in (dice, of_text, set_later, sought)]
    assert [was == now for was, now in zip(frozen, started, strict=True)] == [False, True, True, False]
    assert random.Random.seed is before
