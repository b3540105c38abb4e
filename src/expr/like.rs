//! `LIKE`: patterns over text.

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, StringViewArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;

use super::compare::Value;
use crate::error::Result;

/// Takes the next sign of a pattern as it is.
pub(super) const ESCAPE: char = '\\';

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    /// Exactly this character.
    Char(char),
    /// Any character.
    One,
    /// Any text, also none.
    Any,
}

/// A pattern, read once.
struct Pattern {
    parts: Vec<Part>,
    ignore_case: bool,
    simple: Option<Simple>,
}

/// Patterns that a search of the standard library answers.
enum Simple {
    Equal(String),
    Prefix(String),
    Suffix(String),
    Infix(String),
}

/// The character that stands for all those that are equal but for case, as Unicode's simple case folding has them: one for
/// one, since folding that changes the length would change what `_` matches.
fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    match c {
        // Without a language the dotless i is not a form of I.
        '\u{131}' => c,
        // Three letters with two code points each, whose capitals are several characters.
        '\u{1FD3}' => '\u{390}',
        '\u{1FE3}' => '\u{3B0}',
        '\u{FB05}' => '\u{FB06}',
        // By way of the capital, which the forms of one letter have in common: both small sigmas, the long s, the micro sign.
        _ => single(single(c, char::to_uppercase), char::to_lowercase),
    }
}

/// The other case of a character, where that is one character.
fn single<I: Iterator<Item = char>>(c: char, case: impl Fn(char) -> I) -> char {
    let mut other = case(c);
    match (other.next(), other.next()) {
        (Some(other), None) => other,
        _ => c,
    }
}

impl Pattern {
    fn new(text: &str, ignore_case: bool) -> Self {
        let mut parts = Vec::new();
        let mut signs = text.chars();
        while let Some(sign) = signs.next() {
            match sign {
                '%' if parts.last() == Some(&Part::Any) => (),
                '%' => parts.push(Part::Any),
                '_' => parts.push(Part::One),
                // An escape at the very end stands for itself.
                ESCAPE => parts.push(Part::Char(signs.next().unwrap_or(ESCAPE))),
                other => parts.push(Part::Char(other)),
            }
        }
        if ignore_case {
            parts.iter_mut().for_each(|part| {
                if let Part::Char(c) = part {
                    *c = fold(*c);
                }
            });
        }
        let simple = (!ignore_case).then(|| Simple::of(&parts)).flatten();
        Self { parts, ignore_case, simple }
    }

    fn matches(&self, text: &str) -> bool {
        match &self.simple {
            Some(Simple::Equal(whole)) => text == whole,
            Some(Simple::Prefix(prefix)) => text.starts_with(prefix),
            Some(Simple::Suffix(suffix)) => text.ends_with(suffix),
            Some(Simple::Infix(infix)) => text.contains(infix),
            None => self.walk(text),
        }
    }

