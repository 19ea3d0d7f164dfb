//! The files of new projects, from `cli/templates`. There, `Cargo.toml` and `go.mod` have other names, so that tools do
//! not take those directories for packages or modules.

use clap::ValueEnum;

use super::{Kind, Language};

/// The files of one kind of project: their paths in it, and their content.
pub(super) struct Template {
    pub(super) lang: Language,
    pub(super) kind: Kind,
    pub(super) files: &'static [(&'static str, &'static str)],
}

macro_rules! templates {
    ($($lang:ident $kind:ident { $($path:literal: $template:literal,)* })*) => {
        pub(super) const TEMPLATES: &[Template] = &[$(Template {
            lang: Language::$lang,
            kind: Kind::$kind,
            files: &[$(($path, include_str!(concat!("../../../../templates/", $template)))),*],
        }),*];
    };
}

templates! {
    Rust Extension {
        "Cargo.toml": "rust/extension/cargo.toml",
        "src/lib.rs": "rust/extension/lib.rs",
        "src/main.rs": "rust/extension/main.rs",
        "tests/running.rs": "rust/extension/running.rs",
        "weir.toml": "rust/extension/weir.toml",
        "README.md": "rust/extension/README.md",
        "rustfmt.toml": "rust/rustfmt.toml",
        ".gitignore": "rust/gitignore",
        ".github/workflows/test.yml": "rust/test.yml",
    }
    Rust Hook {
        "Cargo.toml": "rust/hook/cargo.toml",
        "src/main.rs": "rust/hook/main.rs",
        "tests/running.rs": "rust/hook/running.rs",
        "weir.toml": "rust/hook/weir.toml",
        "README.md": "rust/hook/README.md",
        "rustfmt.toml": "rust/rustfmt.toml",
        ".gitignore": "rust/gitignore",
        ".github/workflows/test.yml": "rust/test.yml",
    }
    Rust Http {
        "Cargo.toml": "rust/http/cargo.toml",
        "src/lib.rs": "rust/http/lib.rs",
        "src/main.rs": "rust/http/main.rs",
        "tests/running.rs": "rust/http/running.rs",
        "weir.toml": "rust/http/weir.toml",
        "README.md": "rust/http/README.md",
        "rustfmt.toml": "rust/rustfmt.toml",
        ".gitignore": "rust/gitignore",
        ".github/workflows/test.yml": "rust/test.yml",
    }
    Rust Plain {
        "Cargo.toml": "rust/plain/cargo.toml",
        "src/lib.rs": "rust/plain/lib.rs",
        "tests/running.rs": "rust/plain/running.rs",
        "wit/plugin.wit": "plain.wit",
        "weir.toml": "rust/plain/weir.toml",
        "README.md": "rust/plain/README.md",
        "rustfmt.toml": "rust/rustfmt.toml",
        ".gitignore": "rust/gitignore",
        ".github/workflows/test.yml": "rust/test.yml",
    }
    Rust Sidecar {
        "Cargo.toml": "rust/sidecar/cargo.toml",
        "src/main.rs": "rust/sidecar/main.rs",
        "tests/running.rs": "rust/sidecar/running.rs",
        "contracts.json": "contracts.json",
        "weir.toml": "sidecar.toml",
        "README.md": "rust/sidecar/README.md",
        "rustfmt.toml": "rust/rustfmt.toml",
        ".gitignore": "rust/gitignore",
        ".github/workflows/test.yml": "peer.yml",
    }
    Rust App {
        "Cargo.toml": "rust/app/cargo.toml",
        "src/main.rs": "rust/app/main.rs",
        "tests/running.rs": "rust/app/running.rs",
        "weir.toml": "rust/app/weir.toml",
        "README.md": "rust/app/README.md",
        "rustfmt.toml": "rust/rustfmt.toml",
        ".gitignore": "rust/gitignore",
        ".github/workflows/test.yml": "peer.yml",
    }
    Python Extension {
        "app.py": "python/extension/app.py",
        "test_app.py": "python/extension/test_app.py",
        "test_running.py": "python/extension/test_running.py",
        "requirements.txt": "python/extension/requirements.txt",
        "weir.toml": "python/extension/weir.toml",
        "README.md": "python/extension/README.md",
        ".gitignore": "python/gitignore",
        ".github/workflows/test.yml": "test.yml",
    }
    Python Http {
        "app.py": "python/http/app.py",
        "greeting.py": "python/http/greeting.py",
        "test_greeting.py": "python/http/test_greeting.py",
        "test_running.py": "python/http/test_running.py",
        "requirements.txt": "python/http/requirements.txt",
        "wit/server.wit": "server.wit",
        "weir.toml": "interpreted-server.toml",
        "README.md": "python/http/README.md",
        ".gitignore": "python/gitignore",
        ".github/workflows/test.yml": "test.yml",
    }
    Python Plain {
        "app.py": "python/plain/app.py",
        "greeting.py": "python/plain/greeting.py",
        "test_greeting.py": "python/plain/test_greeting.py",
        "test_running.py": "python/plain/test_running.py",
        "requirements.txt": "python/http/requirements.txt",
        "wit/plugin.wit": "plain.wit",
        "weir.toml": "interpreted-plain.toml",
        "README.md": "python/plain/README.md",
        ".gitignore": "python/gitignore",
        ".github/workflows/test.yml": "test.yml",
    }
    Python Sidecar {
        "main.py": "python/sidecar/main.py",
        "weir_peer.py": "python/sidecar/weir_peer.py",
        "test_main.py": "python/sidecar/test_main.py",
        "contracts.json": "contracts.json",
        "weir.toml": "sidecar.toml",
        "README.md": "python/sidecar/README.md",
        ".gitignore": "python/sidecar/gitignore",
        ".github/workflows/test.yml": "peer.yml",
    }
    TypeScript Extension {
        "package.json": "typescript/extension/package.json",
        "tsconfig.json": "typescript/tsconfig.json",
        "src/contract.ts": "typescript/extension/contract.ts",
        "src/extension.ts": "typescript/extension/extension.ts",
        "src/extension.test.ts": "typescript/extension/extension.test.ts",
        "src/running.test.ts": "typescript/extension/running.test.ts",
        "weir.toml": "typescript/extension/weir.toml",
        "README.md": "typescript/extension/README.md",
        ".gitignore": "typescript/gitignore",
        ".github/workflows/test.yml": "typescript/extension/test.yml",
    }
    TypeScript Http {
        "package.json": "typescript/http/package.json",
        "tsconfig.json": "typescript/tsconfig.json",
        "build.mjs": "typescript/http/build.mjs",
        "src/respond.ts": "typescript/http/respond.ts",
        "src/server.ts": "typescript/http/server.ts",
        "src/respond.test.ts": "typescript/http/respond.test.ts",
        "src/running.test.ts": "typescript/http/running.test.ts",
        "wit/server.wit": "server.wit",
        "weir.toml": "interpreted-server.toml",
        "README.md": "typescript/http/README.md",
        ".gitignore": "typescript/gitignore",
        ".github/workflows/test.yml": "test.yml",
    }
    TypeScript Plain {
        "package.json": "typescript/plain/package.json",
        "tsconfig.json": "typescript/tsconfig.json",
        "build.mjs": "typescript/plain/build.mjs",
        "src/greeter.ts": "typescript/plain/greeter.ts",
        "src/greeter.test.ts": "typescript/plain/greeter.test.ts",
        "src/running.test.ts": "typescript/plain/running.test.ts",
        "wit/plugin.wit": "plain.wit",
        "weir.toml": "interpreted-plain.toml",
        "README.md": "typescript/plain/README.md",
        ".gitignore": "typescript/gitignore",
        ".github/workflows/test.yml": "test.yml",
    }
    TypeScript App {
        "package.json": "typescript/app/package.json",
        "tsconfig.json": "typescript/tsconfig.json",
        "src/app.ts": "typescript/app/app.ts",
        "src/app.test.ts": "typescript/app/app.test.ts",
        "weir.toml": "typescript/app/weir.toml",
        "README.md": "typescript/app/README.md",
        ".gitignore": "typescript/gitignore",
        ".github/workflows/test.yml": "typescript/app/test.yml",
    }
    Go Extension {
        "go.mod": "go/extension/go.mod.txt",
        "main.go": "go/extension/main.go",
        "main_test.go": "go/extension/main_test.go",
        "running_test.go": "go/extension/running_test.go",
        "weir.toml": "go/extension/weir.toml",
        "README.md": "go/extension/README.md",
        ".gitignore": "go/extension/gitignore",
        ".github/workflows/test.yml": "go/extension/test.yml",
    }
    Go Http {
        "go.mod": "go/plain/go.mod.txt",
        "main.go": "go/http/main.go",
        "export_wasi_http_incoming_handler/handler.go": "go/http/handler.go",
        "server/server.go": "go/http/server.go",
        "server/server_test.go": "go/http/server_test.go",
        "running_test.go": "go/http/running_test.go",
        "wit/server.wit": "server.wit",
        "weir.toml": "go/http/weir.toml",
        "README.md": "go/http/README.md",
        ".gitignore": "go/plain/gitignore",
        ".github/workflows/test.yml": "go/plain/test.yml",
    }
    Go Plain {
        "go.mod": "go/plain/go.mod.txt",
        "main.go": "go/plain/main.go",
        "export_local_plugin_greeter/greeter.go": "go/plain/greeter.go",
        "export_local_plugin_greeter/greeter_test.go": "go/plain/greeter_test.go",
        "running_test.go": "go/plain/running_test.go",
        "wit/plugin.wit": "plain.wit",
        "weir.toml": "plain.toml",
        "README.md": "go/plain/README.md",
        ".gitignore": "go/plain/gitignore",
        ".github/workflows/test.yml": "go/plain/test.yml",
    }
    C Plain {
        "Makefile": "c/plain/Makefile",
        "component.c": "c/plain/component.c",
        "greeting.c": "c/plain/greeting.c",
        "greeting.h": "c/plain/greeting.h",
        "test.c": "c/plain/test.c",
        "running.sh": "c/plain/running.sh",
        "wit/plugin.wit": "plain.wit",
        "weir.toml": "plain.toml",
        "README.md": "c/plain/README.md",
        ".gitignore": "c/gitignore",
        ".github/workflows/test.yml": "c/test.yml",
    }
}

impl Template {
    /// Shows the options that choose the template.
    pub(super) fn shown(&self) -> String {
        format!("--lang {} --kind {}", word(self.lang), word(self.kind))
    }

    /// Whether the program of the project proves its name with a token.
    pub(super) fn has_token(&self) -> bool {
        self.files.iter().any(|(_, content)| content.contains("{{hash}}"))
    }
}

fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
