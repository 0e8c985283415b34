"""Least squares on partitioned data, with the error known before and after the fit."""

import lazy_loader

from partsketch._version import __version__ as __version__

# Names are loaded when first used, from where `__init__.pyi` has them: the command line answers --help without
# importing scikit-learn or compiling.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
