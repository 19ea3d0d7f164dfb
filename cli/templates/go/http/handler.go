// Package export_wasi_http_incoming_handler lets a handler of net/http answer requests of wasi:http.
package export_wasi_http_incoming_handler

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	witTypes "go.bytecodealliance.org/pkg/wit/types"

	wasi "{{name}}/dist/bindings/wasi_http_types"
	streams "{{name}}/dist/bindings/wasi_io_streams"
	"{{name}}/server"
)

// Handle answers one request. The bindings call it.
func Handle(incoming *wasi.IncomingRequest, out *wasi.ResponseOutparam) {
	request, err := requestOf(incoming)
	answer := &answer{header: http.Header{}, out: out}
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
	} else {
		answer.hasNoBody = request.Method == http.MethodHead
		server.Handler.ServeHTTP(answer, request)
		request.Body.Close()
	}
	answer.finish()
	incoming.Drop()
}

// The methods in the order of their tags.
var methods = [...]string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

func requestOf(incoming *wasi.IncomingRequest) (*http.Request, error) {
	method := incoming.Method()
	request := &http.Request{Host: incoming.Authority().SomeOr(""), Header: http.Header{}, ContentLength: -1}
	request.Proto, request.ProtoMajor, request.ProtoMinor = "HTTP/1.1", 1, 1
	if tag := int(method.Tag()); tag < len(methods) {
		request.Method = methods[tag]
	} else {
		request.Method = method.Other()
	}
	headers := incoming.Headers()
	for _, entry := range headers.Entries() {
		request.Header.Add(entry.F0, string(entry.F1))
	}
	headers.Drop()
	if length, err := strconv.ParseInt(request.Header.Get("Content-Length"), 10, 64); err == nil {
		request.ContentLength = length
	}
	request.RequestURI = incoming.PathWithQuery().SomeOr("/")
	var err error
	if request.URL, err = url.ParseRequestURI(request.RequestURI); err != nil {
		return nil, err
	}
	taken := incoming.Consume().Ok()
	request.Body = &body{taken, taken.Stream().Ok()}
	return request, nil
}

// body reads what the client sends.
type body struct {
	taken  *wasi.IncomingBody
	stream *streams.InputStream
}

func (body *body) Read(into []byte) (int, error) {
	if body.stream == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(into) == 0 {
		return 0, nil
	}
	read := body.stream.BlockingRead(uint64(len(into)))
	if read.IsErr() {
		return 0, failure(read.Err(), io.EOF)
	}
	return copy(into, read.Ok()), nil
}

func (body *body) Close() error {
	if body.stream != nil {
		body.stream.Drop()
		body.stream = nil
		body.taken.Drop()
	}
	return nil
}

// answer is what a handler writes to.
type answer struct {
	header    http.Header
	out       *wasi.ResponseOutparam
	hasNoBody bool
	body      *wasi.OutgoingBody
	stream    *streams.OutputStream
}

func (answer *answer) Header() http.Header {
	return answer.header
}

// WriteHeader sends the status and the headers, but for those that are the server's own, as `Connection`.
func (answer *answer) WriteHeader(status int) {
	if answer.body != nil || status < 200 {
		return
	}
	fields := wasi.MakeFields()
	for name, values := range answer.header {
		for _, value := range values {
			fields.Append(name, []byte(value))
		}
	}
	response := wasi.MakeOutgoingResponse(fields)
	response.SetStatusCode(uint16(status))
	answer.body = response.Body().Ok()
	answer.stream = answer.body.Write().Ok()
	wasi.ResponseOutparamSet(answer.out, witTypes.Ok[*wasi.OutgoingResponse, wasi.ErrorCode](response))
}

// The most that one call of the interface writes.
const piece = 4096

func (answer *answer) Write(bytes []byte) (int, error) {
	if answer.body == nil {
		if answer.header.Get("Content-Type") == "" {
			answer.header.Set("Content-Type", http.DetectContentType(bytes))
		}
		answer.WriteHeader(http.StatusOK)
	}
	if answer.hasNoBody {
		return len(bytes), nil
	}
	for written := 0; written < len(bytes); written += piece {
		part := bytes[written:min(written+piece, len(bytes))]
		if wrote := answer.stream.BlockingWriteAndFlush(part); wrote.IsErr() {
			return written, failure(wrote.Err(), io.ErrClosedPipe)
		}
	}
	return len(bytes), nil
}

// Flush sends the headers. What is written is sent at once.
func (answer *answer) Flush() {
	answer.WriteHeader(http.StatusOK)
}

func (answer *answer) finish() {
	answer.WriteHeader(http.StatusOK)
	answer.stream.Drop()
	wasi.OutgoingBodyFinish(answer.body, witTypes.None[*wasi.Fields]())
}

// failure is the error of a stream, or `closed` if it has ended.
func failure(failed streams.StreamError, closed error) error {
	if failed.Tag() == streams.StreamErrorClosed {
		return closed
	}
	return errors.New(failed.LastOperationFailed().ToDebugString())
}
