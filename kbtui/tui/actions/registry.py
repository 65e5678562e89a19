"""Everything that can be done in the app: one table, in the order in which it is explained.

Key bindings, command palette, help, slash commands and their documentation are all made from
`ACTIONS`, so they can't disagree. Two things carry a row out:

- a key or the palette: ``action_<method>`` of the widget that shows the context and has
  ``BINDINGS = bindings(context)``, as Textual has it;
- a slash command: the function beside it in a table `COMMANDS`: of `kbtui.tui.chat.commands`
  (context ``chat``), `kbtui.tui.chat.memory_commands` (``memory``), `kbtui.tui.chat.item_actions`
  (``transcript``) or `kbtui.tui.app.app` (``global``).

A person remaps a key by the id of its action: ``ui.keys = {"notes.edit" = "e,f12"}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Literal, cast, get_args

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.binding import Binding, BindingType
from textual.keys import Keys

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
    "inbox",
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
    "editor": "Editing an entry",
    "history": "History",
    "past": "Back in time",
    "search": "Search",
    "switcher": "Open",
    "memory": "Memory",
    "facts": "What is remembered",
    "inbox": "Inbox",
    "settings": "Settings",
}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done.

    `keys` are in Textual's form, separated by commas, and empty where only the palette or a slash
    command leads there. `slash` is the command with its slash; `usage` the arguments that it takes,
    in angle brackets where it can't do without. `show` puts it into the line of hints at the
    bottom; `priority` lets it work in any dialog, or before what the focused part does with the
    key. One that is `partial` holds for some things only (`check_action` says for which), and
    elsewhere its key does what a later row says. `does` calls a method that several rows share;
    else the method is named as the row.
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

    @property
    def call(self) -> str:
        """What is carried out, as Textual's bindings say it."""
        return self.does or self.method

    @property
    def id(self) -> str:
        """The name by which a person changes its keys."""
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
_inbox = partial(Action, "inbox")
_settings = partial(Action, "settings")

