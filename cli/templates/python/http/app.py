"""An HTTP server: each request has a new instance of it."""

from componentize_py_types import Ok
from greeting import respond
from wit_world import exports
from wit_world.imports.types import (
    Fields,
    IncomingRequest,
    Method_Get,
    OutgoingBody,
    OutgoingResponse,
    ResponseOutparam,
)


class IncomingHandler(exports.IncomingHandler):
    def handle(self, request: IncomingRequest, response_out: ResponseOutparam) -> None:
        path = (request.path_with_query() or "/").split("?")[0]
        status, text = respond(isinstance(request.method(), Method_Get), path)
        response = OutgoingResponse(Fields.from_list([("content-type", b"text/plain; charset=utf-8")]))
        response.set_status_code(status)
        body = response.body()
        ResponseOutparam.set(response_out, Ok(response))
        with body.write() as stream:
            stream.blocking_write_and_flush(text.encode())
        OutgoingBody.finish(body, None)
