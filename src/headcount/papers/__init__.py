"""The four papers: their items, their own numbers, their claims, and the runs that test them."""
