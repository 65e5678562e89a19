"""A conversation on the screen: its pieces as lines of text, and what sends and shows turns.

`items`, `cards` and `written` are pieces of a conversation and know no widget; `flow_view` and
`transcript` draw them; `conversation` sends messages and `turn_view` shows the events of a turn.
"""
