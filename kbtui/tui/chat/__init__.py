"""What a conversation looks like and how it runs, apart from the widgets that show it."""
