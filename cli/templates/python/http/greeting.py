"""What the server answers, apart from the component, so that tests reach it."""


def respond(is_get: bool, path: str) -> tuple[int, str]:
    """The status and the text of the answer: a greeting for the last part of the path."""
    if not is_get:
        return 405, "only GET is known here\n"
    name = path.rsplit("/", 1)[-1]
    if not name:
        return 404, "there is nobody to greet\n"
    return 200, f"hello, {name}\n"
