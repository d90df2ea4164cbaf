"""What operators of TVM are made of, for formats that lack them: each format chooses its own.

Extension operators have a decomposition themselves; these have not, since TVM's compiler needs
none.
"""

from __future__ import annotations
