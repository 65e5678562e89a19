"""Chat models: the port that all are spoken to through, and what stands behind it.

Others use `port` (messages, tools, replies, estimates of tokens), `roles.ModelRegistry` (the model
of a role, and the choice of it) and `schema` (answers in a given shape). litellm is imported in the
background, by `litellm_model` only.
"""
