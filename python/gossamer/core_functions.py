"""Functions of the core that are public as they are."""

from gossamer import _core
from gossamer.base.core_calls import explained

forecast = explained(_core.forecast)
make_schedule = explained(_core.make_schedule)
rank_methods = explained(_core.rank_methods)
topology_names = explained(_core.topology_names)
