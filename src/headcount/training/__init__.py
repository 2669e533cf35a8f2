"""Fine-tune, pre-train and evaluate, on transformers' Trainer and accelerate."""
