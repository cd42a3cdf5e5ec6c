"""Entry point of `rag-eval`: what an error looks like, and which exit code it has."""

from __future__ import annotations

import sys
import traceback

from rag_eval_assets.errors import EvalError


def main() -> None:
    """Run the command line; the project's own errors become one line and their exit code."""
    try:
        # Here, since the imports behind it take part of a second, and Ctrl-C may come then.
        from rag_eval_assets.cli.app import app

        app(prog_name="rag-eval")
    except EvalError as error:
        from rag_eval_assets.cli.console import print_error

        print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)
    except Exception:  # noqa: BLE001 - a bug; Python's own exit code for it is 1, which says "quality" here
        traceback.print_exc()
        sys.exit(3)
