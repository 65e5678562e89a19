"""Chat models: one port for all of them, and the implementations behind it.

Its public modules, the only ones that other packages import:

port           messages, tools, replies, the `ChatModel` protocol, token estimates
roles          `ModelRegistry`: resolves the model of each role
litellm_model  `LiteLLMModel`, every model but none; prices
model_errors   what went wrong with a model, for people
dialects       a model's thoughts, taken out of its text
schema         structured output: validation of tool arguments, and forcing an answer's shape
providers      the known providers, their endpoints and API keys
fetching       which models fit this machine, and downloading them: through Ollama, or from a hub
model_files    which files of a sentence-transformers model are needed, and which could run code

Only `litellm_model` imports litellm, and it does so in the background.
"""
