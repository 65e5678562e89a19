"""The registry of all actions of the app: one table, in the order in which help lists them.

Key bindings, command palette, help, slash commands and their documentation are all generated from
`ACTIONS`, so they can't disagree. A row is run in one of two ways:

- by a key or the palette: ``action_<method>`` of the widget that shows the context and has
  ``BINDINGS = bindings(context)``, as usual in Textual;
- by a slash command: its function in a table `COMMANDS` of `chat_commands` (context ``chat``),
  `memory_commands` (``memory``) or `item_actions` (``transcript``), all of
  `kbtui.tui.chat.commands`, or of `kbtui.tui.app.app` (``global``).

Users remap a key by the id of its action: ``ui.keys = {"notes.edit" = "e,f12"}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Literal, get_args

from textual.binding import Binding, BindingType

from kbtui.errors import UsageError
from kbtui.text import clean_line

Context = Literal[
    "global",
    "chat",
    "prompt",
    "transcript",
    "notes",
    "map",
    "editor",
    "history",
    "past",
    "search",
    "switcher",
    "memory",
    "facts",
    "tasks",
    "inbox",
    "correct",
    "settings",
]
CONTEXTS: tuple[Context, ...] = get_args(Context)
CONTEXT_TITLES: dict[Context, str] = {
    "global": "Everywhere",
    "chat": "Chat",
    "prompt": "Prompt",
    "transcript": "Conversation",
    "notes": "Notes",
    "map": "Map",
    "editor": "Editing a note",
    "history": "History",
    "past": "Back in time",
    "search": "Search",
    "switcher": "Open",
    "memory": "Memory",
    "facts": "What is remembered",
    "tasks": "Tasks",
    "inbox": "Inbox",
    "correct": "Correcting everywhere",
    "settings": "Settings",
}


@dataclass(frozen=True, slots=True)
class Action:
    """One action that a user can run.

    Attributes:
        context: Where it applies.
        method: Its name in the context, and that of the widget's method unless `does` is given.
        keys: In Textual's form, separated by commas; empty if only the palette or a slash command
            runs it.
        title: Its name in hints, palette and help.
        help: One sentence on what it does.
        slash: The slash command, including the slash.
        usage: The arguments of the slash command; required ones in angle brackets.
        show: Whether it appears in the hints at the bottom.
        priority: Whether its key works in any dialog, and before the focused widget handles it.
        partial: Whether it applies to some objects only (see `check_action`); elsewhere its key
            does what a later row says.
        does: A call of a method shared by several rows, instead of `method`.
        hot: Whether it is the thing to do there, which its hint shows.
    """

    context: Context
    method: str
    keys: str
    title: str
    help: str
    slash: str = ""
    usage: str = ""
    show: bool = False
    priority: bool = False
    partial: bool = False
    does: str = ""
    hot: bool = False

    @property
    def call(self) -> str:
        """The action string of the Textual binding."""
        return self.does or self.method

    @property
    def id(self) -> str:
        """The id by which users remap its keys."""
        return f"{self.context}.{self.method}"


_everywhere = partial(Action, "global")
_chat = partial(Action, "chat")
_prompt = partial(Action, "prompt")
_transcript = partial(Action, "transcript")
_notes = partial(Action, "notes")
_map = partial(Action, "map")
_editor = partial(Action, "editor")
_history = partial(Action, "history")
_past = partial(Action, "past")
_search = partial(Action, "search")
_switcher = partial(Action, "switcher")
_memory = partial(Action, "memory")
_facts = partial(Action, "facts")
_tasks = partial(Action, "tasks")
_inbox = partial(Action, "inbox")
_correct = partial(Action, "correct")
_settings = partial(Action, "settings")

# fmt: off
ACTIONS: tuple[Action, ...] = (
    _everywhere("help", "f1", "Help", "Show all keys and commands.", "/help", "[word]", show=True,
                priority=True),
    _everywhere("keys_here", "question_mark", "Keys here",
                "Show the keys of this pane (when you aren't typing)."),
    _everywhere("chat", "f2", "Chat", "Go to the prompt.", show=True,
                priority=True),
    _everywhere("notes", "f3", "Notes", "Go to your notes.", show=True, priority=True),
    _everywhere("history", "f4", "History", "Browse all changes; undo or restore any of them.",
                show=True, priority=True),
    _everywhere("open", "f5", "Open",
                "Open a note by name, or create it.", "/open", "[name]",
                show=True, priority=True),
    _everywhere("inbox", "f6", "Inbox", "Decide on proposed changes to your notes.",
                "/inbox", show=True, priority=True),
    _everywhere("search", "f7", "Search", "Search notes, memory and conversations.", "/search",
                "[words]", show=True, priority=True),
    _everywhere("palette", "f8,ctrl+p", "Commands",
                "Find any command by part of its name.", show=True, priority=True),
    _everywhere("zoom", "f9", "Zoom", "Zoom the focused pane to the whole screen, and back.",
                priority=True),
    _everywhere("border_left", "ctrl+left", "Border left",
                "Move the border between panes left; in text: a word back.",
                does="border('left')"),
    _everywhere("border_right", "ctrl+right", "Border right", "Move it right.",
                does="border('right')"),
    _everywhere("border_up", "ctrl+up", "Border up",
                "Move the border between the list and the note up.", does="border('up')"),
    _everywhere("border_down", "ctrl+down", "Border down", "Move it down.",
                does="border('down')"),
    _everywhere("next_pane", "tab", "Next pane", "Focus the next pane.", does="focus_next"),
    _everywhere("previous_pane", "shift+tab", "Previous pane", "Focus the previous pane.",
                does="focus_previous"),
    _everywhere("escape", "escape", "Step back",
                "Close a popup, stop the answer, or go to the prompt; there, twice: stop a sync, "
                "an import or a download."),
    _everywhere("interrupt", "ctrl+c", "Copy, stop or clear",
                "Copy the selection, else stop the answer, else clear the prompt; "
                "again at once: quit.",
                priority=True),
    _everywhere("suspend", "ctrl+z", "Suspend",
                "Suspend kbtui (`fg` resumes it).", does="suspend_process"),
    _everywhere("at", "", "Time travel", "See everything as it was on a date or after a change.",
                "/at", "[date or revision]"),
    _everywhere("browse", "", "Browse a repository",
                "Browse the history of any git repository, read-only.", "/browse",
                "[folder]"),
    _everywhere("workspaces", "ctrl+o", "Workspaces",
                "Switch to another workspace.", "/workspaces",
                "[folder]", priority=True),
    _everywhere("theme", "", "Theme", "Change the colour theme.", "/theme", "[name]"),
    _everywhere("keys", "", "Keys", "Show all keys, and change them.", "/keys"),
    _everywhere("config", "", "Settings", "Show all settings, and change them.",
                "/config"),
    _everywhere("doctor", "", "Doctor", "Check workspace, history, search and models.", "/doctor"),
    _everywhere("tasks", "", "Tasks",
                "Show the open tasks of journal and notes: tick, move or open them.", "/tasks"),
    _everywhere("background", "", "Background",
                "Show what runs in the background, and stop it.", "/background"),
    _everywhere("quit", "ctrl+q", "Quit", "Quit kbtui; your draft is kept.", "/quit",
                priority=True),
    _chat("new", "", "New session", "Start a new conversation.", "/new", "[title]"),
    _chat("sessions", "", "Sessions", "Choose from all conversations.", "/sessions"),
    _chat("resume", "", "Resume a session", "Continue a conversation, by part of its title.",
          "/resume", "[title]"),
    _chat("rename", "", "Rename the session", "Give this conversation a title.", "/rename",
          "<title>"),
    _chat("model", "", "Model", "Show or change the model that answers.", "/model", "[name]"),
    _chat("context", "", "Context", "Show what the prompt holds, and how many tokens it takes.",
          "/context"),
    _chat("cost", "", "Cost", "Show what this conversation and today cost.", "/cost"),
    _chat("export", "", "Export the session", "Save this conversation as a Markdown file.",
          "/export", "[file]"),
    _prompt("send", "enter", "Send", "Send the message; while an answer is coming, queue it.",
            show=True),
    _prompt("newline", "ctrl+j,shift+enter,alt+enter", "New line",
            "Start a new line (as does `\\` before Enter).", show=True),
    _prompt("previous", "up", "Earlier input",
            "On the first line: recall what you sent before.", show=True),
    _prompt("next", "down", "Later input", "On the last line: go forward again."),
    _prompt("find", "ctrl+r", "Search input", "Search what you sent before."),
    _prompt("complete", "tab", "Complete", "Complete a /command or @note; else the next pane."),
    _prompt("editor", "ctrl+x", "Editor", "Ctrl+X Ctrl+E: write the message in $EDITOR.",
            "/editor"),
    _prompt("quit", "ctrl+d", "Delete or quit",
            "Delete the next character; in an empty prompt, quit."),
    _transcript("mark_past", "r", "Correct everywhere",
                "On an earlier line: strike it out, with a pointer to what you just said, and "
                "correct every place that repeats it.",
                partial=True, does="act('mark_past')"),
    _transcript("next", "j,down", "Next message", "Select the next message or card."),
    _transcript("previous", "k,up", "Previous message", "Select the one before."),
    _transcript("first", "g,home", "First message", "Go to the first message shown."),
    _transcript("last", "G,end", "Last message", "Go to the last message."),
    _transcript("expand", "enter", "Expand",
                "Show or hide details; open what the line names, or keep what wasn't kept.",
                show=True, does="act('expand')"),
    _transcript("keep", "", "Keep it", "Keep the message in today's journal after all.", "/keep"),
    _transcript("copy", "y", "Copy", "Copy the message as Markdown.", "/copy", show=True,
                does="act('copy')"),
    _transcript("copy_code", "Y", "Copy code", "Copy the code blocks of the message.",
                does="act('copy_code')"),
    _transcript("edit", "e", "Edit and resend",
                "Edit the message in the prompt and continue from there.", show=True,
                does="act('edit')"),
    _transcript("retry", "r", "Retry", "Ask for another answer.", "/retry", show=True,
                does="act('retry')"),
    _transcript("save", "s", "Save as note", "Keep the message as a note.", show=True,
                does="act('save')"),
    _transcript("open", "o", "Open citation", "Open the cited line, or the note that was written.",
                show=True),
    _transcript("differs", "w", "Line it differs from",
                "On an answer that differs from a line of your notes: show that line.",
                show=True, partial=True),
    _transcript("undo", "u", "Undo the turn", "Undo everything this turn changed in your notes.",
                does="act('undo')"),
    _notes("down", "j", "Down", "Move down."),
    _notes("up", "k", "Up", "Move up."),
    _notes("left", "h", "Fold", "Fold the folder, or go up to it."),
    _notes("right", "l", "Unfold", "Unfold the folder, or go into the note."),
    _notes("open", "enter", "Open",
           "Open the note or the link; on a line marked ↗ its newer line.", show=True),
    _notes("day_before", "less_than_sign", "Day before",
           "In a note of a day: open that of the day before.", show=True, partial=True,
           does="go_to_day(-1)"),
    _notes("day_after", "greater_than_sign", "Day after",
           "In a note of a day: open that of the day after.", show=True, partial=True,
           does="go_to_day(1)"),
    _notes("version_before", "left", "Earlier version",
           "In a note: show in its place how it was before, change by change.", partial=True,
           does="version(-1)"),
    _notes("version_after", "right", "Later version",
           "In a note of the past: show the version after it.", partial=True, does="version(1)"),
    _notes("now", "escape", "Back to now", "In a note of the past: show it as it is now.",
           partial=True),
    _notes("outline", "o", "Outline", "Show the note's headings, and jump to one."),
    _notes("preview", "K", "Preview",
           "Preview the notes that the line links to."),
    _notes("tick", "space", "Tick",
           "In a note: tick the task under the cursor, or fold the heading; elsewhere: page down."),
    _notes("filter", "slash", "Filter", "Show only notes that match.", show=True),
    _notes("new", "n", "New", "Make a note.", show=True),
    _notes("save", "s", "Make a note",
           "On a name: make a note of the lines with it; in a conversation: of the message.",
           partial=True),
    _notes("edit", "e", "Edit", "Edit the note here.", show=True),
    _notes("edit_outside", "E", "Edit in $EDITOR", "Edit the note in your editor."),
    _notes("rename", "R", "Rename", "Rename the note and repair all links to it.", show=True),
    _notes("move", "m", "Move", "Move the note to another folder; links are repaired."),
    _notes("delete", "d", "Delete", "Delete the note (can be undone)."),
    _notes("backlinks", "b", "Links", "Show the links to and from this note."),
    _notes("link_mentions", "L", "Link mentions",
           "Turn mentions of this note's name in other notes into links."),
    _notes("tags", "t", "Tags", "Show all tags with their counts; search for one."),
    _notes("tasks", "T", "Tasks",
           "Show the open tasks of journal and notes: tick, move or open them."),
    _notes("map", "g", "Map", "Show the notes around this one, and walk along the links.",
           priority=True),
    _notes("similar", "S", "Similar notes",
           "Show the notes that are like this one: open one, or link to it."),
    _notes("ask", "a", "Ask about it", "Mention the note in the prompt."),
    _notes("history", "H", "History of it", "Show every change to this note.", show=True),
    _notes("compare", "equals_sign", "Compare",
           "Show what changed in the note since a day, or between two."),
    _notes("correct", "r", "Correct everywhere",
           "Put what the line says right, in every place that repeats it."),
    _notes("why", "w", "Why", "Show who wrote the line, and from which messages.", show=True),
    _notes("authors", "W", "Authors", "Show beside each line who wrote it, and when."),
    _notes("undo", "u", "Undo last change", "Undo the last change to this note."),
    _notes("back", "[,backspace", "Back", "Go back to the previous note."),
    _notes("forward", "]", "Forward", "Go forward again."),
    _map("left", "left,h", "Left", "Go left.", does="walk(-1, 0)"),
    _map("right", "right,l", "Right", "Go right.", does="walk(1, 0)"),
    _map("up", "up,k", "Up", "Go up.", does="walk(0, -1)"),
    _map("down", "down,j", "Down", "Go down.", does="walk(0, 1)"),
    _map("middle", "enter", "Centre",
         "Centre the note; unfold a group; open the note in the centre.", show=True),
    _map("open", "o", "Open", "Open the note.", show=True),
    _map("before", "backspace,[", "Before", "Return to the note centred before.",
         show=True),
    _map("find", "slash", "Find", "Find a note on the map by name.", show=True),
    _map("more", "plus", "Steps", "Show one step more, up to three.", show=True,
         does="step(1)"),
    _map("fewer", "minus", "Fewer steps", "Show one step less.", does="step(-1)"),
    _map("save", "s", "Save as picture", "Save the whole map as an SVG in the current folder.",
         show=True),
    _map("back", "escape,q,g", "Leave", "Leave the map.", show=True),
    _editor("save", "ctrl+s", "Save", "Save the note; the change can be undone in the history.",
            show=True),
    _editor("find", "ctrl+f", "Find", "Find and replace.", show=True),
    _editor("find_next", "ctrl+g", "Find next", "Go to the next match."),
    _editor("replace_all", "ctrl+r", "Replace all",
            "Replace every match; Ctrl+Z undoes it."),
    _editor("close", "escape", "Close", "Stop editing; asks if something isn't saved.",
            show=True),
    _history("down", "j,down", "Down", "Next change.", does="move(1)"),
    _history("up", "k,up", "Up", "Previous change.", does="move(-1)"),
    _history("open", "enter", "Diff", "Show what changed.", show=True),
    _history("next_hunk", "n", "Next hunk", "Go to the next changed place.", does="hunk(1)"),
    _history("previous_hunk", "N", "Previous hunk", "Go to the previous changed place.",
             does="hunk(-1)"),
    _history("raw", "p", "As a patch", "Show the change as a patch."),
    _history("less_context", "{", "Less context", "Show fewer unchanged lines.",
             does="context(-1)"),
    _history("more_context", "}", "More context", "Show more unchanged lines.", does="context(1)"),
    _history("side_by_side", "s", "Side by side", "Show before and after side by side."),
    _history("copy", "y", "Copy id", "Copy the commit id."),
    _history("copy_patch", "Y", "Copy patch", "Copy the change as a patch."),
    _history("why", "w", "Why", "Show the messages that the changed place came from."),
    _history("compare", "c", "Compare",
             "Show what changed in the file since this change, or between two days."),
    _history("undo", "u", "Undo this", "Undo exactly this change; later ones stay.", show=True),
    _history("undo_hunk", "U", "Undo this place", "Undo only this place."),
    _history("undo_group", "A", "Undo all of it",
             "Undo the whole turn or batch it belongs to."),
    _history("restore", "R", "Restore file", "Restore the note to this point.",
             show=True),
    _history("restore_all", "B", "Back to before",
             "Restore everything to the point before this change; shows it first."),
    _history("time_travel", "T", "Time travel", "See everything as it was after this change.",
             show=True),
    _history("year", "h", "Year", "Show a year of days, darker where more was written.",
             show=True),
    _history("filter", "slash", "Filter", "Show only changes that match.", show=True),
    _history("back", "q,escape", "Back", "Close the history.", show=True),
    _past("now", "T,escape", "Back to now", "Leave the past.", show=True, does="want('now')"),
    _past("earlier", "comma", "Earlier", "Go back one change.", show=True,
          does="want('earlier')"),
    _past("later", "full_stop", "Later", "Go forward one change.", show=True, does="want('later')"),
    _past("day_before", "less_than_sign", "Day before", "Go back to the end of the previous day.",
          does="want('day before')"),
    _past("day_after", "greater_than_sign", "Day after", "Go forward to the end of the next day.",
          does="want('day after')"),
    _past("restore", "R", "Restore note", "Restore the note as it was then.", show=True,
          does="want('restore')"),
    _past("compare", "c", "Compare with now", "Show what has changed in the note since.", show=True,
          does="want('compare')"),
    _past("search", "s", "Search then", "Search the notes as they were then.", show=True),
    _search("down", "down", "Down", "Next hit.", does="move(1)"),
    _search("up", "up", "Up", "Previous hit.", does="move(-1)"),
    _search("open", "enter", "Open", "Open the hit at its line.", show=True),
    _search("scope", "ctrl+t", "Where",
            "Switch between notes, memory, documents, conversations and all.", show=True),
    _search("correct", "ctrl+r", "Correct everywhere",
            "Put what the hit says right, in every place that repeats it."),
    _search("save", "ctrl+s", "Save search",
            "Save this search for when nothing is typed yet; again to remove it.", show=True),
    _search("back", "escape", "Back", "Close the search.", show=True),
    _switcher("down", "down", "Down", "Next note.", does="move(1)"),
    _switcher("up", "up", "Up", "Previous note.", does="move(-1)"),
    _switcher("open", "enter", "Open", "Open the note, or make one of that name.", show=True),
    _switcher("back", "escape", "Back", "Close without opening anything.", show=True),
    _memory("remember", "", "Remember",
            "Keep a fact in MEMORY.md, which every prompt holds (as does `#` before it).",
            "/remember", "<text>"),
    _memory("forget", "", "Forget",
            "Take out what memory and notes say about something, after a look at it.", "/forget",
            "<text>"),
    _memory("memory", "", "Memory",
            "Show what every prompt holds and weighs, and what is remembered, line by line.",
            "/memory"),
    _memory("compact", "", "Condense the session",
            "Condense this conversation into archive, memory and notes now.", "/compact"),
    _memory("dream", "", "Dream", "Curate memory and notes with what is new in the archive.",
            "/dream", "[--dry-run]"),
    _memory("dream_log", "", "What Dream did", "Show the last change of Dream's, or the one named.",
            "/dream-log", "[sha]"),
    _memory("dream_restore", "", "Undo what Dream did",
            "Take back a change of Dream's; `--all` goes back to before it. Shows it first.",
            "/dream-restore", "[sha] [--all]"),
    _memory("sync", "", "Sync",
            "Bring this knowledge base and another machine's together; `stop` ends that.", "/sync",
            "[place]"),
    _memory("import", "", "Import",
            "Bring in what another program exported, or a document; shows first what it is. `stop` "
            "ends an import, `undo` takes the last one back.", "/import", "[path]"),
    _memory("audit", "", "Audit", "Account for every message of every session.", "/audit"),
    _memory("today", "", "Today", "Open the page of today: what is coming, open, and was said.",
            "/today"),
    _memory("journal", "", "Journal",
            "Say where what you state is kept: in notes of its `own`, or in your `daily` notes.",
            "/journal", "[own or daily]"),
    _memory("tag", "", "Tag", "Add tags to the note that is open; `-name` takes one away.", "/tag",
            "<names>"),
    _facts("down", "j,down", "Down", "Next line.", does="move(1)"),
    _facts("up", "k,up", "Up", "Previous line.", does="move(-1)"),
    _facts("edit", "e", "Edit", "Change what the line says.", show=True),
    _facts("correct", "r", "Correct everywhere",
           "Put what the line says right, in every place that repeats it.", show=True),
    _facts("forget", "d", "Forget", "Forget it, after a look at all that says it.", show=True),
    _facts("why", "w", "Why", "Show who wrote the line, and from which messages.", show=True),
    _facts("filter", "slash", "Filter", "Show only lines with these words.", show=True),
    _facts("open", "enter,o", "Open", "Open the memory at the line.", show=True),
    _facts("back", "q,escape", "Back", "Close it.", show=True),
    _tasks("down", "j,down", "Down", "Next task.", does="move(1)"),
    _tasks("up", "k,up", "Up", "Previous task.", does="move(-1)"),
    _tasks("tick", "space", "Done", "Tick it; a recurring one comes again.", show=True),
    _tasks("move_day", "s", "Move", "Give it another day.", show=True),
    _tasks("open", "enter,o", "Open", "Open its note at its line.", show=True),
    _tasks("filter", "slash", "Filter", "Show only tasks with these words.", show=True),
    _tasks("undo", "u", "Take back", "Undo the last change that was made here.", show=True),
    _tasks("back", "q,escape", "Back", "Close the tasks.", show=True),
    _inbox("down", "j,down", "Next proposal", "Go to the next proposal.", does="move(1)"),
    _inbox("up", "k,up", "Previous proposal", "Go to the proposal before.", does="move(-1)"),
    _inbox("next_hunk", "n", "Next place", "Go to the next place that would be changed.",
           show=True, does="hunk(1)"),
    _inbox("previous_hunk", "N", "Place before", "Go to the place before.", does="hunk(-1)"),
    _inbox("raw", "p", "As a patch", "Show what would change as the files have it."),
    _inbox("accept", "a", "Accept", "Make the change in this place.", show=True, hot=True),
    _inbox("reject", "x", "Reject", "Put this place away; it isn't proposed again.", show=True),
    _inbox("edit", "e", "Edit", "Write yourself what shall stand in this place.", show=True),
    _inbox("accept_all", "A", "Accept all", "Make the whole proposed change.", show=True),
    _inbox("reject_all", "X", "Reject all", "Put the whole proposal away."),
    _inbox("undo", "u", "Take back", "Undo what was accepted last."),
    _inbox("open", "o", "Who said so", "Open the message that says so; without one, the note.",
           show=True),
    _inbox("open_note", "O", "Open the note", "Show the note as it is now."),
    _inbox("zoom", "enter", "Whole screen", "Give the difference the whole screen, and back."),
    _inbox("side_by_side", "s", "Side by side", "Show before and after side by side."),
    _inbox("back", "q,escape", "Back", "Close the inbox.", show=True),
    _correct("down", "j,down", "Down", "Next place.", does="move(1)"),
    _correct("up", "k,up", "Up", "Previous place.", does="move(-1)"),
    _correct("take", "space", "This one", "Take the place in, or leave it out.", show=True),
    _correct("all", "a", "All", "Take all places in, or none.", show=True),
    _correct("correct", "enter", "Correct", "Correct the places that are ticked, as one change.",
             show=True),
    _correct("open", "o", "Open", "Open the note at the place.", show=True),
    _correct("back", "q,escape", "Back", "Leave everything as it is.", show=True),
    _settings("down", "j,down", "Down", "Next setting.", does="move(1)"),
    _settings("up", "k,up", "Up", "Previous setting.", does="move(-1)"),
    _settings("left", "h,left", "Groups", "Go to the groups.", show=True),
    _settings("right", "l,right", "Fields", "Go to the settings of the group."),
    _settings("change", "enter", "Change", "Change the setting; yes and no turn around at once.",
              show=True),
    _settings("reset", "d,delete", "Default", "Take it out of your file: the default holds.",
              show=True),
    _settings("filter", "slash", "Filter", "Show all settings that fit what you type.", show=True),
    _settings("back", "q,escape", "Back", "Close the settings.", show=True),
)
# fmt: on


def actions(context: Context) -> tuple[Action, ...]:
    """Return the actions of one context, in the order of help."""
    return tuple(action for action in ACTIONS if action.context == context)


def bindings(context: Context) -> list[BindingType]:
    """Return the ``BINDINGS`` of the widget for `context`: its actions that have a key."""
    return [
        Binding(
            key=action.keys,
            action=action.call,
            description=action.title,
            tooltip=action.help,
            show=action.show,
            priority=action.priority,
            id=action.id,
        )
        for action in actions(context)
        if action.keys
    ]


def slash_commands() -> dict[str, Action]:
    """Return all slash commands with their actions, in the order of the table."""
    return {action.slash: action for action in ACTIONS if action.slash}


# One line only: a longer text that starts with `#` is Markdown with a heading.
_NOTE = re.compile(r"#\s*(?P<text>[^#\s].*)")
_COMMAND = re.compile(r"/(?P<name>\S*)(?:\s+(?P<argument>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed slash command with its argument."""

    action: Action
    argument: str


