"""Agent: one turn of conversation, from context over tools to events.

Its public modules, the only ones that other packages import:

agent            `Agent`, which answers what the user says, and what it keeps of it (`Keeping`)
events           what a turn yields, for whoever shows it
attachments      how a message refers to a file
tools.base       what a tool is, of what it is made and what it is given (`ToolContext`)
tools.toolbox    `Toolbox` runs tools; `TOOLS` are the agent's own
tools.reading    how any tool reads an entry or a file
tools.searching  how any tool searches
tools.writing    how any tool writes, or proposes

Below them a turn is put together (context, turn, tool_rounds), and without a model answered from
what is known (offline_turn).
"""
