//! The pages of a file in their order, as the numbers of their objects: what a page holds is read when its turn comes.

use std::collections::HashSet;

use super::Trouble;
use super::file::File;
use super::object::{Dict, Object};

/// One page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    number: u32,
    /// Who has the resources: the page, or something it belongs to.
    resources: u32,
}

impl Page {
    pub(super) fn dict(self, file: &File<'_>) -> Result<Dict, Trouble> {
        Ok(file.numbered(self.number)?.dict().cloned().unwrap_or_default())
    }

    pub(super) fn resources(self, file: &File<'_>) -> Result<Dict, Trouble> {
        let owner = file.numbered(self.resources)?;
        let Some(owner) = owner.dict() else { return Ok(Dict::default()) };
        Ok(file.get(owner, "Resources")?.dict().cloned().unwrap_or_default())
    }
}

/// Every page; where the tree of pages is broken, the pages that are found.
pub(super) fn pages(file: &File<'_>) -> Result<Vec<Page>, Trouble> {
    let root = file.get(&file.trailer, "Root")?.into_owned();
    let mut top = root.dict().map_or(Object::Null, |root| root.get("Pages").clone());
    if !matches!(top, Object::Ref(_))
        && let Some(number) = file.of_kind("Catalog")?.pop()
    {
        let root = file.numbered(number)?;
        top = root.dict().map_or(Object::Null, |root| root.get("Pages").clone());
    }
    let mut pages = Vec::new();
    if let Object::Ref(number) = top {
        below(file, number, &mut pages)?;
    }
    if pages.is_empty() {
        let numbers = file.of_kind("Page")?;
        pages = numbers.into_iter().map(|number| Page { number, resources: number }).collect();
    }
    Ok(pages)
}

fn below(file: &File<'_>, top: u32, pages: &mut Vec<Page>) -> Result<(), Trouble> {
    let mut seen = HashSet::new();
    let mut waiting = vec![(top, top)];
    while let Some((number, above)) = waiting.pop() {
        // A page that is there twice is somebody's trick, and so is a tree with a cycle.
        if !seen.insert(number) {
            continue;
        }
        let node = file.numbered(number)?;
        let Some(dict) = node.dict() else { continue };
        let resources = if *dict.get("Resources") == Object::Null { above } else { number };
        let kids = file.get(dict, "Kids")?;
        if !dict.is("Pages") && kids.array().is_empty() {
            pages.push(Page { number, resources });
        }
        file.budget.spend(kids.array().len().saturating_mul(8))?;
        // The last goes in first, so that the first comes out first.
        waiting.extend(kids.array().iter().rev().filter_map(|kid| match kid {
            Object::Ref(kid) => Some((*kid, resources)),
            _ => None,
        }));
    }
    Ok(())
}
