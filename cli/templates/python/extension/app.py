"""Greets each caller, and publishes the name."""

from dataclasses import dataclass
from typing import Annotated

import weir

CONTRACT = weir.Contract("{{name}}@1", "Greets people.")
GREETED = CONTRACT.topic("{{name}}.greeted", str, "The name of each person that was greeted.")

# The manifest: what the extension is and needs. It travels in the component; the operator decides.
ext = weir.Extension("{{name}}", version="0.1.0", publishes=[GREETED])

greeted = 0


@weir.strict
@dataclass
class Name:
    """A person."""

    name: Annotated[str, "The person's name."]


@dataclass
class Greeting:
    """A greeting."""

    text: Annotated[str, "The words of the greeting."]
    number: Annotated[int, "How many people were greeted so far."]


@ext.serves(CONTRACT, errors={"no-name": "There is nobody to greet."})
async def greet(person: Name) -> Greeting:
    """Greets a person by name."""
    global greeted
    if not person.name:
        raise weir.HandlerError("no-name", "there is nobody to greet")
    greeted += 1
    weir.publish(GREETED, person.name)
    return Greeting(f"hello, {person.name}", greeted)
