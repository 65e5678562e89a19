"""Knowledge: entries, their frontmatter and links, and the catalogue of them.

Its public modules, the only ones that other packages import:

library.library    `Library`, which finds, reads and changes entries; `Reader`, of which the entries
                   of a past commit (`PastLibrary`) are one as well; what their methods give
library.overlay    `Overlay`: entries with edits on top that aren't written yet
catalog.catalog    INDEX.md, a line an entry, and the `EntryIndex` that all of it is read from
entries.entry      a single one: Entry, EntryInfo, parse_entry, its name and type, what a new one
                   looks like and how a section of it grows, whether it is private
format.body        a text: where its body begins, headings, tasks, tags, first sentence, code
format.frontmatter the keys above it, read and changed in place
format.facts       `Fact`: a statement on its way into a file
format.lines       a text line by line: headings, items of lists, fenced blocks

Below the library stand `linking`, which says what entry a name means and repairs links, `habits`
and `dendron`, by which notes of other programs keep the names that they have there.
"""
