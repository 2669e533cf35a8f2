"""What every room stands on: errors, files, names, options, registries, text. Needs no torch."""
