"""What is done without a model: plain functions over plain data, for messages in three languages.

`understand` reads a message: the facts worth keeping, the question, whether it is small talk, a
command, a hypothetical or a secret. `answer` chooses the lines that answer a question. `condensing`
shortens a conversation in its own words, `curate` finds what is doubled. No file is read, nothing
is written, no prompt is known here: whoever calls gathers the lines and does what comes out.
English, German and Spanish are told apart by their function words.
"""
