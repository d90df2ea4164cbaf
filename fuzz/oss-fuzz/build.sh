#!/bin/bash -eu
# Makes one executable of each target, with the seeds inside and beside.
cd "$SRC/serde"
minor=$(python3 -c 'import sys; print("py%d%d" % sys.version_info[:2])')
python3 -m pip install -q -c "constraints/$minor.txt" '.[check,coreml,nnef,tvm]' pytest hypothesis
python3 -m fuzz.seeds
for target in fuzz/targets/fuzz_*.py; do
    name=$(basename "$target" .py)
    PYTHONPATH=. compile_python_fuzzer "$target" --paths . --add-data fuzz/.seeds:fuzz/.seeds \
        --collect-all serde --collect-submodules fuzz --collect-all onnx \
        --collect-all coremltools --collect-all nnef --collect-all tvm
    python3 -m fuzz.seeds --pack "${name#fuzz_read_}" "$OUT/${name}_seed_corpus.zip"
done
