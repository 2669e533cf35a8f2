"""What heads do on data: where they look, what others could do in their place, what they cost."""
