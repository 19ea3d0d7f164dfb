//! `docs/hooks.md` shows three of the hooks.

#[test]
fn the_guide_shows_the_hooks_as_they_are() {
    let guide = include_str!("../../docs/hooks.md");
    for hook in [
        include_str!("../src/create_root_dir.rs"),
        include_str!("../src/touch_file.rs"),
        include_str!("../src/echo_hello.rs"),
    ] {
        assert!(guide.contains(hook), "`docs/hooks.md` does not show\n{hook}");
    }
}
