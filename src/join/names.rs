//! Names of output columns where tables have columns of the same name.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::error::{Result, plan_err};

/// How the columns of one table are named where others have their names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    /// The name of the table.
    pub(super) table: &'a str,
    /// Put before every name.
    pub(super) prefix: &'a str,
    /// Appended to names that are taken.
    pub(super) suffix: &'a str,
}

impl<'a> Names<'a> {
    /// The name of a column where no other column has it.
    pub(super) fn plain(&self, name: &'a str) -> Cow<'a, str> {
        if self.prefix.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(format!("{}{name}", self.prefix)) }
    }

    /// A name for each of `wanted` (new name, name) that is not `taken`: its own, with the suffix, or behind the name of the
    /// table.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a new name that is taken.
    pub(super) fn choose(&self, wanted: &[(Option<&'a str>, &'a str)], taken: &HashSet<String>) -> Result<Vec<String>> {
        let asked: Vec<Cow<'_, str>> =
            wanted.iter().map(|&(new, name)| new.map_or_else(|| self.plain(name), Cow::Borrowed)).collect();
        // Who asks first for a free name gets it.
        let mut owners: HashMap<&str, usize> = HashMap::with_capacity(asked.len());
        for (i, (asked, &(new, _))) in asked.iter().zip(wanted).enumerate() {
            let is_free = !taken.contains(asked.as_ref()) && *owners.entry(asked).or_insert(i) == i;
            if new.is_some() && !is_free {
                return plan_err!("select gives a second column the name {asked:?}; choose another new name");
            }
        }
        let owns = |i: usize| owners.get(asked[i].as_ref()) == Some(&i);
        let mut given: HashSet<String> = HashSet::new();
        let mut name = |i: usize| {
            if owns(i) {
                return asked[i].clone().into_owned();
            }
            let is_free =
                |name: &String| !taken.contains(name) && !owners.contains_key(name.as_str()) && !given.contains(name);
            let name = wanted[i].1;
            let plain = [format!("{}{}", self.plain(name), self.suffix), format!("{}.{name}", self.table)];
            let numbered = (2..).map(|n: u64| format!("{}.{name}_{n}", self.table));
            let found = plain.into_iter().chain(numbered).find(is_free).unwrap_or_default();
            given.insert(found.clone());
            found
        };
        Ok((0..asked.len()).map(&mut name).collect())
    }
}

/// A column that `select` chose, before all names are known.
pub(super) struct Chosen<'a> {
    /// Its name, where nothing else may change it: it was asked for, or is that of the output or of the probe side.
    pub(super) name: Option<Cow<'a, str>>,
    /// Another column may have that name: the probe side repeats it, and was chosen as a whole.
    pub(super) repeats: bool,
    /// Its name in its table.
    pub(super) own: &'a str,
    /// How it is named where it has no name yet.
    pub(super) names: Names<'a>,
}

/// The names of chosen columns. Those that are fixed come first, the others give way.
///
/// # Errors
/// [`Error::Plan`](crate::Error::Plan) for a name that two columns were given.
pub(super) fn settle(chosen: &[Chosen<'_>]) -> Result<Vec<String>> {
    let mut taken = HashSet::with_capacity(chosen.len());
    let mut repeatable = HashSet::new();
    for Chosen { name, repeats, .. } in chosen {
        let Some(name) = name else { continue };
        let may_repeat = if *repeats { !repeatable.insert(name.as_ref()) } else { false };
        if !taken.insert(name.clone().into_owned()) && !may_repeat {
            return plan_err!("select gives two columns the name {name:?}; rename one by select={{new name: column}}");
        }
    }
    let mut names = Vec::with_capacity(chosen.len());
    for Chosen { name, own, names: by, .. } in chosen {
        names.push(match name {
            Some(name) => name.clone().into_owned(),
            None => {
                let name = by.choose(&[(None, own)], &taken)?.remove(0);
                taken.insert(name.clone());
                name
            }
        });
    }
    Ok(names)
}
