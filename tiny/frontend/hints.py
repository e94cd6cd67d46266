"""What to write instead of a name that PyTorch has and tiny has not, for the error about it.

docs/frontend.md has the same as a table, with an example.
"""

TENSOR = {
    "cuda": '.to("AMD"), or DEV=AMD for all tensors',
    "cpu": '.to("CPU")',
    "add_": "x += y",
    "sub_": "x -= y",
    "mul_": "x *= y",
    "div_": "x /= y",
    "copy_": ".assign(y)",
    "zero_": ".assign(x.zeros_like())",
    "fill_": ".assign(x.full_like(value))",
    "register_hook": ".gradient(x), which gives gradients as tensors",
    "data_ptr": ".numpy(), or Tensor.from_blob for memory that exists",
    "is_contiguous": ".contiguous(), which costs nothing where there is nothing to do",
    "mT": ".transpose(-1, -2)",
}
_METHOD = "activations are methods: Tensor.{}, also in nn.Sequential, which takes functions"
NN = {
    "Module": "any class that holds Tensors and layers; nn.state.get_parameters(model) collects them",
    "Parameter": "a Tensor with requires_grad=True",
    "functional": "methods of Tensor: x.relu(), x.softmax(), x.cross_entropy(labels)",
    "Flatten": "Tensor.flatten: x.flatten(1), in nn.Sequential lambda x: x.flatten(1)",
    "MaxPool2d": "x.max_pool2d(2), in nn.Sequential lambda x: x.max_pool2d(2)",
    "AvgPool2d": "x.avg_pool2d(2), in nn.Sequential lambda x: x.avg_pool2d(2)",
    "CrossEntropyLoss": "x.cross_entropy(labels)",
    "MSELoss": "x.mse_loss(wanted)",
    "NLLLoss": "x.nll_loss(labels)",
    "BCELoss": "x.binary_cross_entropy(wanted)",
    "BCEWithLogitsLoss": "x.binary_cross_entropy_with_logits(wanted)",
    **{name: _METHOD.format(name.lower()) for name in
       ("ReLU", "GELU", "SiLU", "Sigmoid", "Tanh", "Softmax", "ELU", "Mish", "ReLU6", "Softplus")},
}
PACKAGE = {
    "tensor": "Tensor(...)",
    "from_numpy": "Tensor(array)",
    "manual_seed": "Tensor.manual_seed(seed)",
    "no_grad": "nothing: only backward() computes gradients; .detach() keeps them from a tensor",
    "inference_mode": "nothing: only backward() computes gradients; .detach() keeps them from a tensor",
    "compile": "TinyJit",
    "cuda": 'Tensor.to("AMD"), or DEV=AMD for all tensors',
    "optim": "tiny.nn.optim",
    "save": "nn.state.safe_save(nn.state.get_state_dict(model), file)",
    "load": "nn.state.torch_load(file), or safe_load for .safetensors",
    **{name: f"Tensor.{name}(...)" for name in
       ("zeros", "ones", "full", "arange", "linspace", "eye", "rand", "randn", "randint", "randperm", "cat",
        "stack", "einsum", "where")},
}


def missing(owner: str, name: str, table: dict[str, str], of: object) -> AttributeError:
    """The error about an attribute that is not there, with what to write instead if the table knows it."""
    hint = f"; write {table[name]}" if name in table else ""
    return AttributeError(f"{owner} has no attribute {name!r}{hint}", name=name, obj=of)
