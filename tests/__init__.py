"""The tests of kbtui; each folder mirrors one of the program."""
