"""The real program, from outside: its commands in child processes, its app in a real terminal."""
