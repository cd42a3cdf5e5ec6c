#!/usr/bin/env bash
# Parity and rate on a GPU: differences to bert-score on the CPU, then speed beside bert-score on the same GPU.
# Usage: benchmarks/gpu.sh [RESULTS.json]; PYTHON names the interpreter, .venv's by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python="${PYTHON:-.venv/bin/python}"
if ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
  echo "no GPU: torch finds no CUDA device here, nothing was measured" >&2
  exit 3
fi
exec "$python" -m benchmarks.scoring parity speed --device cuda --sizes 64 1000 \
  --runs cold "cold bf16" "references cached" "all cached" --out "${1:-gpu.json}"
