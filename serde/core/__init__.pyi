"""The ground, which knows no format and no graph: weights, limits, reports, texts, the system.

What most modules elsewhere need of it they import from here; each name is loaded when it is used.
"""

from serde.core.allocation import (
    arange as arange,
    full as full,
    iterations as iterations,
    ones as ones,
    zeros as zeros,
)
from serde.core.garbage_collection import pause_garbage_collection as pause_garbage_collection
from serde.core.limits import (
    CHUNK_BYTES as CHUNK_BYTES,
    MAX_ARCHIVE_MEMBERS as MAX_ARCHIVE_MEMBERS,
    MAX_ARCHIVE_RATIO as MAX_ARCHIVE_RATIO,
    MAX_GRAPH_TEXT_BYTES as MAX_GRAPH_TEXT_BYTES,
    MAX_NAME_BYTES as MAX_NAME_BYTES,
    MAX_NESTING as MAX_NESTING,
    MAX_PROTOBUF_BYTES as MAX_PROTOBUF_BYTES,
    MAX_RANK as MAX_RANK,
    MAX_TENSORS as MAX_TENSORS,
    budget as budget,
    current_limits as current_limits,
)
from serde.core.optional import (
    is_installed as is_installed,
    require as require,
    require_installed as require_installed,
)
from serde.core.outcome import error_message as error_message, exit_code as exit_code
from serde.core.parsing import parse_json as parse_json
from serde.core.progress import counting as counting, expect as expect
from serde.core.records import (
    asdict as asdict,
    dataclass as dataclass,
    field as field,
    fields as fields,
    replace as replace,
)
from serde.core.report import (
    Issue as Issue,
    OutputVerdict as OutputVerdict,
    Report as Report,
    Table as Table,
)
from serde.core.texts import (
    near_names as near_names,
    printable as printable,
    shown as shown,
    size_text as size_text,
)
from serde.core.weights import (
    Array as Array,
    ArrayWeight as ArrayWeight,
    FileRange as FileRange,
    FileWeight as FileWeight,
    OpenFile as OpenFile,
    Weight as Weight,
    dtype_name as dtype_name,
    numpy_dtype as numpy_dtype,
)
