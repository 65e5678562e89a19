"""Language processing without a model: pure functions over plain data.

`message` classifies a message by its shape and the word lists of its language (a file in
``languages/``). `lines` splits a note into quotable lines, `names` finds the names in it, `answer`
chooses the lines that answer a question, `condensing` makes an extractive summary of a
conversation. Nothing is read or written here: callers gather the lines and act on the results.
"""
