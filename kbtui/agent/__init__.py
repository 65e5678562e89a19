"""Agent: one turn of conversation, from context over tools to events.

Others use `agent.Agent.turn` and the events that it yields (`events`); `tools` holds what a model
may ask for, `keeping` keeps what was stated, `offline_turn` answers without a model.
"""
