"""Memory: how conversation is kept and becomes memory.

Its public modules, the only ones that other packages import:

background.service `Memory`, the whole of it for one workspace: what makes memory, and what a person
                   can ask of it; what its methods give, and the parts that an import has of its own
services           `Services`: the services of one workspace, for code that works on several of them
edits.editor       `Editor`, the one engine that writes facts; the operations that it knows, who has
                   them done, and on what ground
recall.provenance  where a line comes from (`Provenance`, `Why`)
recall.remembered  MEMORY.md as a person sees it: its lines, one more, one changed, how full it is
recall.names       the names that a person wrote, and the lines that have them (`NameIndex`)
records.journal    what a person stated, day by day (`Journal`), and dates as memory keeps them
records.archive    what was condensed (`Archive`), what is forgotten (`Tombstones`), how far it was
                   read (`Cursors`), and how a sync brings these together

Below them stand dream (curation while nobody waits), consolidation (slices of conversation
condensed), inbox (what a person must decide on) and the rest of records (the files themselves).
"""
