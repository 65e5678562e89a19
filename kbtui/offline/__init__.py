"""What is done without a model: plain functions over plain data.

`message` says what kind of thing a message is, by its shape and by the lists of its language, which
is a file in ``languages/``. `lines` cuts a note into what can be quoted, `names` finds the names in
it, `answer` chooses the lines that answer a question, `condensing` shortens a conversation in its
own words. No note is read and nothing is written here, and no prompt is known: who calls gathers
the lines and does what comes out.
"""
