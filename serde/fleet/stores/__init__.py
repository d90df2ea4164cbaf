"""Models that lie elsewhere: stores that ``fsspec`` reaches, and archives that hold a model.

:mod:`serde.fleet.stores.listing` finds sources, :mod:`serde.fleet.stores.staging` brings them to
local disk, :mod:`serde.fleet.stores.archives` looks into archives of SageMaker and
of model servers, and :mod:`serde.fleet.stores.publishing` writes to a store.
"""

from __future__ import annotations