def parse_command(text: str) -> Command | None:
    """Parse a slash command; return None if `text` is a message.

    Anything that starts with a slash counts as a command and is never sent to a model; a space
    before the slash makes it a message. ``#text`` is short for ``/remember text``.

    Raises:
        UsageError: There is no such command; the hint names the closest one.
    """
    note = _NOTE.fullmatch(text.strip())
    if note is not None:
        return Command(slash_commands()["/remember"], note["text"])
    match = _COMMAND.fullmatch(text.rstrip())
    if match is None:
        return None
    known = slash_commands()
    name = "/" + match["name"].lower()
    if name in known:
        return Command(known[name], (match["argument"] or "").strip())
    near = get_close_matches(name, known, n=1, cutoff=0.6) or [
        command for command in known if command.startswith(name)
    ]
    hint = f"Did you mean {near[0]}?" if near else "/help lists all commands."
    raise UsageError(
        f"There is no command {clean_line(name)}.",
        f"{hint} Put a space before the slash to send it as a message.",
    )


def matching_commands(typed: str) -> list[Action]:
    """Return the commands that match `typed` (with its slash): by prefix, then by substring."""
    wanted = typed.lower()
    known = slash_commands()
    by_prefix = [action for name, action in known.items() if name.startswith(wanted)]
    part = wanted.removeprefix("/")
    rest = [
        action
        for name, action in known.items()
        if action not in by_prefix and part and (part in name or part in action.title.lower())
    ]
    return [*by_prefix, *rest]


