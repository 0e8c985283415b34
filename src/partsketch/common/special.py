"""Special functions of SciPy, loaded when one is first called.

Loading them takes longer than a fit of some ten thousand rows, and an exact fit needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _late(name: str) -> Callable[..., Any]:
    def called(*arguments: Any, **named: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*arguments, **named)

    return called


betaincinv = _late("betaincinv")
chdtrc = _late("chdtrc")
chdtri = _late("chdtri")
chndtrix = _late("chndtrix")
digamma = _late("digamma")
fdtrc = _late("fdtrc")
fdtri = _late("fdtri")
gammaincinv = _late("gammaincinv")
gammaln = _late("gammaln")
log_ndtr = _late("log_ndtr")
ncfdtri = _late("ncfdtri")
ndtri = _late("ndtri")
polygamma = _late("polygamma")
stdtrit = _late("stdtrit")
