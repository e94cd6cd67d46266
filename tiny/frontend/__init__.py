"""What makes graphs: Tensor, its operations by subject, gradients, layers, model files, TinyJit."""
