"""Everything that can be done in the app, by context, in the order in which it is explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.tui.actions.action import Action

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.tui.actions.action import Context


def _in(context: Context) -> Callable[..., Action]:
    """Make the actions of one context: name, keys, label, help, and what else an action has."""

    def make(name: str, keys: str, label: str, text: str, **more: Any) -> Action:
        return Action(f"{context}.{name}", keys, label, text, context, **more)

    return make


_everywhere = _in("global")
_chat = _in("chat")
_prompt = _in("prompt")
_transcript = _in("transcript")
_notes = _in("notes")
_editor = _in("editor")
_history = _in("history")
_past = _in("past")
_search = _in("search")
_switcher = _in("switcher")
_sessions = _in("sessions")
_memory = _in("memory")
_inbox = _in("inbox")
ACTIONS: tuple[Action, ...] = (
    _everywhere(
        "help",
        "f1",
        "Help",
        "Show every key and command.",
        slash="/help",
        usage="[word]",
        show=True,
        priority=True,
    ),
    _everywhere(
        "chat",
        "f2",
        "Chat",
        "Go to the chat, with the cursor in the prompt.",
        show=True,
        priority=True,
    ),
    _everywhere("notes", "f3", "Notes", "Go to the knowledge tree.", show=True, priority=True),
    _everywhere(
        "history",
        "f4",
        "History",
        "Look through all changes; undo or restore any.",
        show=True,
        priority=True,
    ),
    _everywhere(
        "open",
        "f5",
        "Open",
        "Find an entry by name and open it; make it if there is none.",
        slash="/open",
        usage="[name]",
        show=True,
        priority=True,
    ),
    _everywhere(
        "inbox",
        "f6",
        "Inbox",
        "Decide on changes of your notes that were proposed.",
        slash="/inbox",
        show=True,
        priority=True,
    ),
    _everywhere(
        "search",
        "f7",
        "Search",
        "Search entries, memory and documents.",
        slash="/search",
        usage="[words]",
        show=True,
        priority=True,
    ),
    _everywhere(
        "palette",
        "f8,ctrl+p",
        "Commands",
        "Find any command by typing a part of its name.",
        show=True,
        priority=True,
    ),
    _everywhere(
        "zoom", "f9", "Zoom", "Give the focused pane the whole screen, and back.", priority=True
    ),
    _everywhere("next_pane", "tab", "Next pane", "Move the focus on."),
    _everywhere("previous_pane", "shift+tab", "Previous pane", "Move the focus back."),
    _everywhere(
        "escape",
        "escape",
        "Step back",
        "Close a popup, then stop the answer, then go to the prompt.",
    ),
    _everywhere(
        "interrupt",
        "ctrl+c",
        "Copy, stop or clear",
        "Copy the selection, else stop the answer, else clear the prompt; again at once: quit.",
        priority=True,
    ),
    _everywhere(
        "suspend", "ctrl+z", "Suspend", "Put kbtui into the background (`fg` brings it back)."
    ),
    _everywhere(
        "at",
        "",
        "Time travel",
        "Look at everything as it was at a date or a change.",
        slash="/at",
        usage="[date or revision]",
    ),
    _everywhere(
        "browse",
        "",
        "Browse a repository",
        "Look at the history of any git repository, without writing into it.",
        slash="/browse",
        usage="[folder]",
    ),
    _everywhere("theme", "", "Theme", "Change the colours.", slash="/theme", usage="[name]"),
    _everywhere("keys", "", "Keys", "Show every key, and how to change one.", slash="/keys"),
    _everywhere("config", "", "Settings", "Show what is set, and where.", slash="/config"),
    _everywhere(
        "doctor", "", "Doctor", "Check workspace, history, search and models.", slash="/doctor"
    ),
    _everywhere(
        "tasks",
        "",
        "Tasks",
        "Show what runs in the background and how long it will take; stop it.",
        slash="/tasks",
    ),
    _everywhere(
        "quit", "ctrl+q", "Quit", "Leave kbtui; the draft is kept.", slash="/quit", priority=True
    ),
    _chat(
        "new",
        "",
        "New session",
        "Start a conversation with a clean slate.",
        slash="/new",
        usage="[title]",
    ),
    _chat("sessions", "", "Sessions", "Choose among all conversations.", slash="/sessions"),
    _chat(
        "resume",
        "",
        "Resume a session",
        "Go on with a conversation, by a part of its title.",
        slash="/resume",
        usage="[title]",
    ),
    _chat(
        "rename",
        "",
        "Rename the session",
        "Give this conversation a title.",
        slash="/rename",
        usage="<title>",
    ),
    _chat(
        "model",
        "",
        "Model",
        "Show or change the model that answers.",
        slash="/model",
        usage="[name]",
    ),
    _chat(
        "context",
        "",
        "Context",
        "Show what the model is given, and what it weighs.",
        slash="/context",
    ),
    _chat("cost", "", "Cost", "Show tokens and money of this session.", slash="/cost"),
    _chat(
        "export",
        "",
        "Export the session",
        "Write this conversation into a Markdown file.",
        slash="/export",
        usage="[file]",
    ),
    _prompt("send", "enter", "Send", "Send the message; while an answer is coming, queue it."),
    _prompt(
        "newline",
        "ctrl+j,shift+enter,alt+enter",
        "New line",
        "Start a new line (as does `\\` before Enter).",
    ),
    _prompt(
        "previous", "up", "Earlier input", "On the first line: bring back what was sent before."
    ),
    _prompt("next", "down", "Later input", "On the last line: go forward again."),
    _prompt("find", "ctrl+r", "Search input", "Search what was sent before."),
    _prompt("complete", "tab", "Complete", "Complete a /command or an @entry; elsewhere, move on."),
    _prompt(
        "editor",
        "ctrl+x",
        "Editor",
        "Ctrl+X Ctrl+E: write the message in $EDITOR.",
        slash="/editor",
    ),
    _prompt(
        "quit", "ctrl+d", "Delete or quit", "Delete the next character; in an empty prompt, quit."
    ),
    _transcript("next", "j,down", "Next message", "Select the next message or card."),
    _transcript("previous", "k,up", "Previous message", "Select the one before."),
    _transcript("first", "g,home", "First message", "Go to the first message shown."),
    _transcript("last", "G,end", "Last message", "Go to the last message."),
    _transcript(
        "expand",
        "enter",
        "Expand",
        "Show or hide details; open the entry or citation on the line.",
        show=True,
    ),
    _transcript("copy", "y", "Copy", "Copy the message as Markdown.", slash="/copy", show=True),
    _transcript("copy_code", "Y", "Copy code", "Copy the code blocks of the message."),
    _transcript(
        "edit",
        "e",
        "Edit and resend",
        "Take the message back into the prompt and go on from there.",
        show=True,
    ),
    _transcript("retry", "r", "Retry", "Ask for another answer.", slash="/retry", show=True),
    _transcript("save", "s", "Save as entry", "Keep the message as an entry.", show=True),
    _transcript(
        "open", "o", "Open citation", "Open the line cited, or the entry written.", show=True
    ),
    _transcript("undo", "u", "Undo the turn", "Take back all that this turn changed in the notes."),
    _notes("down", "j", "Down", "Move down."),
    _notes("up", "k", "Up", "Move up."),
    _notes("left", "h", "Fold", "Fold the category, or go up to it."),
    _notes("right", "l", "Unfold", "Unfold the category, or go into the entry."),
    _notes("open", "enter", "Open", "Open the entry or the link.", show=True),
    _notes("filter", "slash", "Filter", "Show only entries that match.", show=True),
    _notes("new", "n", "New", "Make an entry.", show=True),
    _notes("edit", "e", "Edit", "Edit the entry here.", show=True),
    _notes("edit_outside", "E", "Edit in $EDITOR", "Edit the entry in your editor."),
    _notes("rename", "R", "Rename", "Rename the entry and repair all links to it.", show=True),
    _notes("move", "m", "Move", "Move the entry to another category; links are repaired."),
    _notes("delete", "d", "Delete", "Delete the entry (can be undone)."),
    _notes("backlinks", "b", "Links", "Show what links here and where this links."),
    _notes("tags", "t", "Tags", "Show only entries with a tag."),
    _notes("ask", "a", "Ask about it", "Put a reference to the entry into the prompt."),
    _notes("history", "H", "History of it", "Show every change of this entry.", show=True),
    _notes("why", "w", "Why", "Show who wrote the line, and from which messages.", show=True),
    _notes("authors", "W", "Authors", "Say beside each line who wrote it, and how long ago."),
    _notes("undo", "u", "Undo last change", "Undo the last change of this entry."),
    _notes("back", "[,backspace", "Back", "Return to the entry shown before."),
    _notes("forward", "]", "Forward", "Go on again after going back."),
    _editor(
        "save",
        "ctrl+s",
        "Save",
        "Save the entry; the change can be undone in the history.",
        show=True,
    ),
    _editor(
        "close", "escape", "Close", "Stop editing; asks where something is not saved.", show=True
    ),
    _history("down", "j,down", "Down", "Next change."),
    _history("up", "k,up", "Up", "Previous change."),
    _history("open", "enter", "Diff", "Show what the change did.", show=True),
    _history("next_hunk", "n", "Next hunk", "Go to the next changed place."),
    _history("previous_hunk", "p", "Previous hunk", "Go to the changed place before."),
    _history("less_context", "{", "Less context", "Show fewer unchanged lines."),
    _history("more_context", "}", "More context", "Show more unchanged lines."),
    _history("side_by_side", "s", "Side by side", "Show before and after beside each other."),
    _history("copy", "y", "Copy id", "Copy the id of the commit."),
    _history("copy_patch", "Y", "Copy patch", "Copy what the change did as a patch."),
    _history("why", "w", "Why", "Show what the changed place was made from: the messages."),
    _history("undo", "u", "Undo this", "Undo exactly this change; later ones stay.", show=True),
    _history("undo_hunk", "U", "Undo this place", "Undo only the changed place shown."),
    _history(
        "undo_group", "A", "Undo all of it", "Undo the whole turn or batch that it belongs to."
    ),
    _history(
        "restore",
        "R",
        "Restore file",
        "Bring the entry back to how it was at this point.",
        show=True,
    ),
    _history(
        "restore_all",
        "B",
        "Back to before",
        "Bring everything back to how it was before this change; shows it first.",
    ),
    _history(
        "time_travel",
        "T",
        "Time travel",
        "Look at everything as it was after this change.",
        show=True,
    ),
    _history("filter", "slash", "Filter", "Show only changes that match.", show=True),
    _history("back", "q,escape", "Back", "Close the history.", show=True),
    _past("now", "T,escape", "Back to now", "Leave the past.", show=True),
    _past("restore", "R", "Restore entry", "Make the entry what it was then.", show=True),
    _past("compare", "c", "Compare with now", "Show what changed in the entry since.", show=True),
    _past("search", "s", "Search then", "Search what was there then.", show=True),
    _search("down", "down", "Down", "Next hit."),
    _search("up", "up", "Up", "Previous hit."),
    _search("open", "enter", "Open", "Open the hit at its line.", show=True),
    _search(
        "scope",
        "ctrl+t",
        "Scope",
        "Search knowledge, memory, documents, sessions or all.",
        show=True,
    ),
    _search("back", "escape", "Back", "Close the search.", show=True),
    _switcher("down", "down", "Down", "Next entry."),
    _switcher("up", "up", "Up", "Previous entry."),
    _switcher("open", "enter", "Open", "Open the entry, or make one of that name.", show=True),
    _switcher("back", "escape", "Back", "Close without opening anything.", show=True),
    _sessions("down", "down", "Down", "Next session."),
    _sessions("up", "up", "Up", "Previous session."),
    _sessions("open", "enter", "Resume", "Go on with the session.", show=True),
    _sessions("back", "escape", "Back", "Stay in this session.", show=True),
    _memory(
        "remember",
        "",
        "Remember",
        "Keep a fact in MEMORY.md, which every prompt holds (as does `#` before it).",
        slash="/remember",
        usage="<text>",
    ),
    _memory(
        "forget",
        "",
        "Forget",
        "Take out what memory and entries say about something, after a look at it.",
        slash="/forget",
        usage="<text>",
    ),
    _memory(
        "compact",
        "",
        "Condense the session",
        "Condense this conversation into archive, memory and entries now.",
        slash="/compact",
    ),
    _memory(
        "dream",
        "",
        "Dream",
        "Curate memory and entries with what is new in the archive.",
        slash="/dream",
        usage="[--dry-run]",
    ),
    _memory(
        "dream_log",
        "",
        "What Dream did",
        "Show the last change of Dream's, or the one named.",
        slash="/dream-log",
        usage="[sha]",
    ),
    _memory(
        "dream_restore",
        "",
        "Undo what Dream did",
        "Go back to before a change of Dream's, or undo only that one; shows it first.",
        slash="/dream-restore",
        usage="[sha]",
    ),
    _memory(
        "sync",
        "",
        "Sync",
        "Bring this knowledge base and another machine's together; `stop` ends that.",
        slash="/sync",
        usage="[place]",
    ),
    _memory("audit", "", "Audit", "Account for every message of every session.", slash="/audit"),
    _memory("today", "", "Today's note", "Open the note of today.", slash="/today"),
    _memory(
        "tag",
        "",
        "Tag",
        "Add tags to the entry that is open; `-name` takes one away.",
        slash="/tag",
        usage="<names>",
    ),
    _inbox("down", "j,down", "Next proposal", "Go to the next proposal."),
    _inbox("up", "k,up", "Previous proposal", "Go to the proposal before."),
    _inbox(
        "next_hunk", "n", "Next place", "Go to the next place that would be changed.", show=True
    ),
    _inbox("previous_hunk", "p", "Place before", "Go to the place before."),
    _inbox("accept", "a", "Accept", "Make the change in this place.", show=True),
    _inbox("reject", "x", "Reject", "Put this place away; it isn't proposed again.", show=True),
    _inbox("edit", "e", "Edit", "Write yourself what shall stand in this place.", show=True),
    _inbox("accept_all", "A", "Accept all", "Make the whole proposed change.", show=True),
    _inbox("reject_all", "X", "Reject all", "Put the whole proposal away."),
    _inbox("undo", "u", "Take back", "Undo what was accepted last."),
    _inbox("open", "o", "Open the entry", "Show the entry as it is now."),
    _inbox("zoom", "enter", "Whole screen", "Give the difference the whole screen, and back."),
    _inbox("side_by_side", "s", "Side by side", "Show before and after beside each other."),
    _inbox("back", "q,escape", "Back", "Close the inbox.", show=True),
)