    /// Goes back to the last `%` only, which is enough: an earlier one could not match more.
    fn walk(&self, text: &str) -> bool {
        let (mut part, mut rest) = (0, text.chars());
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let mut ahead = rest.clone();
            let sign = ahead.next().map(|sign| if self.ignore_case { fold(sign) } else { sign });
            match (self.parts.get(part), sign) {
                (Some(Part::Any), _) => {
                    part += 1;
                    retry = Some((part, rest.clone()));
                    continue;
                }
                (Some(Part::One), Some(_)) => {
                    (part, rest) = (part + 1, ahead);
                    continue;
                }
                (Some(Part::Char(wanted)), Some(sign)) if *wanted == sign => {
                    (part, rest) = (part + 1, ahead);
                    continue;
                }
                (None, None) => return true,
                _ => (),
            }
            let Some((after, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            (part, rest) = (*after, from.clone());
        }
    }
}

impl Simple {
    fn of(parts: &[Part]) -> Option<Simple> {
        let text = |parts: &[Part]| -> Option<String> {
            parts.iter().map(|part| if let Part::Char(c) = part { Some(*c) } else { None }).collect()
        };
        match parts {
            [Part::Any, inner @ .., Part::Any] => text(inner).map(Simple::Infix),
            [Part::Any, rest @ ..] => text(rest).map(Simple::Suffix),
            [rest @ .., Part::Any] => text(rest).map(Simple::Prefix),
            all => text(all).map(Simple::Equal),
        }
    }
}

/// Matches row by row: one row if both operands are one for all, else `rows`.
pub(super) fn like(value: &Value, pattern: &Value, ignore_case: bool, rows: usize) -> Result<BooleanArray> {
    let len = if value.scalar && pattern.scalar { 1 } else { rows };
    let (value, pattern) = (value.cast(&DataType::Utf8View)?, pattern.cast(&DataType::Utf8View)?);
    let (texts, patterns) = (value.array.as_string_view(), pattern.array.as_string_view());
    let at = |value: &Value, row: usize| if value.scalar { 0 } else { row };
    let nulls = |value: &Value, array: &StringViewArray| match (value.scalar, array.nulls()) {
        (_, None) => None,
        (false, Some(nulls)) => Some(nulls.clone()),
        (true, Some(nulls)) if nulls.is_null(0) => Some(NullBuffer::new_null(len)),
        (true, Some(_)) => None,
    };
    let nulls = NullBuffer::union(nulls(&value, texts).as_ref(), nulls(&pattern, patterns).as_ref());
    let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let values = if pattern.scalar {
        let pattern = Pattern::new(patterns.value(0), ignore_case);
        BooleanBuffer::collect_bool(len, |row| valid(row) && pattern.matches(texts.value(at(&value, row))))
    } else {
        let mut last: Option<(&str, Pattern)> = None;
        BooleanBuffer::collect_bool(len, |row| {
            if !valid(row) {
                return false;
            }
            let text = patterns.value(row);
            let known = last.take().filter(|(known, _)| *known == text);
            let (_, pattern) = last.insert(known.unwrap_or_else(|| (text, Pattern::new(text, ignore_case))));
            pattern.matches(texts.value(at(&value, row)))
        })
    };
    Ok(BooleanArray::new(values, nulls))
}

/// A pattern whose escape is `escape` as one whose escape is [`ESCAPE`]; `None` where it escapes nothing at its end.
pub(super) fn with_our_escape(pattern: &str, escape: Option<char>) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut signs = pattern.chars();
    while let Some(sign) = signs.next() {
        if Some(sign) == escape {
            out.push(ESCAPE);
            out.push(signs.next()?);
        } else if sign == ESCAPE {
            out.extend([ESCAPE, ESCAPE]);
        } else {
            out.push(sign);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, matches) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("%%", "abc", true),
            ("_", "", false),
            ("_", "é", true),
            ("a%", "abc", true),
            ("%c", "abc", true),
            ("%b%", "abc", true),
            ("a%c%e", "abcde", true),
            ("a%c%e", "abcd", false),
            ("%ab%ab", "abab", true),
            ("%ab%ab", "aab", false),
            ("a\\%", "a%", true),
            ("a\\%", "ab", false),
            ("\\__", "_x", true),
            ("a\\", "a\\", true),
            ("%_b_%", "xxbx", true),
            ("ABC", "abc", false),
        ] {
            assert_eq!(Pattern::new(pattern, false).matches(text), matches, "{text:?} LIKE {pattern:?}");
            let walked = Pattern { simple: None, ..Pattern::new(pattern, false) };
            assert_eq!(walked.matches(text), matches, "{text:?} LIKE {pattern:?}");
        }
        assert!(Pattern::new("ÀB%", true).matches("àbc"));
        // From Unicode's CaseFolding.txt, statuses C and S; those of F and T alone stay apart.
        for same in [
            "Σσς",
            "Ssſ",
            "µΜμ",
            "Kk\u{212A}",
            "Åå\u{212B}",
            "ßẞ",
            "ΘθϑϴΘ",
            "\u{345}Ιι\u{1FBE}",
            "ǅǆǄ",
            "ẛṡṠ",
            "ᾀᾈ",
            "Ꭰꭰ",
            "\u{390}\u{1FD3}",
            "\u{3B0}\u{1FE3}",
            "\u{FB05}\u{FB06}",
            "Вв\u{1C80}",
            "ÿŸ",
            "𐐀𐐨",
        ] {
            same.chars().for_each(|c| assert_eq!(fold(c), fold(same.chars().next().unwrap()), "{same:?}"));
        }
        for apart in ["iıİ", "ßs", "ŉn", "ﬁf", "oöо", "sz"] {
            let folded: std::collections::HashSet<char> = apart.chars().map(fold).collect();
            assert_eq!(folded.len(), apart.chars().count(), "{apart:?}");
        }
        assert_eq!(with_our_escape("a!%!!\\%", Some('!')).as_deref(), Some("a\\%\\!\\\\%"));
        assert_eq!(with_our_escape("a!", Some('!')), None);
    }
}
