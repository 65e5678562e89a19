"""The agent: running one turn of conversation, from context through tools to events.

Its public modules, the only ones that other packages import:

agent            `Agent`, which answers messages
events           the events a turn yields to whatever displays it
keeping          `Keeping`, which stores statements
attachments      references to files in messages
tools.base       the tool interface, and what a tool is given (`ToolContext`)
tools.toolbox    `Toolbox`, which runs tools; `own_tools`, the agent's
tools.reading    reading of entries and files by tools
tools.searching  searching by tools
tools.writing    writing and proposing by tools

Internally a turn is assembled and run by context, turn and tool_rounds, or without a model by
offline_turn, which quotes the notes.
"""
