package weir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// Error says why a message failed. Find it with errors.As:
//
//	var failure *weir.Error
//	if errors.As(err, &failure) && failure.Code == "not-found" { … }
type Error = host.Error

// Case is the name of a case in `wit/iec.wit`.
type Case = host.Case

// The cases of an error. There is no other.
const (
	CasePermissionDenied = host.PermissionDenied
	CaseUnknownContract  = host.UnknownContract
	CaseNoProvider       = host.NoProvider
	CaseNotReady         = host.NotReady
	CaseTimeout          = host.Timeout
	CaseOverloaded       = host.Overloaded
	CasePeerGone         = host.PeerGone
	CaseTrapped          = host.Trapped
	CaseLimitExceeded    = host.LimitExceeded
	CaseWouldDeadlock    = host.WouldDeadlock
	CaseTooLarge         = host.TooLarge
	CaseInvalid          = host.Invalid
	CaseHandler          = host.Handler
)

// Errors to compare with: errors.Is(err, weir.ErrTimeout).
var (
	ErrPermissionDenied = &Error{Case: CasePermissionDenied}
	ErrUnknownContract  = &Error{Case: CaseUnknownContract}
	ErrNoProvider       = &Error{Case: CaseNoProvider}
	ErrNotReady         = &Error{Case: CaseNotReady}
	ErrTimeout          = &Error{Case: CaseTimeout}
	ErrOverloaded       = &Error{Case: CaseOverloaded}
	ErrPeerGone         = &Error{Case: CasePeerGone}
	ErrTrapped          = &Error{Case: CaseTrapped}
	ErrLimitExceeded    = &Error{Case: CaseLimitExceeded}
	ErrWouldDeadlock    = &Error{Case: CaseWouldDeadlock}
	ErrTooLarge         = &Error{Case: CaseTooLarge}
	ErrInvalid          = &Error{Case: CaseInvalid}
)

// Errorf makes an error of a contract: a short word for programs, such as `not-found`, and a text for people.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Case: CaseHandler, Code: code, Text: fmt.Sprintf(format, args...)}
}

// Code is a word for programs: the provider's code, else the case. It is `timeout` for
// context.DeadlineExceeded, `io` for an error of package os, `failed` for any other error, and empty for nil.
func Code(err error) string {
	var failure *Error
	var file *fs.PathError
	var link *os.LinkError
	var system *os.SyscallError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failure) && failure.Case == CaseHandler:
		return failure.Code
	case failure != nil:
		return string(failure.Case)
	case errors.Is(err, context.DeadlineExceeded):
		return string(CaseTimeout)
	case errors.As(err, &file), errors.As(err, &link), errors.As(err, &system):
		return "io"
	default:
		return "failed"
	}
}

// asAnswer is the error as a handler answers it.
func asAnswer(err error) *Error {
	if failure, ok := err.(*Error); ok && failure.Case == CaseHandler {
		return failure
	}
	var panicked *panicked
	var notEncoded *notEncoded
	switch {
	// The log has the rest. The text is none of the caller's business.
	case errors.As(err, &panicked):
		return Errorf("unexpected", "the handler panicked")
	case errors.As(err, &notEncoded):
		return Errorf("unexpected", "the answer does not encode")
	}
	return &Error{Case: CaseHandler, Code: Code(err), Text: err.Error()}
}

func invalid(format string, args ...any) *Error {
	return &Error{Case: CaseInvalid, Text: fmt.Sprintf(format, args...)}
}
