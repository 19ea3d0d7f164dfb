"""A component that exports the interface of `wit/plugin.wit`."""

from componentize_py_types import Err
from greeting import Nobody, greeting
from wit_world import exports
from wit_world.exports.greeter import Problem


class Greeter(exports.Greeter):
    def greet(self, name: str) -> str:
        try:
            return greeting(name)
        except Nobody as error:
            raise Err(Problem.NOBODY) from error
