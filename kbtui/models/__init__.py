"""Chat models: the port that all are spoken to through, and what stands behind it.

Its public modules, the only ones that other packages import:

port       messages, tools, replies, what a `ChatModel` can do, estimates of tokens
roles      `ModelRegistry`: the model of a role, and the choice of it; what it costs, and what went
           wrong with one, in words
schema     answers in a given shape
providers  the services that are known, their keys, and where they are
fetching   which models fit this machine, and fetching one

litellm is imported in the background, by `litellm_model` only.
"""
