//! Well-formed HTTP requests, to existing and other routes.

use arbitrary::Arbitrary;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// One request, with the length of its body.
#[derive(Debug, Arbitrary)]
pub(super) struct Request<'a> {
    method: Method,
    route: Route<'a>,
    query: Vec<(Key<'a>, Value<'a>)>,
    headers: Vec<RequestHeader<'a>>,
    body: &'a [u8],
}

#[derive(Debug, Arbitrary)]
enum Method {
    Fitting,
    Get,
    Post,
    Head,
    Delete,
    Options,
}

/// All routes except the one that ends Main.
#[derive(Debug, Arbitrary)]
enum Route<'a> {
    Version,
    Extensions,
    Extension(Value<'a>),
    Act(Value<'a>, Action),
    Reload,
    Limits,
    LimitsOf(Value<'a>),
    Call(Value<'a>, Value<'a>),
    Publish(Value<'a>),
    Events,
    Logs,
    MainEvents,
    Other(&'a str),
}

#[derive(Debug, Arbitrary)]
enum Action {
    Start,
    Stop,
    Restart,
    Reload,
}

#[derive(Debug, Arbitrary)]
enum Key<'a> {
    Timeout,
    Provider,
    To,
    Pattern,
    Extension,
    Lines,
    Follow,
    Other(&'a str),
}

#[derive(Debug, Arbitrary)]
enum Value<'a> {
    Echo,
    Second,
    Absent,
    Main,
    Contract,
    AbsentContract,
    Topic,
    Pattern,
    True,
    Milliseconds(u16),
    Number(i64),
    Other(&'a str),
    /// As it is, without the characters that end a line or the path.
    Raw(&'a str),
}

#[derive(Debug, Arbitrary)]
enum RequestHeader<'a> {
    Expect,
    Close,
    Chunked,
    Upgrade,
    Length(u32),
    Other(&'a str, &'a str),
}

impl Request<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let query: Vec<String> =
            self.query.iter().map(|(key, value)| format!("{}={}", key.text(), value.text())).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let (path, query) = (self.route.path(), query.join("&"));
        let mut head = format!("{} /v1/{path}{mark}{query} HTTP/1.1\r\nhost: weir\r\n", self.method());
        for header in &self.headers {
            head.push_str(&header.line());
        }
        if !self.headers.iter().any(RequestHeader::is_of_the_body) {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        [head.as_bytes(), b"\r\n", self.body].concat()
    }

    pub(super) fn is_answered_with_a_body(&self) -> bool {
        self.method() != "HEAD"
    }

    /// Whether its end is certain, so that another can follow it.
    pub(super) fn has_a_certain_end(&self) -> bool {
        self.headers.is_empty()
    }

    fn method(&self) -> &'static str {
        match self.method {
            Method::Fitting => self.route.method(),
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Head => "HEAD",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
        }
    }
}

impl Route<'_> {
    fn method(&self) -> &'static str {
        match self {
            Self::Act(..) | Self::Reload | Self::Call(..) | Self::Publish(_) => "POST",
            _ => "GET",
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Version => "version".to_owned(),
            Self::Extensions => "extensions".to_owned(),
            Self::Extension(id) => format!("extensions/{}", id.text()),
            Self::Act(id, action) => format!("extensions/{}/{}", id.text(), action.name()),
            Self::Reload => "reload".to_owned(),
            Self::Limits => "limits".to_owned(),
            Self::LimitsOf(id) => format!("limits/{}", id.text()),
            Self::Call(contract, operation) => format!("call/{}/{}", contract.text(), operation.text()),
            Self::Publish(topic) => format!("publish/{}", topic.text()),
            Self::Events => "events".to_owned(),
            Self::Logs => "logs".to_owned(),
            Self::MainEvents => "main-events".to_owned(),
            Self::Other(text) => escaped(text),
        }
    }
}

impl Action {
    fn name(&self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
        }
    }
}

impl Key<'_> {
    fn text(&self) -> String {
        let name = match self {
            Self::Timeout => "timeout",
            Self::Provider => "provider",
            Self::To => "to",
            Self::Pattern => "pattern",
            Self::Extension => "extension",
            Self::Lines => "lines",
            Self::Follow => "follow",
            Self::Other(text) => return escaped(text),
        };
        name.to_owned()
    }
}

impl Value<'_> {
    fn text(&self) -> String {
        let text = match self {
            Self::Echo => "echo",
            Self::Second => "second",
            Self::Absent => "absent",
            Self::Main => "main",
            Self::Contract => "echo@1",
            Self::AbsentContract => "absent@1",
            Self::Topic => "told.a",
            Self::Pattern => "told.%3E",
            Self::True => "true",
            Self::Milliseconds(number) => return format!("{number}ms"),
            Self::Number(number) => return number.to_string(),
            Self::Other(text) => return escaped(text),
            Self::Raw(text) => return text.replace(|c: char| c.is_ascii_whitespace() || c == '/', "~"),
        };
        text.to_owned()
    }
}

impl RequestHeader<'_> {
    fn line(&self) -> String {
        match self {
            Self::Expect => "expect: 100-continue\r\n".to_owned(),
            Self::Close => "connection: close\r\n".to_owned(),
            Self::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
            Self::Upgrade => "connection: upgrade\r\nupgrade: h2c\r\n".to_owned(),
            Self::Length(length) => format!("content-length: {length}\r\n"),
            Self::Other(name, value) => format!("x-{}: {}\r\n", escaped(name), escaped(value)),
        }
    }

    fn is_of_the_body(&self) -> bool {
        matches!(self, Self::Chunked | Self::Length(_))
    }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
