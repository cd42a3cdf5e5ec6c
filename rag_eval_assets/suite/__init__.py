"""What is evaluated: the YAML suite file, its strict models, and how suites are found and named."""
