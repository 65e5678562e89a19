"""Other programs' files, one file a source; each reads, and says what it could not read.

On the port of `port`: `claude`, `chatgpt`, `claude_code`, `codex`, `gemini`, `sharegpt`, `nanobot`,
`notion`, `evernote`, `markdown_folder`. `engine` finds the importer of an export, previews it and
brings it in, `remembering` makes memory of it; `named` is what a person may name, `telling` how
both faces say what came of it. `opened`, `json_stream`, `reading`, `records` and `markup` are what
they read with.
nanobot: `nanobot_workspace` takes over a whole workspace and reports it, `nanobot_sessions` reads
its conversations where they lie, `nanobot_settings` gives its memory settings by our names. Nothing
here decides when to import: commands and migration do.
"""
