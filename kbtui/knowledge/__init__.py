"""Knowledge: entries, their frontmatter and links, and the catalogue of them.

Its public modules, the only ones that other packages import:

library.library    `Library`, which finds, reads and changes entries; its base class `Reader`;
                   `PastLibrary`, a `Reader` of a past commit; the types they return
library.overlay    `Overlay`: entries with unwritten edits on top
catalog.catalog    INDEX.md, one line per entry, and the `EntryIndex` it is made from
entries.entry      single entries: Entry, EntryInfo, parse_entry, names and types, templates of new
                   ones and adding to their sections, whether they are private
format.body        Markdown bodies: where they begin, headings, tags, summary
format.document    `Document`, the one reader of Markdown: blocks, visible lines, code, comments
format.frontmatter frontmatter: parsing, and edits in place
format.facts       `Fact`: a statement to be written to a file
format.lines       single lines of Markdown: bullets, headings
format.planned     blocks of outliners that are to be done: `TODO`, `DEADLINE: <day>`
format.tasks       tasks: their dates and other fields, ticking, moving, recurrence

Internally the library uses `linking`, which resolves names and repairs links, and `habits` and
`dendron`, which follow the naming conventions of other notes programs.
"""
