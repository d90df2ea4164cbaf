"""The contract of a format, and the table of formats."""

from serde.bridge.contract import AnyBridge as AnyBridge
from serde.bridge.contract import Bridge as Bridge
from serde.bridge.contract import ReadOnlyBridge as ReadOnlyBridge
from serde.bridge.contract import WriteOnlyBridge as WriteOnlyBridge
from serde.bridge.formats import FORMATS as FORMATS
from serde.bridge.formats import PIVOT as PIVOT
from serde.bridge.formats import format_names as format_names
from serde.bridge.formats import get_bridge as get_bridge
from serde.bridge.formats import source_bridge as source_bridge
from serde.bridge.formats import target_bridge as target_bridge
from serde.bridge.options import ExportOptions as ExportOptions
from serde.bridge.options import ImportOptions as ImportOptions
from serde.bridge.options import bind_options as bind_options
from serde.bridge.summary import ModelSummary as ModelSummary
from serde.bridge.summary import ServedFile as ServedFile
from serde.bridge.summary import TensorNames as TensorNames
from serde.bridge.summary import TensorSummary as TensorSummary
