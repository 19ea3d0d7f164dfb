"""What the component does, apart from its interface, so that tests reach it."""


class Nobody(Exception):
    """There is no name."""


def greeting(name: str) -> str:
    """A greeting for this name."""
    if not name:
        raise Nobody
    return f"hello, {name}"
