"""Tables for people: what a result looks like on a terminal, in a file or a notebook."""
