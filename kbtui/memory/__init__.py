"""Memory: how conversation is kept and becomes memory.

Its public modules, the only ones that other packages import:

background.service `Memory`, the facade of one workspace's memory: what makes it, and what a person
                   can ask of it; the results of its methods, and the parts that an import uses
consolidation.due  what is due to be condensed (`Due`), without loading what condenses it
services           `Services`: the services of one workspace, for code that needs several of them
edits.editor       `Editor`, the one engine that writes facts; its operations, who requests them,
                   and what they are based on
recall.provenance  where a line comes from (`Provenance`, `Why`)
recall.remembered  MEMORY.md for people: its lines, adding and editing one, how full it is
recall.agenda      the one list of open tasks and dated lines, and what was said on a day
recall.differing   whether an answer says something else than the lines it was given (`AnswerCheck`)
recall.names       the names that a person wrote, and the lines with them (`NameIndex`)
recall.newer       the newer line of an older one (`Newer`), whether two lines are about the same
                   thing, and when a line was said
records.journal    what a person stated, day by day (`Journal`), and date handling
records.archive    what was condensed (`Archive`), what is forgotten (`Tombstones`), how far Dream
                   has read (`Cursors`), and how a sync merges these

Below them are dream (curation in the background), consolidation (condensing slices of
conversation), inbox (what a person must decide on) and the rest of records (the files themselves).
"""
