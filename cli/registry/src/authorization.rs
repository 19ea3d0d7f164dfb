//! The answer to a registry that asks who somebody is: a password, or a token from the service that it names.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::{
    credentials::{Credentials, NoCredentials},
    error::RegistryError,
    transport::{Answer, Content, Transport},
};

/// Most bytes of a token with what is around it.
const TOKEN_MAX: u64 = 256 << 10;

/// Who this program says that it is to a service for tokens.
const CLIENT: &str = "weir-registry";

/// What a registry asks for, as far as it is read: `Scheme name="value", …`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Challenge {
    scheme: String,
    realm: Option<String>,
    service: Option<String>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// Answers the challenge of an answer 401 with a header `Authorization` for this registry.
pub(crate) async fn authorize(
    transport: &Transport,
    asked: &Answer,
    scope: &str,
    credentials: &Result<Credentials, NoCredentials>,
) -> Result<HeaderValue, RegistryError> {
    let denied =
        |why: &str| RegistryError::Denied { host: asked.url.origin.authority(), why: why.to_owned() };
    let challenges: Vec<_> = asked.headers().get_all(header::WWW_AUTHENTICATE).iter().collect();
    let challenges = challenges.into_iter().filter_map(|value| value.to_str().ok()).map(Challenge::parse);
    for challenge in challenges {
        if challenge.scheme.eq_ignore_ascii_case("basic") {
            return match credentials {
                Err(why) => Err(denied(&format!("it wants credentials, and {why}"))),
                Ok(Credentials::Password { user, password }) => basic(user, password)
                    .ok_or_else(|| denied("it wants credentials, and these do not fit into a header")),
                Ok(Credentials::Identity(_)) => Err(denied("it wants a password, and the file has a token")),
            };
        }
        if challenge.scheme.eq_ignore_ascii_case("bearer") {
            return token(transport, asked, &challenge, scope, credentials).await;
        }
    }
    Err(denied("it wants credentials of a kind that this program does not have"))
}

/// Fetches a token from the service that the challenge names.
async fn token(
    transport: &Transport,
    asked: &Answer,
    challenge: &Challenge,
    scope: &str,
    credentials: &Result<Credentials, NoCredentials>,
) -> Result<HeaderValue, RegistryError> {
    let realm = challenge.realm.as_deref().unwrap_or_default();
    let url = asked.url.join(realm).map_err(|error| asked.broken(error.to_string()))?;
    // The registry's word is enough for where its tokens are, but not for sending a password through a net in clear.
    let is_safe = url.origin.is_tls || url.origin == asked.url.origin || url.origin.is_loopback();
    if credentials.is_ok() && !is_safe {
        return Err(asked.broken(format!("wants credentials sent to `{}` without TLS", url.origin)));
    }
    let service = challenge.service.as_deref();
    let mut headers = HeaderMap::new();
    let (method, url, content) = match credentials {
        Ok(Credentials::Identity(token)) => (Method::POST, url, form(token, scope, service)),
        other => {
            if let Ok(Credentials::Password { user, password }) = other
                && let Some(value) = basic(user, password)
            {
                headers.insert(header::AUTHORIZATION, value);
            }
            let url = service.into_iter().fold(url, |url, service| url.with("service", service));
            (Method::GET, url.with("scope", scope), Content::Nothing)
        }
    };
    let mut answer = transport.exchange(&method, &url, headers, &content).await?;
    let host = url.origin.authority();
    match answer.status().as_u16() {
        200 => {}
        401 | 403 => {
            let why = match credentials {
                Err(why) => format!("it gives no token without credentials, and {why}"),
                Ok(_) => "it does not take the credentials".to_owned(),
            };
            return Err(RegistryError::Denied { host, why });
        }
        other => return Err(answer.broken(format!("answered {other} in place of a token"))),
    }
    let body = answer.read("a token", TOKEN_MAX).await?;
    let token = serde_json::from_slice::<Token>(&body).ok();
    let token = token.and_then(|token| token.token.or(token.access_token)).unwrap_or_default();
    let value = HeaderValue::from_str(&format!("Bearer {token}")).ok().filter(|_| !token.is_empty());
    let mut value = value.ok_or_else(|| answer.broken("did not answer with a token"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The form in which a token for an identity is exchanged for another.
fn form(token: &str, scope: &str, service: Option<&str>) -> Content {
    let fields = [
        ("grant_type", "refresh_token"),
        ("service", service.unwrap_or_default()),
        ("client_id", CLIENT),
        ("scope", scope),
        ("refresh_token", token),
    ];
    let fields =
        fields.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
    Content::Bytes { bytes: Bytes::from(fields.join("&")), media_type: "application/x-www-form-urlencoded" }
}

fn basic(user: &str, password: &str) -> Option<HeaderValue> {
    let both = STANDARD.encode(format!("{user}:{password}"));
    let mut value = HeaderValue::from_str(&format!("Basic {both}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl Challenge {
    fn parse(text: &str) -> Self {
        let (scheme, mut rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let mut challenge = Self { scheme: scheme.to_owned(), ..Self::default() };
        while let Some((name, after)) = rest.split_once('=') {
            let (value, after) = match after.strip_prefix('"') {
                // A quotation mark within a value is no part of an address or a service.
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_once(',').unwrap_or((after, "")),
            };
            match name.trim_matches([' ', ',']) {
                "realm" => challenge.realm = Some(value.trim().to_owned()),
                "service" => challenge.service = Some(value.trim().to_owned()),
                _ => {}
            }
            rest = after;
        }
        challenge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_with_commas_within_its_values() {
        let of = |text| {
            let Challenge { scheme, realm, service } = Challenge::parse(text);
            (scheme, realm.unwrap_or_default(), service.unwrap_or_default())
        };
        let text = |parts: [&str; 3]| parts.map(str::to_owned).into();
        let whole = r#"Bearer scope="a:b:pull,push",realm="https://auth.test/token", service="reg, 1""#;
        assert_eq!(of(whole), text(["Bearer", "https://auth.test/token", "reg, 1"]));
        assert_eq!(of("Basic realm=plain,charset=UTF-8"), text(["Basic", "plain", ""]));
        assert_eq!(of("Basic"), text(["Basic", "", ""]));
        assert_eq!(of(r#"Bearer realm="https://a.test"#), text(["Bearer", "https://a.test", ""]));
        assert_eq!(of(""), text(["", "", ""]));
    }
}
