"""The cassette: recorded calls as a folder of text that a team commits, reviews and merges."""
