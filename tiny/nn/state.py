"""Model state: tensors by name, and the files that hold them."""
from tiny.frontend.files import FormatError
from tiny.frontend.gguf import gguf_load
from tiny.frontend.safetensors import safe_load, safe_load_metadata, safe_save
from tiny.frontend.state import get_parameters, get_state_dict, load_state_dict, tar_extract, zip_extract
from tiny.frontend.torchfile import torch_load

__all__ = ["FormatError", "get_parameters", "get_state_dict", "gguf_load", "load_state_dict", "safe_load",
           "safe_load_metadata", "safe_save", "tar_extract", "torch_load", "zip_extract"]
