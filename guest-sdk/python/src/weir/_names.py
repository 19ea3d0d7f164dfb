"""Rules for names, as Main has them."""

from __future__ import annotations

import re

_LOWER = re.compile(r"[a-z][a-z0-9-]{0,63}")
_CONTRACT = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*@(0|[1-9][0-9]{0,4})")
_OPERATION = re.compile(r"[!-.0-~]{1,128}")
_SEGMENT = re.compile(r"[A-Za-z0-9_-]+")


def is_queue(text: str) -> bool:
    return _LOWER.fullmatch(text) is not None


def is_extension_id(text: str) -> bool:
    return is_queue(text) and text != "main"


def is_contract(text: str) -> bool:
    match = _CONTRACT.fullmatch(text)
    return match is not None and len(text) <= 128 and int(match[2]) <= 65535


def is_operation(text: str) -> bool:
    return _OPERATION.fullmatch(text) is not None


def is_topic(text: str) -> bool:
    return is_pattern(text) and "*" not in text and ">" not in text


def is_pattern(text: str) -> bool:
    segments = text.split(".")
    last = len(segments) - 1
    return (
        len(segments) <= 16
        and len(text.encode(errors="replace")) <= 256
        and all(
            segment == "*" or segment == ">" and place == last or _SEGMENT.fullmatch(segment)
            for place, segment in enumerate(segments)
        )
    )


def covers(wide: str, narrow: str) -> bool:
    """Whether the pattern `wide` matches all that the topic or pattern `narrow` matches."""
    narrow_segments = narrow.split(".")
    wide_segments = wide.split(".")
    for place, segment in enumerate(wide_segments):
        if place >= len(narrow_segments):
            return False
        other = narrow_segments[place]
        if segment == ">":
            return True
        if not (segment == "*" and other != ">" or segment == other):
            return False
    return len(wide_segments) == len(narrow_segments)
