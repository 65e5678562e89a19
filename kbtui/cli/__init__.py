"""What a script sees: commands over the knowledge base, with no logic of their own."""
