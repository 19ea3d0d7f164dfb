//! A registry, by the OCI distribution specification: what it is asked, and how its answers are held against it.

use std::{fs::File, io::Write, path::Path};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use weir_package::Digest;

use crate::{
    authorization::authorize,
    credentials::{Credentials, NoCredentials},
    error::{RegistryError, words},
    layout::Blob,
    manifest::{INDEX, MANIFEST, MANIFEST_MAX, OF_DOCKER},
    reference::{Reference, Repository, is_tag},
    transport::{Answer, Content, Transport},
    url::{Origin, Url},
};

/// Most redirections of one request.
const REDIRECTS: usize = 5;

/// Most bytes that are read of what a registry says about an error.
const ERROR_MAX: u64 = 16 << 10;

/// Tags that are asked for at once, and most bytes of the answer.
const TAGS: (usize, u64) = (1000, 1 << 20);

/// Most tags of a repository.
const TAGS_MAX: usize = 10_000;

const CONTENT_DIGEST: &str = "docker-content-digest";

/// One repository of a registry.
pub(crate) struct Registry {
    pub(crate) transport: Transport,
    pub(crate) origin: Origin,
    pub(crate) repository: Repository,
    pub(crate) credentials: Result<Credentials, NoCredentials>,
    /// What is asked for with a token: `pull`, or `pull,push`.
    pub(crate) actions: &'static str,
    /// What the registry took last.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Registry {
    /// Fetches a manifest, and the media type that the registry gives it. It has the digest that was asked for, if one
    /// was.
    pub(crate) async fn manifest(&mut self, reference: &Reference) -> Result<(Bytes, String)> {
        // Lists are asked for, too, because they are to be refused by their name.
        let accepted = [MANIFEST, INDEX, OF_DOCKER[0], OF_DOCKER[1]].join(", ");
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_str(&accepted)?);
        let url = self.at(&format!("manifests/{}", reference.wanted()));
        let mut answer = self.ask(&Method::GET, url, headers, &Content::Nothing).await?;
        self.expect(&mut answer, StatusCode::OK, &format!("`{reference}`")).await?;
        let media_type = answer.header(header::CONTENT_TYPE).unwrap_or(MANIFEST);
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_owned();
        let said = answer.header(CONTENT_DIGEST).map(str::to_owned);
        let bytes = answer.read("a manifest", MANIFEST_MAX).await?;
        let digest = Digest::of(&bytes);
        if let Some(wanted) = reference.digest
            && wanted != digest
        {
            let what = format!("sent a manifest with the digest `{digest}` in place of `{wanted}`");
            return Err(answer.broken(what).into());
        }
        if let Some(said) = said
            && said != digest.to_string()
        {
            let said = weir_names::harmless(said, 100);
            let what = format!("says that its manifest has the digest `{said}`, and it has `{digest}`");
            return Err(answer.broken(what).into());
        }
        Ok((bytes, media_type))
    }

    /// Fetches a blob into a file. It has this digest and size.
    pub(crate) async fn blob(&mut self, wanted: &Digest, size: u64, to: &Path) -> Result<()> {
        let url = self.at(&format!("blobs/{wanted}"));
        let mut answer = self.ask(&Method::GET, url, HeaderMap::new(), &Content::Nothing).await?;
        self.expect(&mut answer, StatusCode::OK, &format!("blob `{wanted}`")).await?;
        let mut file = File::create_new(to).with_context(|| format!("cannot write `{}`", to.display()))?;
        let (mut hash, mut taken) = (Sha256::new(), 0_u64);
        while let Some(piece) = answer.next().await? {
            hash.update(&piece);
            taken = taken.saturating_add(u64::try_from(piece.len())?);
            if taken > size {
                return Err(answer.broken(format!("sent more than the {size} bytes of `{wanted}`")).into());
            }
            file.write_all(&piece).with_context(|| format!("cannot write `{}`", to.display()))?;
        }
        if taken < size {
            let what = format!("sent {taken} of the {size} bytes of `{wanted}`");
            return Err(answer.broken(what).into());
        }
        let digest = Digest::from(<[u8; 32]>::from(hash.finalize()));
        if digest != *wanted {
            return Err(answer.broken(format!("sent `{digest}` in place of `{wanted}`")).into());
        }
        Ok(())
    }

    /// Brings a blob to the registry, unless it has it.
    pub(crate) async fn upload(&mut self, blob: &Blob) -> Result<()> {
        let digest = &blob.digest;
        let there = self.at(&format!("blobs/{digest}"));
        let mut found = self.ask(&Method::HEAD, there, HeaderMap::new(), &Content::Nothing).await?;
        match found.status() {
            StatusCode::OK => return Ok(()),
            StatusCode::NOT_FOUND => {}
            _ => self.expect(&mut found, StatusCode::OK, &format!("blob `{digest}`")).await?,
        }
        let place = self.at("blobs/uploads/");
        let mut begun = self.ask(&Method::POST, place, HeaderMap::new(), &Content::Nothing).await?;
        self.expect(&mut begun, StatusCode::ACCEPTED, &format!("repository `{}`", self.repository)).await?;
        let to = location(&begun)?.with("digest", &digest.to_string());
        let content = Content::Blob(blob.clone());
        let mut sent = self.ask(&Method::PUT, to, HeaderMap::new(), &content).await?;
        self.expect(&mut sent, StatusCode::CREATED, &format!("place for the blob `{digest}`")).await?;
        Ok(())
    }

    /// Brings a manifest to the registry, whose blobs are there.
    pub(crate) async fn put_manifest(&mut self, reference: &Reference, bytes: Bytes) -> Result<()> {
        let digest = Digest::of(&bytes);
        let url =
            self.at(&format!("manifests/{}", reference.tag.clone().unwrap_or_else(|| digest.to_string())));
        let content = Content::Bytes { bytes, media_type: MANIFEST };
        let mut answer = self.ask(&Method::PUT, url, HeaderMap::new(), &content).await?;
        self.expect(&mut answer, StatusCode::CREATED, &format!("repository `{}`", self.repository)).await?;
        match answer.header(CONTENT_DIGEST) {
            Some(said) if said != digest.to_string() => {
                let said = weir_names::harmless(said, 100);
                Err(answer.broken(format!("kept the manifest as `{said}`, and it is `{digest}`")).into())
            }
            _ => Ok(()),
        }
    }

    /// The tags of the repository, as the registry orders them.
    pub(crate) async fn tags(&mut self) -> Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Page {
            tags: Option<Vec<String>>,
        }
        let (count, page_max) = TAGS;
        let mut tags = Vec::new();
        let mut next = Some(self.at("tags/list").with("n", &count.to_string()));
        while let Some(url) = next {
            let mut answer = self.ask(&Method::GET, url, HeaderMap::new(), &Content::Nothing).await?;
            self.expect(&mut answer, StatusCode::OK, &format!("repository `{}`", self.repository)).await?;
            next = following(&answer)?;
            let body = answer.read("a list of tags", page_max).await?;
            let page: Page = serde_json::from_slice(&body)
                .map_err(|error| answer.broken(format!("sent no list of tags: {error}")))?;
            let page = page.tags.unwrap_or_default();
            if let Some(wrong) = page.iter().find(|tag| !is_tag(tag)) {
                let wrong = weir_names::harmless(wrong, 200);
                return Err(answer.broken(format!("names the tag `{wrong}`, which is none")).into());
            }
            ensure!(
                next.is_none() || !page.is_empty(),
                answer.broken("names ever more pages of tags, and has no more tags")
            );
            tags.extend(page);
            ensure!(tags.len() <= TAGS_MAX, answer.broken(format!("has more than {TAGS_MAX} tags")));
        }
        Ok(tags)
    }

    fn at(&self, what: &str) -> Url {
        self.origin.at(format!("/v2/{}/{what}", self.repository.name))
    }

    /// Sends a request. Proves who asks if the registry wants that, and follows to where something is read from.
    async fn ask(
        &mut self,
        method: &Method,
        url: Url,
        headers: HeaderMap,
        content: &Content,
    ) -> Result<Answer, RegistryError> {
        let mut is_first = true;
        loop {
            let answer = self.follow(method, url.clone(), &headers, content).await?;
            if answer.status() != StatusCode::UNAUTHORIZED || answer.url.origin != self.origin || !is_first {
                return Ok(answer);
            }
            is_first = false;
            let scope = format!("repository:{}:{}", self.repository.name, self.actions);
            let proof = authorize(&self.transport, &answer, &scope, &self.credentials).await?;
            self.authorization = Some(proof);
        }
    }

    async fn follow(
        &self,
        method: &Method,
        mut url: Url,
        headers: &HeaderMap,
        content: &Content,
    ) -> Result<Answer, RegistryError> {
        for _ in 0..=REDIRECTS {
            let mut headers = headers.clone();
            // Another host has no business with the credentials for this one.
            if let Some(proof) = self.authorization.as_ref().filter(|_| url.origin == self.origin) {
                headers.insert(header::AUTHORIZATION, proof.clone());
            }
            let answer = self.transport.exchange(method, &url, headers, content).await?;
            let is_read = method == Method::GET || method == Method::HEAD;
            if !is_read || !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            url = location(&answer)?;
        }
        let host = self.origin.authority();
        Err(RegistryError::Broken { host, what: format!("redirects more than {REDIRECTS} times") })
    }

    /// Takes an answer with this status, and makes an error of any other.
    async fn expect(&self, answer: &mut Answer, status: StatusCode, what: &str) -> Result<(), RegistryError> {
        let found = answer.status();
        if found == status {
            return Ok(());
        }
        let host = answer.url.origin.authority();
        let said = said(answer).await;
        Err(match found {
            StatusCode::NOT_FOUND => RegistryError::Unknown { host, what: what.to_owned(), said },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let not = match self.credentials {
                    Ok(_) => "the credentials are not enough".to_owned(),
                    Err(why) => format!("it wants credentials, and {why}"),
                };
                RegistryError::Denied { host, why: format!("{not}{}", words(&said)) }
            }
            other => answer.broken(format!("answered `{other}`{}", words(&said))),
        })
    }
}

/// Where an answer leads.
fn location(answer: &Answer) -> Result<Url, RegistryError> {
    let location = answer.header(header::LOCATION).unwrap_or_default();
    answer.url.join(location).map_err(|error| answer.broken(error.to_string()))
}

/// The next page of a list, if there is one: `<URL>; rel="next"`.
fn following(answer: &Answer) -> Result<Option<Url>, RegistryError> {
    let Some(link) = answer.header(header::LINK) else { return Ok(None) };
    let target = link.trim().strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let Some((target, _)) = target.filter(|(_, rest)| rest.contains("next")) else { return Ok(None) };
    answer.url.join(target).map(Some).map_err(|error| answer.broken(error.to_string()))
}

/// What a registry says about an error, in the form of the standard, or empty.
async fn said(answer: &mut Answer) -> String {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<Said>,
    }
    #[derive(Deserialize)]
    struct Said {
        code: String,
        #[serde(default)]
        message: String,
    }
    let Ok(body) = answer.read("an error", ERROR_MAX).await else { return String::new() };
    let Ok(Errors { errors }) = serde_json::from_slice(&body) else { return String::new() };
    errors.into_iter().next().map_or_else(String::new, |Said { code, message }| format!("{code} {message}"))
}
