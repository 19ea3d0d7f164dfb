"""What travels inside a component beside its code: the manifest, and the description of its contracts."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from ._contract import Contract, Operation
from ._errors import DeclarationError
from ._types import Definitions, Payload

if TYPE_CHECKING:
    from ._extension import Extension

_MOST_BYTES = 64 * 1024
_HANDLER_ERROR = -32010
"""The gateway's code for an error of the provider's own."""


def manifest(extension: Extension) -> bytes:
    """The content of the section `weir:manifest`."""
    since = {"data-since": extension.data_since} if extension.data_since is not None else {}
    return _line(
        {
            "schema": 1,
            "id": extension.id,
            "version": extension.version,
            **since,
            "fulfills": extension.fulfills,
            "requires": extension.requires,
            "wants": extension.wants,
            "publishes": extension.publishes,
            "subscribes": extension.subscribes,
            "puts": extension.puts,
            "takes": extension.takes,
            "grants": {
                "dirs": [{"guest": guest, "mode": mode} for guest, mode in extension.dirs.items()],
                "env": extension.env,
                "net": extension.net,
            },
        }
    )


def contracts(extension: Extension) -> bytes:
    """The content of the section `weir:contracts`: one document a line."""
    served = [_document(contract, extension, True) for contract in extension.contracts]
    called = [_document(contract, extension, False) for contract in extension.calls if contract.operations]
    lines = b"".join(_line(document) + b"\n" for document in served + called)
    if len(lines) > _MOST_BYTES:
        raise DeclarationError(f"the descriptions of the contracts take {len(lines)} bytes, more than 64 KiB")
    return lines


def _document(contract: Contract, extension: Extension, is_served: bool) -> dict[str, Any]:
    definitions = Definitions()
    info = {"title": contract.name, "version": contract.name.rpartition("@")[2]}
    operations = extension.served(contract.name) if is_served else contract.operations
    document: dict[str, Any] = {
        "openrpc": "1.3.2",
        "info": info | _description(contract.doc if is_served else ""),
        "x-role": "provider" if is_served else "caller",
        "methods": [_method(operation, extension, definitions, is_served) for operation in operations],
    }
    for key, carried, kind in (("x-topics", contract.topics, "payload"), ("x-queues", contract.queues, "job")):
        items = [
            {
                "name": item.name,
                **_description(item.doc if is_served else ""),
                **_payload(item.payload, kind, definitions),
            }
            for item in carried
        ]
        if items:
            document[key] = items
    if definitions.schemas:
        document["components"] = {"schemas": definitions.schemas}
    return document if is_served else _without_descriptions(document)


def _method(
    operation: Operation[Any, Any], extension: Extension, definitions: Definitions, is_served: bool
) -> dict[str, Any]:
    name = f"{operation.contract}/{operation.name}"
    method: dict[str, Any] = {"name": name, **_description(operation.doc)}
    if operation.arguments.is_bytes or operation.result.is_bytes:
        method |= {"x-bytes": True, "params": [], "result": {"name": "bytes", "schema": {}}}
    else:
        method |= _arguments(operation.arguments, definitions)
        schema = operation.result.shape.schema(definitions)
        record = operation.result.record
        method["result"] = {"name": record.name if record else "result", "schema": schema}
    errors = extension.errors(operation) if is_served else {}
    if errors:
        method["errors"] = [
            {"code": _HANDLER_ERROR, "message": code, "data": meaning} for code, meaning in errors.items()
        ]
    return method


def _arguments(payload: Payload, definitions: Definitions) -> dict[str, Any]:
    record = payload.record
    if record is None:
        return {"params": [], "x-argument": payload.shape.schema(definitions)}
    parameters = []
    for field in record.fields:
        parameter: dict[str, Any] = {"name": field.wire, **_description(field.doc)}
        if field.required:
            parameter["required"] = True
        parameters.append(parameter | {"schema": field.shape.schema(definitions)})
    strict = {"x-strict": True} if record.is_strict else {}
    return {"paramStructure": "by-name", "x-arguments": record.name, **strict, "params": parameters}


def _payload(payload: Payload, kind: str, definitions: Definitions) -> dict[str, Any]:
    return {"x-bytes": True} if payload.is_bytes else {kind: payload.shape.schema(definitions)}


def _description(doc: str) -> dict[str, str]:
    return {"description": inspect.cleandoc(doc)} if doc else {}


def _without_descriptions(document: Any) -> Any:
    """Texts for people, which a caller leaves to the provider. A property may be called `description`."""
    if isinstance(document, list):
        return [_without_descriptions(item) for item in document]
    if isinstance(document, dict):
        return {
            key: {name: _without_descriptions(schema) for name, schema in value.items()}
            if key in ("properties", "schemas")
            else _without_descriptions(value)
            for key, value in document.items()
            if key != "description"
        }
    return document


def _line(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
