"""Chat models: the port that all are spoken to through, and what stands behind it.

Others use `port` (messages, tools, replies), `roles.ModelRegistry` (the model of a role, and the
choice of it), `tokens` (estimates), `transcript` (others' texts in prompts) and `schema` (checked
arguments of tools). litellm is imported in the background, by `litellm_model` only.
"""
