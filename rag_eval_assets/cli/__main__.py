"""`python -m rag_eval_assets.cli`, where the script is not on the path."""

from __future__ import annotations

from rag_eval_assets.cli.main import main

main()
