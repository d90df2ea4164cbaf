"""The contract of a format, and the table of formats."""

from serde.bridge.contract import (
    AnyBridge as AnyBridge,
    Bridge as Bridge,
    ReadOnlyBridge as ReadOnlyBridge,
    WriteOnlyBridge as WriteOnlyBridge,
)
from serde.bridge.formats import (
    FORMATS as FORMATS,
    PIVOT as PIVOT,
    format_names as format_names,
    get_bridge as get_bridge,
    source_bridge as source_bridge,
    target_bridge as target_bridge,
)
from serde.bridge.options import (
    ExportOptions as ExportOptions,
    ImportOptions as ImportOptions,
    bind_options as bind_options,
)
from serde.bridge.summary import (
    ModelSummary as ModelSummary,
    ServedFile as ServedFile,
    TensorNames as TensorNames,
    TensorSummary as TensorSummary,
)
