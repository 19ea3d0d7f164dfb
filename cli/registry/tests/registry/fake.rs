//! A registry in memory. A test may answer any request itself, and so lie.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A connection, with or without TLS.
pub(crate) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lowercase.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Method and target in one line.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }

    pub(crate) fn authorization(&self) -> &str {
        self.headers.get("authorization").map_or("", String::as_str)
    }
}

/// Answers a request itself, or leaves it to the honest registry.
pub(crate) type Answer = dyn Fn(&Request, &mut dyn Stream) -> Option<io::Result<()>> + Send + Sync;

/// What a registry holds of its one repository `a/b`.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// By digest, and by tag.
    pub(crate) manifests: BTreeMap<String, Vec<u8>>,
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
}

pub(crate) struct Fake {
    /// Host and port.
    pub(crate) authority: String,
    pub(crate) held: Arc<Mutex<Held>>,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Fake {
    pub(crate) fn honest() -> Self {
        Self::with(Package::new().held(), |_, _| None)
    }

    /// A registry that holds this, and answers as `answer` says where that does.
    pub(crate) fn with(
        held: Held,
        answer: impl Fn(&Request, &mut dyn Stream) -> Option<io::Result<()>> + Send + Sync + 'static,
    ) -> Self {
        Self::over(held, answer, |stream| Box::new(stream))
    }

    /// The same, over what `wrap` makes of a connection.
    pub(crate) fn over(
        held: Held,
        answer: impl Fn(&Request, &mut dyn Stream) -> Option<io::Result<()>> + Send + Sync + 'static,
        wrap: impl Fn(TcpStream) -> Box<dyn Stream> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let (held, seen) = (Arc::new(Mutex::new(held)), Arc::new(Mutex::new(Vec::new())));
        let fake = Self { authority, held: held.clone(), seen: seen.clone() };
        let (answer, wrap): (Arc<Answer>, Arc<_>) = (Arc::new(answer), Arc::new(wrap));
        // These threads end with the process of the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (held, seen, answer, wrap) = (held.clone(), seen.clone(), answer.clone(), wrap.clone());
                thread::spawn(move || {
                    let mut stream = wrap(stream.unwrap());
                    // A client that gives up breaks the connection.
                    let Ok(request) = read(&mut stream) else { return };
                    seen.lock().unwrap().push(request.clone());
                    let own = answer(&request, &mut stream);
                    let _left = own.unwrap_or_else(|| honest(&held, &request, &mut stream));
                    let _left = stream.flush();
                });
            }
        });
        fake
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn reference(&self) -> String {
        format!("{}/a/b:1.0", self.authority)
    }
}

fn read(stream: &mut dyn Stream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.is_empty() { Err(io::Error::other("no request")) } else { Ok(line.trim_end().to_owned()) }
    };
    let first = line()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let mut headers = BTreeMap::new();
    while let Some((name, value)) = line()?.split_once(':') {
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let size = headers.get("content-length").map_or(0, |size| size.parse().unwrap());
    let mut body = vec![0; size];
    reader.read_exact(&mut body)?;
    Ok(Request { method, target, headers, body })
}

/// Writes an answer. `headers` end with CRLF each.
pub(crate) fn answer(stream: &mut dyn Stream, status: u16, headers: &str, body: &[u8]) -> io::Result<()> {
    let size = body.len();
    write!(stream, "HTTP/1.1 {status} S\r\nConnection: close\r\nContent-Length: {size}\r\n{headers}\r\n")?;
    stream.write_all(body)
}

