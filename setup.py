"""The metadata of the distribution ``serde-relay``, which installs the package ``serde``."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent
HOME = "https://github.com/serde-relay/serde"
SITE = "https://serde-relay.github.io/serde/"
VERSION = re.search(
    r'^__version__ = "([^"]+)"$',
    (ROOT / "serde" / "_version.py").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
).group(1)


def long_description() -> str:
    """Return README.md for where no file lies beside it: with links to this version's files."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\g<1>{HOME}/raw/v{VERSION}/", text)
    return re.sub(r"\]\((?!https?:|#)", f"]({HOME}/blob/v{VERSION}/", text)


# Of apache-tvm-ffi, what TVM calls into, newer releases crash with this one of TVM.
TVM = ["apache-tvm==0.27.0.post1", "apache-tvm-ffi>=0.1.14.post0,<0.1.15"]

EXTRAS = {
    # MXNet's last wheel declares numpy < 2, which Python 3.13 cannot have; docs/start.md
    # says how to install it there. It needs setuptools for the distutils that Python 3.12 dropped.
    "mxnet": ["mxnet==1.9.1; python_version < '3.13'", "setuptools; python_version >= '3.12'"],
    # For Python 3.14 it has no wheel; what its source builds there, without a compiler, has the
    # messages that serde reads and writes, and none of the tools that make models smaller.
    "coreml": ["coremltools>=9.0", "protobuf>=6.31"],
    "nnef": ["nnef>=1.0.10"],
    "torch": ["safetensors>=0.5", "torch>=2.6"],
    # For checkpoints of Hugging Face.
    "transformers": [
        "safetensors>=0.5",
        "torch>=2.6",
        "transformers>=5.20; python_version >= '3.11'",
    ],
    # For its pipelines, of several checkpoints each.
    "diffusers": [
        "diffusers>=0.42; python_version >= '3.11'",
        "safetensors>=0.5",
        "torch>=2.6",
        "transformers>=5.20; python_version >= '3.11'",
    ],
    # For files of GGUF, beside the former.
    "gguf": ["gguf>=0.17"],
    "tflite": ["ai-edge-litert>=2.1"],
    "tvm": TVM,
    "check": ["onnxruntime>=1.19", "pillow>=10"],
    "openvino": ["openvino>=2025.0"],
    # ONNX Runtime's tools, and what coremltools makes palettes with.
    "quantize": ["onnx-ir>=0.1.8", "onnxruntime>=1.19", "scikit-learn>=1.3", "sympy>=1.12"],
    # URLs as sources and targets: s3:// and https://, and further protocols by their packages.
    "stores": ["aiohttp>=3.9", "fsspec>=2024.6", "s3fs>=2024.6"],
    "az": ["adlfs>=2024.4", "fsspec>=2024.6"],
    "gs": ["fsspec>=2024.6", "gcsfs>=2024.6"],
    "hf": ["fsspec>=2024.6", "huggingface_hub>=0.24"],
    "batch": ["fsspec>=2024.6", "pyarrow>=16"],
    "dask": ["distributed>=2024.6"],
    # mkdocstrings formats signatures with ruff.
    "docs": [
        "mkdocstrings[python]>=0.27",
        "ruff>=0.9",
        "zensical>=0.0.73; python_version >= '3.11'",
    ],
    "fuzz": ["atheris>=3.0; python_version >= '3.11' and sys_platform == 'linux'", "coverage>=7.6"],
}
EXTRAS["all"] = [
    requirement
    for extra in ("coreml", "nnef", "tflite", "check", "quantize", "stores", "batch", "dask")
    for requirement in EXTRAS[extra]
]
# What `make` installs, by purpose: each of its environments is that of the demo with more on top.
EXTRAS["demo"] = [
    *EXTRAS["check"],
    # What MXNet imports, which itself comes without its pins.
    "requests>=2.20",
    "setuptools>=77",
]
# mypy reads the site's modules and serde.testing, too.
EXTRAS["lint"] = [*EXTRAS["docs"], "bandit>=1.8", "mypy>=1.15", "pytest>=8.2"]
# What the tests of `make test` import, compare with or ask for a verdict.
EXTRAS["test"] = [
    *EXTRAS["all"],
    *EXTRAS["demo"],
    *EXTRAS["openvino"],
    *TVM,
    "coverage>=7.6",
    "hypothesis>=6.100",
    "jsonschema>=4.20",
    "moto[server]>=5.0",
    "mypy>=1.15",
    "nbformat>=5.10",
    "pytest>=8.2",
    "pytest-xdist>=3.6",
    "pyyaml>=6",
    "ruff>=0.9",
    "safetensors>=0.5",
    "tflite>=2.18",
    "torch-model-archiver>=0.12",
    "tritonclient[grpc]>=2.41",
    # What gluoncv imports, and what builds gluonnlp; they too come without their pins.
    "cython>=3",
    "portalocker>=2.10",
    "scipy>=1.11",
    "tqdm>=4.60",
    "wheel>=0.43",
]
# What tests of pages, notebooks, releases and files for GitHub take on top.
EXTRAS["dev"] = [
    *EXTRAS["test"],
    *EXTRAS["lint"],
    "basedpyright>=1.31",
    "build>=1.2",
    "check-jsonschema>=0.30",
    "duckdb>=1.1",
    "ipykernel>=6.29",
    "nbclient>=0.10",
    "selenium>=4.20",
    "twine>=6.1",
    "zizmor>=1.5",
]

setup(
    name="serde-relay",
    version=VERSION,
    description="Converts trained models between formats, through Relay",
    long_description=long_description(),
    long_description_content_type="text/markdown",
    author="The serde authors",
    url=HOME,
    project_urls={
        "Documentation": SITE,
        "Source": HOME,
        "Issues": f"{HOME}/issues",
        "Changelog": f"{HOME}/blob/main/CHANGELOG.md",
        "Security": f"{HOME}/security",
    },
    keywords=[
        "converter",
        "coreml",
        "deep-learning",
        "machine-learning",
        "mxnet",
        "nnef",
        "onnx",
        "pytorch",
        "quantization",
        "relay",
        "tvm",
    ],
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    packages=find_packages(include=["serde", "serde.*"]),
    # Stubs, indices, pages and what else MANIFEST.in names.
    include_package_data=True,
    exclude_package_data={"": ["ruff.toml"]},
    python_requires=">=3.10,<3.15",
    install_requires=["numpy>=1.26", "onnx>=1.19", "click>=8.1", "rich>=13.0"],
    extras_require=EXTRAS,
    # Other distributions add formats through the entry-point group "serde.formats".
    entry_points={"console_scripts": ["serde = serde.__main__:run"]},
    classifiers=[
        "Development Status :: 5 - Production/Stable",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    zip_safe=False,
)
