"""All that touches a transformers model: find heads, gate, capture, remove, save, load, export."""
