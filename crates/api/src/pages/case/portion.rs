//! Long tabs are shown a page at a time, so that a case of any length is read at the same speed.

use maud::{Markup, html};

use super::Case;
use crate::pages::icon::Icon;

/// Rows of a tab on one page.
pub const ROWS: usize = 200;

/// The rows of one page.
pub struct Portion<'r, T> {
    /// The place of the first row among all.
    pub first: usize,
    pub rows: &'r [T],
    /// Links to the other pages; nothing if there are none.
    pub nav: Markup,
}

/// The first row of the page that has this one.
pub const fn begin(row: usize) -> usize {
    row - row % ROWS
}

impl Case<'_> {
    /// The page of `all` that the address names, or else the one with row `usual`.
    pub fn portion<'r, T>(&self, tab: &str, all: &'r [T], usual: usize) -> Portion<'r, T> {
        let asked = self.from.filter(|from| *from < all.len());
        let first = begin(asked.unwrap_or(usual).min(all.len().saturating_sub(1)));
        let end = (first + ROWS).min(all.len());
        let link = |from: usize| format!("{}&from={from}", self.with_links(|links| links.tab(tab)));
        let nav = html! {
            @if all.len() > ROWS {
                nav.pages aria-label="Pages" {
                    @if first > 0 { a.btn href=(link(first - ROWS)) { (Icon::Back.show()) "Before" } } @else { span {} }
                    span.soft.small { (first + 1) " to " (end) " of " (all.len()) }
                    @if end < all.len() { a.btn href=(link(end)) { "After" (Icon::Next.show()) } } @else { span {} }
                }
            }
        };
        Portion { first, rows: all.get(first..end).unwrap_or_default(), nav }
    }

    /// A link to the row with this anchor: on this page if all rows are here.
    pub fn row_link(&self, tab: &str, all: usize, row: usize, anchor: &str) -> String {
        if all <= ROWS {
            return format!("#{anchor}");
        }
        format!("{}&from={}#{anchor}", self.with_links(|links| links.tab(tab)), begin(row))
    }
}
