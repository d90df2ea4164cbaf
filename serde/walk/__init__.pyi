"""What every bridge shares: tables of converters, contexts, and both walks.

What most modules elsewhere need of it they import from here; each name is loaded when it is used.
"""

from serde.walk.holes import Hole as Hole, Incomplete as Incomplete, Placeholder as Placeholder
from serde.walk.pairs import one_of as one_of, pair as pair, reads as reads, writes as writes
from serde.walk.scope import Scope as Scope
from serde.walk.takes import (
    AXES as AXES,
    CONSTANT as CONSTANT,
    FLOATS as FLOATS,
    SIGNED as SIGNED,
    Takes as Takes,
    at as at,
    dtypes as dtypes,
    like as like,
    ranks as ranks,
)
