"""One page of what a study found: records, masks, matrices and traces into a single HTML file.

`walk` finds files, `subjects` puts together what is about one model on one task, the other modules
each make one part of the data of the page, `build` puts data, style and scripts into one file.
Nothing here imports torch.
"""
