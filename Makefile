# One line a target onto an ordinary tool. Each target works as the first command on
# a fresh clone: it makes .venv, or adds to it what it uses itself, with the versions that
# constraints/ pins for the Python in use (make PYTHON=python3.12 ... takes another one).
# uv installs where it is there, pip elsewhere (make UV= ... takes pip in any case).
PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null)
MINOR := $(shell $(PYTHON) -c 'import sys; print("py%d%d" % sys.version_info[:2])')
PINS := constraints/$(MINOR).txt
MINUTES ?= 10
BIN := .venv/bin
DEMO := .venv/$(MINOR)-demo.stamp
LINT := .venv/$(MINOR)-lint.stamp
TEST := .venv/$(MINOR)-test.stamp
SITE := .venv/$(MINOR)-site.stamp
ALL := .venv/$(MINOR)-all.stamp
TORCH_BIN := .venv-torch/bin
TORCH_STAMP := .venv-torch/$(MINOR).stamp
TORCH_PINS := constraints/torch.txt
TORCH_TESTS = $(shell grep -rl 'importorskip..torch' tests --include='test_*.py')
TVM_TESTS = $(wildcard tests/formats/*/test_relax_*.py)
TVM_BIN := .venv-tvm/bin
# The beginning of a command that makes an empty environment, and of one that installs into .venv.
MAKE_VENV := $(if $(UV),$(UV) venv -q --clear --seed --python '$(shell $(PYTHON) -c 'import sys; print(sys.executable)')',$(PYTHON) -m venv --clear)
INSTALL := $(if $(UV),$(UV) pip install -q --python $(BIN)/python,$(BIN)/python -m pip install -q --no-compile) -c $(PINS)
IMPORT_MXNET := $(BIN)/python -c 'from serde.compat import import_mxnet; import_mxnet()'

# Byte code is kept, whatever the machine says: processes that tests start load what others compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-wide test-torch test-tvm lint audit release fuzz bench bench-check docs site check check-full
# Two installations into one environment spoil each other.
.NOTPARALLEL:
.DEFAULT_GOAL := check

setup: $(ALL)

demo: $(DEMO)
	$(BIN)/python examples/build_resnet50.py demo

test: $(TEST)
	$(BIN)/python -m pytest -n 2 --maxschedchunk 100 -m 'not wide and not slow'

test-wide: $(ALL)
	$(BIN)/python -m pytest -n 2 --maxschedchunk 20 -m 'wide and not slow'

test-torch: $(TORCH_STAMP)
	$(TORCH_BIN)/python -m pytest -n 2 --maxschedchunk 100 -m 'not slow' -k 'torch or kernels' $(TORCH_TESTS)

test-tvm: $(TEST)
	$(BIN)/python -m pytest -n 2 --maxschedchunk 100 -m 'not slow' $(TVM_TESTS)

# Another release, such as test-tvm-0.26.0, with an apache-tvm-ffi that does not crash it.
test-tvm-%:
	$(PYTHON) -m venv --clear .venv-tvm
	grep -v '^apache-' $(PINS) > .venv-tvm/pins.txt
	$(TVM_BIN)/python -m pip install -q -c .venv-tvm/pins.txt setuptools wheel
	$(TVM_BIN)/python -m pip install -q -c .venv-tvm/pins.txt --no-build-isolation -e '.[check]' pytest pytest-xdist hypothesis \
		'apache-tvm==$*' 'apache-tvm-ffi<$(if $(filter 0.25%,$*),0.1.13,0.1.15)'
	$(TVM_BIN)/python -m pytest -n 2 --maxschedchunk 100 -m 'not slow' $(TVM_TESTS)

lint: $(LINT)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/bandit -q -c pyproject.toml -r serde

# What is pinned against published advisories; it asks a service on the internet.
audit: $(DEMO)
	$(INSTALL) pip-audit
	$(BIN)/pip-audit --no-deps --disable-pip -r $(PINS)

# The wheel and the source archive of the commit, into dist/; the same bytes from any checkout, by
# tools whose hashes are pinned for Python 3.11. What they bring and ask for goes into sbom/.
release:
	$(PYTHON) -m venv --clear .venv-release
	.venv-release/bin/python -m pip install -q --require-hashes -r constraints/release.txt
	.venv-release/bin/python tools/release.py
	mkdir -p sbom && .venv-release/bin/python tools/sbom.py dist/*.whl > sbom/serde-relay.cdx.json

# Readers first, guided by coverage; then readers and writers by chance. MINUTES are for all of it.
# Atheris takes Python 3.11 or newer, on Linux.
fuzz: $(TEST)
	$(INSTALL) --no-build-isolation -e '.[fuzz]'
	for format in coreml mxnet nnef onnx own relax relay tflite torch; do \
		nice $(BIN)/python -m fuzz.guided --format $$format --seconds $$(( $(MINUTES) * 30 / 9 )) || exit 1; \
	done
	nice $(BIN)/python -m fuzz --seconds $$(( $(MINUTES) * 30 / 9 ))

bench: $(TEST) $(TORCH_STAMP)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/startup.py --no-bytecode --runs 5
	-$(BIN)/python benchmarks/startup.py --cold --runs 5
	$(BIN)/python benchmarks/nodes.py
	$(BIN)/python benchmarks/load.py nodes
	$(BIN)/python benchmarks/load.py together
	$(BIN)/python benchmarks/load.py row
	$(BIN)/python benchmarks/load.py weights
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/batch.py --dask
	$(BIN)/python benchmarks/link.py
	$(BIN)/python benchmarks/onnx_import.py
	$(TORCH_BIN)/python benchmarks/coreml.py
	$(TORCH_BIN)/python benchmarks/torch_archives.py
	$(TORCH_BIN)/python benchmarks/nnef_speed.py
	$(TORCH_BIN)/python benchmarks/weights.py

# Ratios of CPU times against those stored in benchmarks/baseline.json.
bench-check: $(DEMO)
	$(BIN)/python benchmarks/baseline.py

docs: $(TEST)
	$(BIN)/python tools/operator_index.py
	$(BIN)/python -m serde ops --markdown > docs/operators.md
	$(BIN)/python tools/stubs.py
	$(BIN)/python tools/schemas.py
	$(BIN)/python tools/pictures.py

# The documentation as pages that need no server, in site/; a warning is an error.
site: $(ALL)
	$(BIN)/python tools/site/build.py

check: lint test

check-full: lint $(ALL) $(TORCH_STAMP)
	$(BIN)/python -m pytest -n 2
	$(TORCH_BIN)/python -m pytest -n 2 -k 'torch or kernels' $(TORCH_TESTS)
	$(BIN)/python benchmarks/onnx_suite.py
	$(BIN)/python benchmarks/pairs.py
	$(TORCH_BIN)/python benchmarks/differential.py --graphs 200 --state differential-200.jsonl
	$(BIN)/python benchmarks/zoo.py
	$(BIN)/python benchmarks/coreml_zoo.py
	$(BIN)/python benchmarks/torch_zoo.py
	$(BIN)/python benchmarks/nnef_zoo.py
	$(TORCH_BIN)/python benchmarks/nnef_torchvision.py
	$(BIN)/python benchmarks/relax_samples.py
	$(BIN)/python benchmarks/relax_suite.py
	$(BIN)/python benchmarks/relax_zoo.py

# MXNet, which the demo and the tests compare with, comes without its dependencies: its pins
# exclude NumPy 2. Its wheel links to two system libraries that a bare machine may lack; as root
# they are installed, else the message names them.
$(DEMO): setup.py pyproject.toml $(PINS)
	$(MAKE_VENV) .venv
	$(INSTALL) setuptools wheel
	$(INSTALL) --no-build-isolation -e '.[demo]'
	$(INSTALL) --no-deps mxnet
	$(IMPORT_MXNET) || { test "$$(id -u)" = 0 && apt-get update -q && apt-get install -qy libgomp1 libquadmath0 && $(IMPORT_MXNET); }
	touch $@

# gluoncv and gluonnlp, whose nets are tested, come like MXNet without their dependencies; the
# latter is built by a C compiler, and without one the tests of these nets are skipped.
$(TEST): $(DEMO)
	$(INSTALL) --no-build-isolation -e '.[test]'
	$(INSTALL) --no-deps gluoncv
	-$(INSTALL) --no-deps --no-build-isolation gluonnlp
	touch $@

$(SITE): $(DEMO)
	$(INSTALL) --no-build-isolation -e '.[docs]'
	touch $@

$(LINT): $(SITE)
	$(INSTALL) --no-build-isolation -e '.[lint]'
	touch $@

# Pages are tested in Debian's Chromium, which root gets; without it those tests are skipped.
$(ALL): $(LINT) $(TEST)
	$(INSTALL) --no-build-isolation -e '.[dev]'
	-command -v chromium chromedriver >/dev/null || { test "$$(id -u)" = 0 && apt-get update -q && apt-get install -qy --no-install-recommends chromium chromium-driver; }
	touch $@

# PyTorch, which some tests compare with, has an environment of its own: gluoncv refuses to
# be imported beside a PyTorch of version 2. torchvision and transformers, whose nets are tested,
# come without their pins, which would bring another build of PyTorch; so does NNEF-Tools, whose
# interpreter judges what is written.
$(TORCH_STAMP): setup.py pyproject.toml $(PINS) $(TORCH_PINS)
	$(PYTHON) -m venv --clear .venv-torch
	$(TORCH_BIN)/python -m pip install -q -c $(PINS) setuptools wheel
	$(TORCH_BIN)/python -m pip install -q -c $(PINS) -c $(TORCH_PINS) --no-build-isolation -e '.[check,coreml,nnef,tflite,torch,tvm]' onnxscript expecttest future hypothesis pytest pytest-xdist scipy \
		huggingface_hub regex requests ruff setuptools six tokenizers
	$(TORCH_BIN)/python -m pip install -q -c $(PINS) -c $(TORCH_PINS) --no-deps diffusers gguf mxnet nnef-tools onnxsim torchvision transformers
	touch $@
