"""What recommenders learn from: features of clicks, fitted once, the same in training and in serving."""