# fmt: off
ACTIONS: tuple[Action, ...] = (
    _everywhere("help", "f1", "Help", "Show every key and command.", "/help", "[word]", show=True,
                priority=True),
    _everywhere("keys_here", "question_mark", "Keys here",
                "Show the keys of the pane where you are, while you aren't typing."),
    _everywhere("chat", "f2", "Chat", "Go to the chat, with the cursor in the prompt.", show=True,
                priority=True),
    _everywhere("notes", "f3", "Notes", "Go to your notes.", show=True, priority=True),
    _everywhere("history", "f4", "History", "Look through all changes; undo or restore any.",
                show=True, priority=True),
    _everywhere("open", "f5", "Open",
                "Find an entry by name and open it; make it if there is none.", "/open", "[name]",
                show=True, priority=True),
    _everywhere("inbox", "f6", "Inbox", "Decide on changes of your notes that were proposed.",
                "/inbox", show=True, priority=True),
    _everywhere("search", "f7", "Search", "Search entries, memory and documents.", "/search",
                "[words]", show=True, priority=True),
    _everywhere("palette", "f8,ctrl+p", "Commands",
                "Find any command by typing a part of its name.", show=True, priority=True),
    _everywhere("zoom", "f9", "Zoom", "Give the focused pane the whole screen, and back.",
                priority=True),
    _everywhere("border_left", "ctrl+left", "Border left",
                "Move the border between two panes to the left; in text: a word back.",
                does="border('left')"),
    _everywhere("border_right", "ctrl+right", "Border right", "Move that border to the right.",
                does="border('right')"),
    _everywhere("border_up", "ctrl+up", "Border up",
                "Move the border between the notes and the note up.", does="border('up')"),
    _everywhere("border_down", "ctrl+down", "Border down", "Move that border down.",
                does="border('down')"),
    _everywhere("next_pane", "tab", "Next pane", "Move the focus on.", does="focus_next"),
    _everywhere("previous_pane", "shift+tab", "Previous pane", "Move the focus back.",
                does="focus_previous"),
    _everywhere("escape", "escape", "Step back",
                "Close a popup, then stop the answer, then go to the prompt."),
    _everywhere("interrupt", "ctrl+c", "Copy, stop or clear",
                "Copy the selection, else stop the answer, else clear the prompt; "
                "again at once: quit.",
                priority=True),
    _everywhere("suspend", "ctrl+z", "Suspend",
                "Put kbtui into the background (`fg` brings it back).", does="suspend_process"),
    _everywhere("at", "", "Time travel", "Look at everything as it was at a date or a change.",
                "/at", "[date or revision]"),
    _everywhere("browse", "", "Browse a repository",
                "Look at the history of any git repository, without writing into it.", "/browse",
                "[folder]"),
    _everywhere("workspaces", "ctrl+o", "Workspaces",
                "Go to another workspace, with its own notes, search and history.", "/workspaces",
                "[folder]", priority=True),
    _everywhere("theme", "", "Theme", "Change the colours.", "/theme", "[name]"),
    _everywhere("keys", "", "Keys", "Show every key, and how to change one.", "/keys"),
    _everywhere("config", "", "Settings", "Show every setting, where it is set, and change it.",
                "/config"),
    _everywhere("doctor", "", "Doctor", "Check workspace, history, search and models.", "/doctor"),
    _everywhere("tasks", "", "Tasks",
                "Show what runs in the background and how long it will take; stop it.", "/tasks"),
    _everywhere("quit", "ctrl+q", "Quit", "Leave kbtui; the draft is kept.", "/quit",
                priority=True),
    _chat("new", "", "New session", "Start a conversation with a clean slate.", "/new", "[title]"),
    _chat("sessions", "", "Sessions", "Choose among all conversations.", "/sessions"),
    _chat("resume", "", "Resume a session", "Go on with a conversation, by a part of its title.",
          "/resume", "[title]"),
    _chat("rename", "", "Rename the session", "Give this conversation a title.", "/rename",
          "<title>"),
    _chat("model", "", "Model", "Show or change the model that answers.", "/model", "[name]"),
    _chat("context", "", "Context", "Show what the model is given, and what it weighs.",
          "/context"),
    _chat("cost", "", "Cost", "Show tokens and money of this session, and the day's.", "/cost"),
    _chat("export", "", "Export the session", "Write this conversation into a Markdown file.",
          "/export", "[file]"),
    _prompt("send", "enter", "Send", "Send the message; while an answer is coming, queue it.",
            show=True),
    _prompt("newline", "ctrl+j,shift+enter,alt+enter", "New line",
            "Start a new line (as does `\\` before Enter).", show=True),
    _prompt("previous", "up", "Earlier input",
            "On the first line: bring back what was sent before.", show=True),
    _prompt("next", "down", "Later input", "On the last line: go forward again."),
    _prompt("find", "ctrl+r", "Search input", "Search what was sent before."),
    _prompt("complete", "tab", "Complete", "Complete a /command or an @entry; elsewhere, move on."),
    _prompt("editor", "ctrl+x", "Editor", "Ctrl+X Ctrl+E: write the message in $EDITOR.",
            "/editor"),
    _prompt("quit", "ctrl+d", "Delete or quit",
            "Delete the next character; in an empty prompt, quit."),
    _transcript("mark_past", "r", "Mark as past",
                "On an earlier line: strike it out, with a pointer to what you said now.",
                partial=True, does="act('mark_past')"),
    _transcript("next", "j,down", "Next message", "Select the next message or card."),
    _transcript("previous", "k,up", "Previous message", "Select the one before."),
    _transcript("first", "g,home", "First message", "Go to the first message shown."),
    _transcript("last", "G,end", "Last message", "Go to the last message."),
    _transcript("expand", "enter", "Expand",
                "Show or hide details; open what is on the line, or keep what isn't kept.",
                show=True, does="act('expand')"),
    _transcript("keep", "", "Keep it", "Keep the message in today's journal after all.", "/keep"),
    _transcript("copy", "y", "Copy", "Copy the message as Markdown.", "/copy", show=True,
                does="act('copy')"),
    _transcript("copy_code", "Y", "Copy code", "Copy the code blocks of the message.",
                does="act('copy_code')"),
    _transcript("edit", "e", "Edit and resend",
                "Take the message back into the prompt and go on from there.", show=True,
                does="act('edit')"),
    _transcript("retry", "r", "Retry", "Ask for another answer.", "/retry", show=True,
                does="act('retry')"),
    _transcript("save", "s", "Save as entry", "Keep the message as an entry.", show=True,
                does="act('save')"),
    _transcript("open", "o", "Open citation", "Open the line cited, or the entry written.",
                show=True),
    _transcript("undo", "u", "Undo the turn", "Take back all that this turn changed in the notes.",
                does="act('undo')"),
    _notes("down", "j", "Down", "Move down."),
    _notes("up", "k", "Up", "Move up."),
    _notes("left", "h", "Fold", "Fold the category, or go up to it."),
    _notes("right", "l", "Unfold", "Unfold the category, or go into the entry."),
    _notes("open", "enter", "Open", "Open the entry or the link.", show=True),
    _notes("outline", "o", "Outline", "Show the headings of the entry, and go to one."),
    _notes("preview", "K", "Preview",
           "Show where the links of the line lead, without going there."),
    _notes("tick", "space", "Tick",
           "In the entry: tick the task under the cursor, or unfold; elsewhere: a page down."),
    _notes("filter", "slash", "Filter", "Show only entries that match.", show=True),
    _notes("new", "n", "New", "Make an entry.", show=True),
    _notes("save", "s", "Make an entry",
           "On a name: make an entry of the lines that have it; in a conversation: of the message.",
           partial=True),
    _notes("edit", "e", "Edit", "Edit the entry here.", show=True),
    _notes("edit_outside", "E", "Edit in $EDITOR", "Edit the entry in your editor."),
    _notes("rename", "R", "Rename", "Rename the entry and repair all links to it.", show=True),
    _notes("move", "m", "Move", "Move the entry to another category; links are repaired."),
    _notes("delete", "d", "Delete", "Delete the entry (can be undone)."),
    _notes("backlinks", "b", "Links", "Show what links here and where this links."),
    _notes("link_mentions", "L", "Link mentions",
           "Make links of the places where other notes say the name of this one."),
    _notes("tags", "t", "Tags", "Show all tags and how many entries have each; search for one."),
    _notes("tasks", "T", "Tasks", "Show the tasks of all notes that aren't done, and go to one."),
    _notes("map", "g", "Map", "Show what links to the entry and what it links to, and walk there.",
           priority=True),
    _notes("ask", "a", "Ask about it", "Put a reference to the entry into the prompt."),
    _notes("history", "H", "History of it", "Show every change of this entry.", show=True),
    _notes("why", "w", "Why", "Show who wrote the line, and from which messages.", show=True),
    _notes("authors", "W", "Authors", "Say beside each line who wrote it, and how long ago."),
    _notes("undo", "u", "Undo last change", "Undo the last change of this entry."),
    _notes("back", "[,backspace", "Back", "Return to the entry shown before."),
    _notes("forward", "]", "Forward", "Go on again after going back."),
    _map("left", "left,h", "Left", "Go to what is at the left.", does="walk(-1, 0)"),
    _map("right", "right,l", "Right", "Go to what is at the right.", does="walk(1, 0)"),
    _map("up", "up,k", "Up", "Go up.", does="walk(0, -1)"),
    _map("down", "down,j", "Down", "Go down.", does="walk(0, 1)"),
    _map("middle", "enter", "Into the middle",
         "Bring the note into the middle; unfold a group; open what is in the middle.", show=True),
    _map("open", "o", "Open", "Open the note.", show=True),
    _map("before", "backspace,[", "Before", "Bring back what was in the middle before.",
         show=True),
    _map("find", "slash", "Find", "Find a note of the map by its name.", show=True),
    _map("more", "plus", "Steps", "Show what is a step further, up to three.", show=True,
         does="step(1)"),
    _map("fewer", "minus", "Fewer steps", "Show a step less.", does="step(-1)"),
    _map("save", "s", "Save as picture", "Write the whole map as SVG into the current folder.",
         show=True),
    _map("back", "escape,q,g", "Leave", "Leave the map.", show=True),
    _editor("save", "ctrl+s", "Save", "Save the entry; the change can be undone in the history.",
            show=True),
    _editor("find", "ctrl+f", "Find", "Find in the text, and replace.", show=True),
    _editor("find_next", "ctrl+g", "Find next", "Go to the next place of what is looked for."),
    _editor("replace_all", "ctrl+r", "Replace all",
            "Replace every place of what is looked for; Ctrl+Z takes it back."),
    _editor("close", "escape", "Close", "Stop editing; asks where something is not saved.",
            show=True),
    _history("down", "j,down", "Down", "Next change.", does="move(1)"),
    _history("up", "k,up", "Up", "Previous change.", does="move(-1)"),
    _history("open", "enter", "Diff", "Show what the change did.", show=True),
    _history("next_hunk", "n", "Next hunk", "Go to the next changed place.", does="hunk(1)"),
    _history("previous_hunk", "N", "Previous hunk", "Go to the changed place before.",
             does="hunk(-1)"),
    _history("raw", "p", "As a patch", "Show what changed as the files have it."),
    _history("less_context", "{", "Less context", "Show fewer unchanged lines.",
             does="context(-1)"),
    _history("more_context", "}", "More context", "Show more unchanged lines.", does="context(1)"),
    _history("side_by_side", "s", "Side by side", "Show before and after beside each other."),
    _history("copy", "y", "Copy id", "Copy the id of the commit."),
    _history("copy_patch", "Y", "Copy patch", "Copy what the change did as a patch."),
    _history("why", "w", "Why", "Show what the changed place was made from: the messages."),
    _history("undo", "u", "Undo this", "Undo exactly this change; later ones stay.", show=True),
    _history("undo_hunk", "U", "Undo this place", "Undo only the changed place shown."),
    _history("undo_group", "A", "Undo all of it",
             "Undo the whole turn or batch that it belongs to."),
    _history("restore", "R", "Restore file", "Bring the entry back to how it was at this point.",
             show=True),
    _history("restore_all", "B", "Back to before",
             "Bring everything back to how it was before this change; shows it first."),
    _history("time_travel", "T", "Time travel", "Look at everything as it was after this change.",
             show=True),
    _history("year", "h", "Year", "Show a year as days, the fuller the more was written.",
             show=True),
    _history("filter", "slash", "Filter", "Show only changes that match.", show=True),
    _history("back", "q,escape", "Back", "Close the history.", show=True),
    _past("now", "T,escape", "Back to now", "Leave the past.", show=True, does="want('now')"),
    _past("earlier", "comma", "Earlier", "Go back by one change.", show=True,
          does="want('earlier')"),
    _past("later", "full_stop", "Later", "Go on by one change.", show=True, does="want('later')"),
    _past("day_before", "less_than_sign", "Day before", "Go back to the end of the day before.",
          does="want('day before')"),
    _past("day_after", "greater_than_sign", "Day after", "Go on to the end of the next day.",
          does="want('day after')"),
    _past("restore", "R", "Restore entry", "Make the entry what it was then.", show=True,
          does="want('restore')"),
    _past("compare", "c", "Compare with now", "Show what changed in the entry since.", show=True,
          does="want('compare')"),
    _past("search", "s", "Search then", "Search what was there then.", show=True),
    _search("down", "down", "Down", "Next hit.", does="move(1)"),
    _search("up", "up", "Up", "Previous hit.", does="move(-1)"),
    _search("open", "enter", "Open", "Open the hit at its line.", show=True),
    _search("scope", "ctrl+t", "Elsewhere",
            "Search notes, memory, documents, conversations or all.", show=True),
    _search("save", "ctrl+s", "Save search",
            "Keep this search where nothing is typed yet; once more lets go of it.", show=True),
    _search("back", "escape", "Back", "Close the search.", show=True),
    _switcher("down", "down", "Down", "Next entry.", does="move(1)"),
    _switcher("up", "up", "Up", "Previous entry.", does="move(-1)"),
    _switcher("open", "enter", "Open", "Open the entry, or make one of that name.", show=True),
    _switcher("back", "escape", "Back", "Close without opening anything.", show=True),
    _memory("remember", "", "Remember",
            "Keep a fact in MEMORY.md, which every prompt holds (as does `#` before it).",
            "/remember", "<text>"),
    _memory("forget", "", "Forget",
            "Take out what memory and entries say about something, after a look at it.", "/forget",
            "<text>"),
    _memory("memory", "", "Memory",
            "Show what every prompt holds and weighs, and what is remembered, line by line.",
            "/memory"),
    _memory("compact", "", "Condense the session",
            "Condense this conversation into archive, memory and entries now.", "/compact"),
    _memory("dream", "", "Dream", "Curate memory and entries with what is new in the archive.",
            "/dream", "[--dry-run]"),
    _memory("dream_log", "", "What Dream did", "Show the last change of Dream's, or the one named.",
            "/dream-log", "[sha]"),
    _memory("dream_restore", "", "Undo what Dream did",
            "Go back to before a change of Dream's, or undo only that one; shows it first.",
            "/dream-restore", "[sha]"),
    _memory("sync", "", "Sync",
            "Bring this knowledge base and another machine's together; `stop` ends that.", "/sync",
            "[place]"),
    _memory("import", "", "Import",
            "Bring in what another program exported, or a document; shows first what it is. `stop` "
            "ends an import, `undo` takes the last one back.", "/import", "[path]"),
    _memory("audit", "", "Audit", "Account for every message of every session.", "/audit"),
    _memory("today", "", "Today's note", "Open the note of today.", "/today"),
    _memory("journal", "", "Journal",
            "Say where what you state is kept: in notes of its `own`, or in your `daily` notes.",
            "/journal", "[own or daily]"),
    _memory("tag", "", "Tag", "Add tags to the entry that is open; `-name` takes one away.", "/tag",
            "<names>"),
    _facts("down", "j,down", "Down", "Next line.", does="move(1)"),
    _facts("up", "k,up", "Up", "Previous line.", does="move(-1)"),
    _facts("edit", "e", "Edit", "Change what the line says.", show=True),
    _facts("forget", "d", "Forget", "Forget it, after a look at all that says it.", show=True),
    _facts("why", "w", "Why", "Show who wrote the line, and from which messages.", show=True),
    _facts("open", "enter,o", "Open", "Open the memory at the line.", show=True),
    _facts("back", "q,escape", "Back", "Close it.", show=True),
    _inbox("down", "j,down", "Next proposal", "Go to the next proposal.", does="move(1)"),
    _inbox("up", "k,up", "Previous proposal", "Go to the proposal before.", does="move(-1)"),
    _inbox("next_hunk", "n", "Next place", "Go to the next place that would be changed.",
           show=True, does="hunk(1)"),
    _inbox("previous_hunk", "N", "Place before", "Go to the place before.", does="hunk(-1)"),
    _inbox("raw", "p", "As a patch", "Show what would change as the files have it."),
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
    """The actions of one context, in the order in which they are explained."""
    return tuple(action for action in ACTIONS if action.context == context)


def bindings(context: Context) -> list[BindingType]:
    """The ``BINDINGS`` of whoever shows `context`; actions without a key are left out."""
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
    """Every slash command with its action, in the order of the table."""
    return {action.slash: action for action in ACTIONS if action.slash}


# One line only: a longer text that begins so is Markdown with a heading.
_NOTE = re.compile(r"#\s*(?P<text>[^#\s].*)")
_COMMAND = re.compile(r"/(?P<name>\S*)(?:\s+(?P<argument>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command with what followed it."""

    action: Action
    argument: str


def parse_command(text: str) -> Command | None:
    """Read what was typed as a command; None when it is a message.

    Everything that begins with a slash is meant as a command, and never goes to a model; a blank
    before the slash makes it a message. ``#text`` is short for ``/remember text``.

    Raises:
        UsageError: there is no such command; the hint names the nearest.
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
    """The commands that `typed` (with its slash) can become: by beginning, then by any part."""
    wanted = typed.lower()
    known = slash_commands()
    beginning = [action for name, action in known.items() if name.startswith(wanted)]
    part = wanted.removeprefix("/")
    rest = [
        action
        for name, action in known.items()
        if action not in beginning and part and (part in name or part in action.title.lower())
    ]
    return [*beginning, *rest]


_NAMES = {
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
    "escape": "Esc",
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


def teach_alt_enter() -> None:
    r"""Let Alt+Enter start a new line in terminals that send it as ``ESC CR``.

    Textual reads that as Escape or as Enter; either would surprise in the middle of a text.
    """
    sequences = cast("dict[str, object]", ANSI_SEQUENCES_KEYS)
    sequences["\x1b\r"] = (Keys.ControlJ,)


def key_name(key: str) -> str:
    """One key as it is written on keyboards and in help: ``Ctrl+P``, ``F1``, ``j``, ``/``."""
    *modifiers, last = key.strip().split("+")
    if last in _NAMES:
        name = _NAMES[last]
    elif len(last) == 1:
        name = last.upper() if modifiers else last
    else:
        name = last.replace("_", " ").capitalize()
    return "+".join([*(modifier.capitalize() for modifier in modifiers), name])


def key_names(keys: str) -> str:
    """All keys of an action, the first first."""
    return " ".join(key_name(key) for key in keys.split(",") if key.strip())


def keys_of(action: Action, keymap: Mapping[str, str]) -> str:
    """The keys that an action really has."""
    return keymap.get(action.id, action.keys)


def checked_keymap(wanted: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Take over a person's own keys by action id, and say which ids don't exist."""
    known = {action.id for action in ACTIONS if action.keys}
    keymap = {name: keys for name, keys in wanted.items() if name in known and keys.strip()}
    problems = [
        f"`ui.keys` names `{name}`, which is no action with a key (F1 shows all)."
        for name in wanted
        if name not in known
    ]
    return keymap, problems