fn honest(held: &Mutex<Held>, request: &Request, stream: &mut dyn Stream) -> io::Result<()> {
    let mut held = held.lock().unwrap();
    let error = |stream: &mut dyn Stream, code: &str| {
        let body = json!({ "errors": [{ "code": code, "message": "it is not known" }] }).to_string();
        answer(stream, 404, "", body.as_bytes())
    };
    let Some(target) = request.target.strip_prefix("/v2/a/b/") else { return error(stream, "NAME_UNKNOWN") };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_head = request.method == "HEAD";
    match (&*request.method, path.split_once('/').unwrap()) {
        ("POST", ("blobs", "uploads/")) => {
            answer(stream, 202, "Location: /v2/a/b/blobs/uploads/1?x=y\r\n", b"")
        }
        ("PUT", ("blobs", "uploads/1")) => {
            let digest = sha256(&request.body);
            assert_eq!(query, format!("x=y&digest={}", digest.replace(':', "%3A")));
            held.blobs.insert(digest, request.body.clone());
            answer(stream, 201, "", b"")
        }
        ("PUT", ("manifests", name)) => {
            assert_eq!(request.headers["content-type"], MANIFEST);
            held.manifests.insert(name.to_owned(), request.body.clone());
            let digest = sha256(&request.body);
            answer(stream, 201, &format!("Docker-Content-Digest: {digest}\r\n"), b"")
        }
        (_, ("blobs", digest)) => match held.blobs.get(digest) {
            Some(blob) => answer(stream, 200, "", if is_head { b"" } else { blob }),
            None => error(stream, "BLOB_UNKNOWN"),
        },
        (_, ("manifests", name)) => match held.manifests.get(name) {
            Some(manifest) => answer_manifest(stream, MANIFEST, manifest),
            None => error(stream, "MANIFEST_UNKNOWN"),
        },
        ("GET", ("tags", "list")) => {
            let tags: Vec<_> = held.manifests.keys().filter(|name| !name.contains(':')).collect();
            answer(stream, 200, "", json!({ "name": "a/b", "tags": tags }).to_string().as_bytes())
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn answer_manifest(stream: &mut dyn Stream, media_type: &str, manifest: &[u8]) -> io::Result<()> {
    let digest = sha256(manifest);
    let headers = format!("Content-Type: {media_type}\r\nDocker-Content-Digest: {digest}\r\n");
    answer(stream, 200, &headers, manifest)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// A manifest with a config and two layers.
#[derive(Clone)]
pub(crate) struct Package {
    pub(crate) manifest: Value,
    pub(crate) blobs: Vec<Vec<u8>>,
}

impl Package {
    pub(crate) fn new() -> Self {
        let blobs = vec![b"{}".to_vec(), b"\0asm of a component".to_vec(), vec![7; 300_000]];
        let types = ["application/vnd.wasm.config.v0+json", "application/wasm", "text/plain"];
        let of = |(blob, media_type): (&Vec<u8>, &str)| json!({ "mediaType": media_type, "digest": sha256(blob), "size": blob.len() });
        let descriptors: Vec<_> = blobs.iter().zip(types).map(of).collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": "application/vnd.test",
            "config": descriptors[0],
            "layers": descriptors[1..],
            "annotations": { "kept": "as it is" },
        });
        Self { manifest, blobs }
    }

    /// The manifest with its value at a JSON pointer exchanged.
    pub(crate) fn set(mut self, pointer: &str, value: Value) -> Self {
        *self.manifest.pointer_mut(pointer).unwrap() = value;
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.manifest.to_string().into_bytes()
    }

    pub(crate) fn digest(&self) -> String {
        sha256(&self.bytes())
    }

    pub(crate) fn held(&self) -> Held {
        let names = ["1.0".to_owned(), self.digest()];
        Held {
            manifests: names.map(|name| (name, self.bytes())).into(),
            blobs: self.blobs.iter().map(|blob| (sha256(blob), blob.clone())).collect(),
        }
    }

    /// Writes the layout of it.
    pub(crate) fn write(&self, to: &std::path::Path) {
        let folder = to.join("blobs/sha256");
        std::fs::create_dir_all(&folder).unwrap();
        for blob in self.blobs.iter().chain([&self.bytes()]) {
            std::fs::write(folder.join(&sha256(blob)[7..]), blob).unwrap();
        }
        std::fs::write(to.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        let named = json!({ "mediaType": MANIFEST, "digest": self.digest(), "size": self.bytes().len() });
        let index = json!({ "schemaVersion": 2, "manifests": [named] });
        std::fs::write(to.join("index.json"), index.to_string()).unwrap();
    }
}
