"""`weir-py`: makes the component of an extension, with its manifest and the description of its contracts."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from types import ModuleType

from . import WIT, DeclarationError, Extension, _component, _describe

_ENTRY = '''"""The program of the component. Made by `weir-py build`."""
from weir import _generators
_generators.watch()
from {module} import {name} as extension
from weir import _wasm

class Run:
    def run(self):
        _wasm.main(extension)
'''


class BuildError(Exception):
    """Why there is no component."""


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser("weir-py", description="Builds extensions of Weir.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build_ = commands.add_parser("build", help="make the component of an extension")
    build_.add_argument(
        "app", nargs="?", default="app", help="the module, or MODULE:NAME if it has several extensions; default: app"
    )
    build_.add_argument("-o", "--output", type=Path, help="the component; default: dist/ID.wasm")
    build_.add_argument("-p", "--path", type=Path, action="append", default=[], help="a further directory with modules")
    build_.set_defaults(run=lambda options: build(options.app, options.output, options.path))
    wit = commands.add_parser("wit", help="print the directory with Weir's WIT")
    wit.set_defaults(run=lambda _: print(WIT))
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (BuildError, DeclarationError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def build(app: str, output: Path | None = None, paths: list[Path] | None = None) -> Path:
    """Makes a component of a module in the working directory. Returns its path."""
    module_name, _, name = app.partition(":")
    paths = [Path.cwd(), *(paths or [])]
    module = _imported(module_name, paths)
    name, extension = _extension(module, name)
    extension.check()
    sections = {"weir:manifest": _describe.manifest(extension), "weir:contracts": _describe.contracts(extension)}
    output = output or Path("dist", f"{extension.id}.wasm")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        entry = Path(directory, "weir_entry.py")
        entry.write_text(_ENTRY.format(module=module_name, name=name))
        made = Path(directory, "component.wasm")
        _componentize([Path(directory), *paths, *_installed()], made)
        component = _freeing_arguments(made.read_bytes())
    for name, content in sections.items():
        if content:
            component = _component.with_section(component, name, content)
    output.write_bytes(component)
    return output


def _imported(name: str, paths: list[Path]) -> ModuleType:
    sys.path[:0] = map(str, paths)
    try:
        return importlib.import_module(name)
    except DeclarationError:
        raise
    except ModuleNotFoundError as error:
        if error.name == name:
            raise BuildError(f"there is no module `{name}` in `{paths[0]}`") from error
        raise BuildError(f"`{name}` cannot be imported: {error}") from error
    except Exception as error:
        shown = "".join(traceback.format_exception(error))
        raise BuildError(f"`{name}` cannot be imported\n{shown}") from error


def _extension(module: ModuleType, name: str) -> tuple[str, Extension]:
    found = {known: value for known, value in vars(module).items() if isinstance(value, Extension)}
    if name:
        if name not in found:
            raise BuildError(f"`{module.__name__}` has no extension `{name}`")
        return name, found[name]
    if len({id(extension) for extension in found.values()}) != 1:
        some = "several extensions: say which, as `MODULE:NAME`" if found else "no `weir.Extension`"
        raise BuildError(f"`{module.__name__}` has {some}")
    return next(iter(found.items()))


def _installed() -> list[Path]:
    """Where this package and others are: the component gets what the module imports."""
    here = Path(__file__).resolve().parent.parent
    others = [Path(entry) for entry in sys.path if entry.endswith("site-packages")]
    return list(dict.fromkeys([here, *others]))


def _componentize(paths: list[Path], output: Path) -> None:
    command = [sys.executable, "-c", "from componentize_py import script; script()", "-q", "-d", str(WIT)]
    command += ["-w", "extension", "componentize", "weir_entry", "-o", str(output)]
    for path in paths:
        command += ["-p", str(path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise BuildError("componentize-py made no component; it says why above")


def _freeing_arguments(component: bytes) -> bytes:
    try:
        return _component.freeing_arguments(component)
    except _component.UnknownRuntime as error:
        raise BuildError(
            f"this is not the componentize-py 0.25.1 that `weir-sdk` asks for, and its bindings would leak: {error}"
        ) from error
