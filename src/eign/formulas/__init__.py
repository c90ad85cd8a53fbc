"""The paper's mathematics as pure torch functions: tensors in, tensors out, broadcasting, differentiable."""
