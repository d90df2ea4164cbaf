"""Programs of TorchScript: traced and scripted modules and functions, live or in archives."""

from serde.torch.script.source import from_script, is_script, load_file
from serde.torch.script.vetting import check_archive

__all__ = ["check_archive", "from_script", "is_script", "load_file"]
