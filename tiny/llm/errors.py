"""What goes wrong with a model file or a request, in one line for the person who asked."""


class ModelError(ValueError):
    """A model cannot be loaded or asked as wanted. The message names the file or value, and the way out."""
