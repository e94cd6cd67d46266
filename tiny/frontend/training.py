"""Whether layers such as dropout act as in training: `Tensor.training`,
`Tensor.train()`, `Context(TRAINING=1)`.
"""
from tiny import config


def is_training() -> bool:
    """The setting TRAINING as it is now, here."""
    return bool(config.current().training)


class _Switch(type):
    """The type of Tensor, so that the class itself has a `training` to read and to set."""

    @property
    def training(cls) -> bool:
        return is_training()

    @training.setter
    def training(cls, value: bool) -> None:
        config.Context(TRAINING=int(value)).__enter__()     # from here on; a surrounding Context ends it


class Training(metaclass=_Switch):
    """The training switch of Tensor."""

    training = property(lambda self: is_training())

    @staticmethod
    def train(mode: bool = True) -> config.Context:
        """A context, or decorator, in which training mode is on: `with Tensor.train(): ...`"""
        return config.Context(TRAINING=int(mode))
