//! Error answers: `{"error":{"code":"…","message":"…"}}` with a fitting HTTP status.

use axum::{
    Json,
    extract::rejection::{PathRejection, QueryRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;
use weir_host::{
    Error, HandlerError,
    control::{ControlError, VersionError},
};

#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// The provider's own error, if any.
    handler: Option<HandlerError>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), handler: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { status, code, message, handler } = self;
        let mut error = json!({ "code": code, "message": message });
        if let (Some(HandlerError { code, message }), Some(error)) = (handler, error.as_object_mut()) {
            error.insert("handler".to_owned(), json!({ "code": code, "message": message }));
        }
        (status, Json(json!({ "error": error }))).into_response()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::Ended => return ControlError::ShuttingDown.into(),
            Error::PermissionDenied(_) => StatusCode::FORBIDDEN,
            Error::UnknownContract(_) => StatusCode::NOT_FOUND,
            Error::NoProvider(_) | Error::NotReady(_) | Error::Overloaded(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Error::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Error::PeerGone | Error::Trapped => StatusCode::BAD_GATEWAY,
            Error::LimitExceeded { .. } => StatusCode::TOO_MANY_REQUESTS,
            Error::WouldDeadlock(_) => StatusCode::CONFLICT,
            Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Error::Invalid(_) => StatusCode::BAD_REQUEST,
            Error::Handler(_) => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let refusal = Self::new(status, error.case(), error.to_string());
        match error {
            Error::Handler(handler) => Self { handler: Some(handler), ..refusal },
            _ => refusal,
        }
    }
}

impl From<ControlError> for Refusal {
    fn from(error: ControlError) -> Self {
        let status = match error {
            ControlError::Unknown(_) => StatusCode::NOT_FOUND,
            ControlError::NotConfigured(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ControlError::Version(VersionError::NotSaved(_)) => StatusCode::INTERNAL_SERVER_ERROR,
            ControlError::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::CONFLICT,
        };
        Self::new(status, error.code(), error.to_string())
    }
}

impl From<QueryRejection> for Refusal {
    fn from(rejection: QueryRejection) -> Self {
        let text = rejection.body_text();
        let cause = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
        Self::invalid(format!("the query does not fit this route: {cause}"))
    }
}

impl From<PathRejection> for Refusal {
    fn from(rejection: PathRejection) -> Self {
        Self::invalid(format!("the path does not fit this route: {}", rejection.body_text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_configured_by_a_file_is_no_mistake_of_the_file() {
        let refused = |error: ControlError| {
            let refusal = Refusal::from(error);
            (refusal.status.as_u16(), refusal.code)
        };
        assert_eq!(refused(ControlError::NoFile), (409, "no-file"));
        assert_eq!(refused(ControlError::NotConfigured("weir.toml:1:1".into())), (422, "not-configured"));
    }
}
