"""One run: what is asked, of what, and its record."""
