"""The chat: conversation, prompt, and the slash commands of chat and memory.

`ChatPane` is what the main screen shows. A slash command is a row in
`kbtui.tui.actions.registry` and a function in `commands` or `memory_commands`, which sees the
pane as `host.ChatHost`; an action on a message is a function in `item_actions`. `items` and `cards`
are pieces of a conversation as lines of text and know no widget; `conversation` sends messages and
shows the events of a turn by `transcript`.
"""
