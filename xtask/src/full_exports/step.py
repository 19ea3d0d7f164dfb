"""Adds its name to a note, and hands the note on."""

from wit_world import exports
from wit_world.imports import step


class Step(exports.Step):
    def hand(self, note):
        note.path.append("python")
        return step.hand(note)
