"""One page of results: records, masks, matrices and traces in a single HTML file.

`walk` reads files, `subjects` puts together what is about one model on one task, each other module
makes the data of one view, `gather` has all of it, and `build` puts data, style and scripts into
one file.
Nothing here imports torch.
"""
