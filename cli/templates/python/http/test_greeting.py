"""The answers alone, without Main."""

from greeting import respond


def test_greets_the_last_part_of_the_path() -> None:
    assert respond(True, "/a/Ada") == (200, "hello, Ada\n")


def test_nobody_is_not_greeted() -> None:
    assert respond(True, "/")[0] == 404
    assert respond(False, "/Ada")[0] == 405
