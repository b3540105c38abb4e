"""Tables in files, for the command line: formats, batches one by one, outputs that appear whole or not at all."""
