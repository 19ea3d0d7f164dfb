//! What the server answers, apart from the component, so that tests reach it.

use wstd::http::{Method, Response, StatusCode};

/// The answer to a request of this method for this path: a greeting for its last part.
pub fn respond(method: &Method, path: &str) -> Response<String> {
    if method != Method::GET {
        return with_status(StatusCode::METHOD_NOT_ALLOWED, "only GET is known here\n".to_owned());
    }
    match path.rsplit('/').next() {
        None | Some("") => with_status(StatusCode::NOT_FOUND, "there is nobody to greet\n".to_owned()),
        Some(name) => with_status(StatusCode::OK, format!("hello, {name}\n")),
    }
}

fn with_status(status: StatusCode, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greets_the_last_part_of_the_path() {
        let response = respond(&Method::GET, "/a/Ada");
        assert_eq!((response.status(), response.body().as_str()), (StatusCode::OK, "hello, Ada\n"));
    }

    #[test]
    fn nobody_is_not_greeted() {
        assert_eq!(respond(&Method::GET, "/").status(), StatusCode::NOT_FOUND);
        assert_eq!(respond(&Method::POST, "/Ada").status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
