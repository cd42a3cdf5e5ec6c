"""Where examples and documents come from: rows of files, of the hub or of the packaged sample, made into tables."""