_KEY_NAMES = {
    "slash": "/",
    "plus": "+",
    "minus": "-",
    "comma": ",",
    "full_stop": ".",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "question_mark": "?",
    "equals_sign": "=",
    "escape": "Esc",
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


def key_name(key: str) -> str:
    """Return a key's name as written in help: ``Ctrl+P``, ``F1``, ``j``, ``/``."""
    *modifiers, last = key.strip().split("+")
    if last in _KEY_NAMES:
        name = _KEY_NAMES[last]
    elif len(last) == 1:
        name = last.upper() if modifiers else last
    else:
        name = last.replace("_", " ").capitalize()
    return "+".join([*(modifier.capitalize() for modifier in modifiers), name])


def key_names(keys: str) -> str:
    """Return the names of all keys of an action, separated by spaces."""
    return " ".join(key_name(key) for key in keys.split(",") if key.strip())


def keys_of(action: Action, keymap: Mapping[str, str]) -> str:
    """Return the keys of an action after remapping."""
    return keymap.get(action.id, action.keys)


def check_keymap(wanted: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the user's valid key bindings by action id, and a problem per unknown id."""
    known = {action.id for action in ACTIONS if action.keys}
    keymap = {name: keys for name, keys in wanted.items() if name in known and keys.strip()}
    problems = [
        f"`ui.keys` names `{name}`, which is no action with a key (F1 shows all)."
        for name in wanted
        if name not in known
    ]
    return keymap, problems
