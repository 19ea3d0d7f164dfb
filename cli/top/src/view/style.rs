//! Styles. A colour never says anything alone: a text or an attribute says it, too.

use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug)]
pub(super) struct Styles {
    pub(super) has_color: bool,
}

impl Styles {
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn header(self) -> Style {
        self.strong().add_modifier(Modifier::UNDERLINED)
    }

    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn bad(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn doubtful(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    pub(super) fn good(self) -> Style {
        self.colored(Color::Green)
    }

    pub(super) fn spark(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// The style of a used part, from 0 to 1.
    pub(super) fn share(self, share: Option<f64>) -> Style {
        match share {
            Some(share) if share >= 0.9 => self.bad(),
            Some(share) if share >= 0.5 => self.doubtful(),
            _ => Style::new(),
        }
    }

    pub(super) fn state(self, state: &str) -> Style {
        match state {
            "ready" | "connected" => self.good(),
            "failed" | "quarantined" => self.bad(),
            "stopped" | "loaded" => self.quiet(),
            _ => self.doubtful(),
        }
    }

    fn colored(self, color: Color) -> Style {
        if self.has_color { Style::new().fg(color) } else { Style::new() }
    }
}
